//! Capture files, link layers, truncated headers, and the analysis of the resulting connections.

use lastmile_analysis::{Analysis, Direction, parse_captured};
use lastmile_scenario::capture;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let mut analysis = Analysis::new();
    let (mut payload, mut times) = (0, capture::Times::default());
    let _ = capture::read(input, &mut |frame| {
        let (Some(at_ns), Some(ip)) = (frame.at_ns, frame.ip) else { return Ok(()) };
        if let Ok(parsed) = parse_captured(ip, frame.ip_len) {
            assert!(u16::from(parsed.meta.header_len) <= parsed.meta.ip_len, "headers are part of the packet");
            if let Some(at) = times.since_first(at_ns) {
                payload += u64::from(parsed.meta.payload_len());
                analysis.packet(at, &parsed);
            }
        }
        Ok(())
    });
    let counted: u64 =
        analysis.finish().iter().flat_map(|connection| [&connection.up, &connection.down]).map(bytes).sum();
    assert!(counted <= payload, "no byte is counted twice");
}

fn bytes(direction: &Direction) -> u64 {
    assert!(direction.repeats.packets() <= direction.volume.packets, "a packet is one repeat at most");
    direction.volume.bytes_new + direction.volume.bytes_repeated + direction.volume.bytes_probed
}
