//! Flows of UDP datagrams in a capture: rates, sizes, bursts, and the round trips of QUIC.
//!
//! A flow is two addresses and two ports; the side of its first packet is its opener. A burst is a run
//! of datagrams of one direction, each within [`BURST_GAP`] of the preceding one. The rate is that of
//! all datagrams but the last, whose own interval the capture does not show: a steady stream of `n` datagrams
//! has `n - 1` intervals. The peak rate is that of the fullest [`PEAK_SPAN`], and at least the rate.
//!
//! In a capture of several interfaces each direction counts at the one that showed it first. Datagrams have no
//! numbers that tell new ones from copies: another interface replaces it once it was silent for ten seconds, which is
//! longer than a copy waits in a queue of the host.
//!
//! QUIC is recognised by a long header of version 1 or 2 (RFC 9000, section 17.2; RFC 9369). The spin
//! bit of its short headers (section 17.4) changes once a round trip; the time between two changes in
//! one direction is a round trip of the whole path. Endpoints may disable the bit, and then set it to a
//! constant or at random: a direction in which it never changes, or changes with more than one packet in
//! `RANDOM`, measures nothing, and [`Spin`] says so.
//!
//! Differs from RFC 9312, section 4.2.1: reordering at an edge is filtered by a least round trip, a tenth
//! of the median so far, since packet numbers are encrypted. Cost: constant for each packet; a histogram
//! for each direction with round trips, and the last [`PEAK_SPAN`].

mod window;

use std::collections::HashMap;

use lastmile_packet::{FlowAddresses, FlowKey, HashKey, Parsed, Protocol};
use lastmile_units::{Duration, Instant};

use crate::connections::Sighting;
use crate::outcome::RoundTrips;
use crate::roundtrip::RoundTrip;

pub use self::window::PEAK_SPAN;
use self::window::Window;

/// The longest gap within a burst.
pub const BURST_GAP: Duration = Duration::from_ms(1);
/// The time without a datagram at its interface, after which a direction counts at another one.
const SILENCE: Duration = Duration::from_s(10);
/// A used spin bit changes with at most one packet in this number.
const RANDOM: u64 = 4;
/// The largest payload of UDP in a packet of 1 500 octets. QUIC has more only before segmentation by a device (UDP
/// GSO), or behind its reverse (GRO).
pub const LARGEST_QUIC: u16 = 1_472;
/// Bytes of a UDP header.
const HEADER: usize = 8;
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];

/// The use of the spin bit in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Spin {
    /// No QUIC, or no short header.
    #[default]
    Absent,
    /// It never changes: not used.
    Constant,
    /// It changes with many packets: not used, and set at random; or too few packets for a round trip.
    Random,
    /// It changes once a round trip.
    Used(RoundTrips),
}

impl Spin {
    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Constant => "not_used",
            Self::Random => "not_used_random",
            Self::Used(_) => "used",
        }
    }
}

/// One direction of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Datagrams {
    /// Datagrams.
    pub packets: u64,
    /// IP bytes.
    pub ip_bytes: u64,
    /// Payload of the smallest and of the largest datagram.
    pub sizes: Option<(u16, u16)>,
    /// Time from the first to the last.
    pub active: Duration,
    /// IP bytes of the last.
    pub last_ip_bytes: u64,
    /// IP bits in the fullest [`PEAK_SPAN`], as a rate; at least the rate of all.
    pub peak_bps: f64,
    /// Bursts, single datagrams included.
    pub bursts: u64,
    /// Datagrams of the longest burst.
    pub longest_burst: u64,
    /// The use of its spin bit.
    pub spin: Spin,
}

impl Datagrams {
    /// IP bits of all datagrams but the last over the time from the first to the last; `None` for a single time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    pub fn rate_bps(&self) -> Option<f64> {
        (!self.active.is_zero()).then(|| (self.ip_bytes - self.last_ip_bytes) as f64 * 8.0 / self.active.as_secs_f64())
    }
}

/// A flow of datagrams.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DatagramFlow {
    /// Addresses, with the side of the first packet as the source.
    pub addresses: FlowAddresses,
    /// Time of the first packet.
    pub from: Instant,
    /// The version of QUIC, if it is QUIC.
    pub quic: Option<u32>,
    /// From the opener.
    pub up: Datagrams,
    /// To it.
    pub down: Datagrams,
}

#[derive(Clone, Debug, Default)]
struct Half {
    out: Datagrams,
    /// The interface that counts.
    sighting: Option<Sighting>,
    first: Option<Instant>,
    last: Instant,
    burst: u64,
    window: Window,
    spin: SpinState,
}

#[derive(Clone, Debug, Default)]
struct SpinState {
    packets: u64,
    changes: u64,
    value: Option<bool>,
    /// Time of the last change.
    edge: Option<Instant>,
    trips: RoundTrip,
}

impl SpinState {
    /// A captured datagram of so many packets.
    fn packet(&mut self, now: Instant, value: bool, packets: u16) {
        self.packets += u64::from(packets);
        let before = self.value.replace(value);
        if before.is_none_or(|before| before == value) {
            return;
        }
        if let Some(edge) = self.edge {
            let trip = now.since(edge);
            if self.trips.quantile(0.5).is_some_and(|median| trip < median / 10) {
                // A packet from before the change came late: the change back is none either.
                self.value = before;
                return;
            }
            self.trips.sample(trip);
        }
        self.changes += 1;
        self.edge = Some(now);
    }

    fn finish(&self) -> Spin {
        match (self.packets, self.changes) {
            (0, _) => Spin::Absent,
            (_, 0) => Spin::Constant,
            (packets, changes) if changes * RANDOM > packets => Spin::Random,
            _ => Spin::Used(RoundTrips::of(&self.trips)),
        }
    }
}

impl Half {
    /// True for a datagram that another interface has shown.
    fn was_seen(&mut self, now: Instant, sighting: Sighting) -> bool {
        let is_other = self.sighting.is_some_and(|own| own != sighting);
        if is_other && now.since(self.last) <= SILENCE {
            return true;
        }
        self.sighting = Some(sighting);
        false
    }

    fn packet(&mut self, now: Instant, packet: &Parsed) {
        let out = &mut self.out;
        let payload = packet.meta.payload_len();
        out.packets += 1;
        out.last_ip_bytes = u64::from(packet.meta.ip_len);
        out.ip_bytes += out.last_ip_bytes;
        let (least, most) = out.sizes.unwrap_or((payload, payload));
        out.sizes = Some((least.min(payload), most.max(payload)));
        let first = *self.first.get_or_insert(now);
        out.active = now.since(first);
        if out.packets == 1 || now.since(self.last) > BURST_GAP {
            out.bursts += 1;
            self.burst = 0;
        }
        self.burst += 1;
        out.longest_burst = out.longest_burst.max(self.burst);
        self.last = now;
        self.window.add(now, out.last_ip_bytes);
    }

    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    fn finish(&self, is_quic: bool) -> Datagrams {
        // Of a flow shorter than the span, and of one whose datagrams fit unevenly into it.
        let fullest = self.window.fullest() as f64 * 8.0 / PEAK_SPAN.as_secs_f64();
        let peak_bps = self.out.rate_bps().map_or(fullest, |rate| fullest.max(rate));
        Datagrams { peak_bps, spin: if is_quic { self.spin.finish() } else { Spin::Absent }, ..self.out }
    }
}

#[derive(Clone, Debug)]
struct Flow {
    addresses: FlowAddresses,
    from: Instant,
    quic: Option<u32>,
    halves: [Half; 2],
}

/// The state machine that turns packets into flows of datagrams.
#[derive(Clone, Debug, Default)]
pub struct DatagramAnalysis {
    flows: Vec<Flow>,
    by_key: HashMap<FlowKey, usize, HashKey>,
    packets_seen_before: u64,
}

impl DatagramAnalysis {
    /// Adds a packet, whose captured bytes from the IP header on are `bytes`. Other packets than
    /// datagrams of UDP are ignored. Times must not go back.
    pub fn packet(&mut self, now: Instant, packet: &Parsed, bytes: &[u8]) {
        self.packet_at(now, Sighting::default(), packet, bytes);
    }

    /// Adds a packet of a capture of several interfaces, as [`DatagramAnalysis::packet`] does.
    pub fn packet_at(&mut self, now: Instant, sighting: Sighting, packet: &Parsed, bytes: &[u8]) {
        if packet.meta.protocol != Protocol::Udp {
            return;
        }
        let reversed = packet.key.reversed();
        let key = packet.key.min(reversed);
        let place = *self.by_key.entry(key).or_insert_with(|| {
            let addresses = packet.key.addresses;
            self.flows.push(Flow { addresses, from: now, quic: None, halves: Default::default() });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[place];
        let side = usize::from(flow.addresses != packet.key.addresses);
        if flow.halves[side].was_seen(now, sighting) {
            self.packets_seen_before += 1;
            return;
        }
        flow.halves[side].packet(now, packet);
        let payload = bytes.get(usize::from(packet.transport_offset) + HEADER..).unwrap_or_default();
        match payload {
            // Long header: form and fixed bit, then the version.
            [first, a, b, c, d, ..] if first & 0xc0 == 0xc0 => {
                let version = u32::from_be_bytes([*a, *b, *c, *d]);
                if VERSIONS.contains(&version) {
                    flow.quic = Some(version);
                }
            }
            // Short header, with the spin bit third.
            [first, ..] if first & 0xc0 == 0x40 && flow.quic.is_some() => {
                let packets = packet.meta.payload_len().div_ceil(LARGEST_QUIC);
                flow.halves[side].spin.packet(now, first & 0x20 != 0, packets);
            }
            _ => {}
        }
    }

    /// Datagrams omitted because another interface showed them.
    #[must_use]
    pub const fn packets_seen_before(&self) -> u64 {
        self.packets_seen_before
    }

    /// The flows, in the order of their first packets.
    #[must_use]
    pub fn finish(self) -> Vec<DatagramFlow> {
        let finish = |flow: Flow| {
            let [up, down] = flow.halves.each_ref().map(|half| half.finish(flow.quic.is_some()));
            DatagramFlow { addresses: flow.addresses, from: flow.from, quic: flow.quic, up, down }
        };
        self.flows.into_iter().map(finish).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_packet::{FlowId, Meta};

    fn parsed(back: bool, payload: u16) -> Parsed {
        let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(u32::from(back))), protocol: 17 };
        let meta = Meta { protocol: Protocol::Udp, header_len: 28, ip_len: 28 + payload, ..Meta::default() };
        Parsed { meta, key, transport_offset: 20 }
    }

    fn bytes(payload: &[u8]) -> Vec<u8> {
        [&[0; 28][..], payload].concat()
    }

    const INITIAL: [u8; 5] = [0xc3, 0, 0, 0, 1];
    const INNER: Sighting = Sighting { interface: 0, sent: false };
    const OUTER: Sighting = Sighting { interface: 1, sent: true };

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// A path of 40 ms: the client inverts the server's bit, the server repeats the client's (RFC 9000,
    /// section 17.4), so that each end's bit changes every 40 ms.
    fn conversation(spin: impl Fn(u64) -> bool) -> DatagramFlow {
        let mut analysis = DatagramAnalysis::default();
        analysis.packet(at(0), &parsed(false, 1200), &bytes(&INITIAL));
        analysis.packet(at(100), &parsed(true, 1200), &bytes(&INITIAL));
        for number in 0..5_000 {
            let us = 1_000 + 2_000 * number;
            let first = 0x40 | u8::from(spin(us)) << 5 | 0x05;
            analysis.packet(at(us), &parsed(false, 30), &bytes(&[first; 10]));
            analysis.packet(at(us + 500), &parsed(true, 1200), &bytes(&[first; 10]));
            analysis.packet(at(us + 600), &parsed(true, 1200), &bytes(&[first; 10]));
        }
        analysis.finish()[0]
    }

    #[test]
    fn changes_of_the_spin_bit_are_a_round_trip_apart() {
        let flow = conversation(|us| us / 40_000 % 2 == 1);
        assert_eq!(flow.quic, Some(1));
        for spin in [flow.up.spin, flow.down.spin] {
            let Spin::Used(trips) = spin else { panic!("{spin:?}") };
            assert!((245..=250).contains(&trips.count), "{trips:?}");
            assert!((trips.median.unwrap().as_secs_f64() - 0.040).abs() < 0.001, "{trips:?}");
        }
    }

    /// A packet of the old value after the first of the new one: two false changes a few microseconds
    /// apart.
    #[test]
    fn a_reordered_packet_is_no_round_trip() {
        let mut state = SpinState::default();
        for number in 0..1_000_u64 {
            let value = number / 20 % 2 == 1;
            state.packet(at(2_000 * number), value, 1);
            if number % 20 == 0 && number > 100 {
                state.packet(at(2_000 * number + 50), !value, 1);
                state.packet(at(2_000 * number + 90), value, 1);
            }
        }
        let Spin::Used(trips) = state.finish() else { panic!("{state:?}") };
        assert!(trips.least.unwrap() >= Duration::from_ms(39), "{trips:?}");
    }

    #[test]
    fn a_spin_bit_that_is_not_used_is_said() {
        assert_eq!(conversation(|_| true).up.spin, Spin::Constant);
        assert_eq!(conversation(|us| (us * 2_654_435_761) >> 13 & 1 == 1).up.spin, Spin::Random);
        let mut analysis = DatagramAnalysis::default();
        for number in 0..100 {
            analysis.packet(at(number * 20_000), &parsed(false, 160), &bytes(&[0x40 | (number as u8 & 0x20); 12]));
        }
        assert_eq!(analysis.finish()[0].up.spin, Spin::Absent, "no QUIC without a long header");
    }

    /// Before segmentation by a device: three datagrams of ten packets in each round trip of 40 ms.
    #[test]
    fn the_packets_of_a_datagram_count_each_for_the_spin_bit() {
        let mut analysis = DatagramAnalysis::default();
        analysis.packet(at(0), &parsed(false, 1_252), &bytes(&INITIAL));
        for number in 0..150 {
            let first = 0x40 | u8::from(number / 3 % 2 == 1) << 5;
            analysis.packet(at(number * 40_000 / 3), &parsed(true, 12_520), &bytes(&[first; 10]));
        }
        let Spin::Used(trips) = analysis.finish()[0].down.spin else { panic!("not used") };
        assert_eq!(trips.count, 48);
        assert!((trips.median.unwrap().as_secs_f64() - 0.040).abs() < 0.001, "{trips:?}");
    }

    /// Voice: 50 datagrams a second of 160 bytes and 28 of headers, 75.2 kbit/s. Video: 30 bursts a second
    /// of 8 datagrams.
    #[test]
    fn rates_sizes_and_bursts() {
        let mut analysis = DatagramAnalysis::default();
        for number in 0..500 {
            analysis.packet(at(number * 20_000), &parsed(false, 160), &[]);
        }
        for number in 0..240 {
            let us = 9_990_000 + number / 8 * 33_333 + number % 8 * 100;
            analysis.packet(at(us), &parsed(true, if number % 8 == 7 { 400 } else { 1_172 }), &[]);
        }
        let flows = analysis.finish();
        let (voice, video) = (flows[0].up, flows[0].down);
        assert_eq!(voice.rate_bps(), Some(75_200.0));
        assert_eq!((voice.bursts, voice.longest_burst, voice.sizes), (500, 1, Some((160, 160))));
        assert_eq!((video.bursts, video.longest_burst, video.sizes), (30, 8, Some((400, 1_172))));
        // Three or four pictures in 100 ms.
        let picture = f64::from(7 * 1_200 + 428) * 8.0 / 0.1;
        assert!((3.0..=4.0).contains(&(video.peak_bps / picture).round()), "{}", video.peak_bps);
    }

    /// Six datagrams of 200 bytes, 20 ms apart: five intervals of 100 ms together. 200 bytes in 20 ms are 80 kbit/s.
    #[test]
    fn a_short_steady_stream_has_its_rate_as_its_peak() {
        let short = |count: u64, gap: u64| {
            let mut analysis = DatagramAnalysis::default();
            for number in 0..count {
                analysis.packet(at(number * gap), &parsed(false, 172), &[]);
            }
            let up = analysis.finish()[0].up;
            (up.rate_bps(), up.peak_bps)
        };
        for count in [2, 3, 6, 13] {
            assert_eq!(short(count, 20_000), (Some(80_000.0), 80_000.0), "{count} datagrams");
        }
        // Gaps of 30 ms are no part of 100 ms: the fullest holds four, 64 kbit/s, of a stream of 53.3 kbit/s.
        let (rate, peak) = short(50, 30_000);
        assert!((rate.unwrap() - 1_600.0 / 0.03).abs() < 1e-6 && (peak - 64_000.0).abs() < 1e-6, "{rate:?} {peak}");
        assert_eq!(short(1, 1), (None, 16_000.0));
    }

    /// One datagram at 0, 100 of 200 bytes from 60 to 159 ms, 1 ms apart, and one at 10 s: 160 kbit in 100 ms.
    #[test]
    fn the_peak_is_that_of_the_fullest_span_wherever_it_begins() {
        let mut analysis = DatagramAnalysis::default();
        for ms in [0].into_iter().chain(60..160).chain([10_000]) {
            analysis.packet(at(ms * 1000), &parsed(false, 172), &[]);
        }
        assert!((analysis.finish()[0].up.peak_bps - 1_600_000.0).abs() < 1e-6);
    }

    /// A router shows 100 datagrams in each direction, 20 ms apart, and again 20 us later at two other interfaces.
    /// 200 bytes in 20 ms are 80 kbit/s.
    #[test]
    fn each_direction_counts_at_the_interface_that_shows_it_first() {
        let mut analysis = DatagramAnalysis::default();
        for us in (0..2_000_000).step_by(20_000) {
            for (us, back, own, other) in [(us, false, INNER, OUTER), (us + 5000, true, OUTER, INNER)] {
                analysis.packet_at(at(us), own, &parsed(back, 172), &[]);
                analysis.packet_at(at(us + 20), other, &parsed(back, 172), &[]);
                analysis.packet_at(at(us + 20), Sighting { interface: 2, ..other }, &parsed(back, 172), &[]);
            }
        }
        assert_eq!(analysis.packets_seen_before(), 400);
        let flow = analysis.finish()[0];
        for way in [flow.up, flow.down] {
            assert_eq!((way.packets, way.ip_bytes, way.longest_burst), (100, 20_000, 1));
            assert_eq!((way.rate_bps(), way.peak_bps), (Some(80_000.0), 80_000.0));
        }
    }

    /// 100 datagrams at both interfaces, 20 ms apart, and 600 at the other one alone, as after a change of route: those
    /// more than 10 s after 1.98 s count, which are the last 101.
    #[test]
    fn another_interface_replaces_one_that_is_silent() {
        let mut analysis = DatagramAnalysis::default();
        for number in 0..700 {
            if number < 100 {
                analysis.packet_at(at(number * 20_000), INNER, &parsed(false, 172), &[]);
            }
            analysis.packet_at(at(number * 20_000 + 20), OUTER, &parsed(false, 172), &[]);
        }
        assert_eq!(analysis.packets_seen_before(), 599);
        assert_eq!(analysis.finish()[0].up.packets, 100 + 101);
    }
}
