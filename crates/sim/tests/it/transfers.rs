//! Transfers of a given size, opened by either side, with and without a request.

use lastmile_model::Source;
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::Duration;

use crate::build;

/// 100 000 bytes are 69 segments of 1460. A server that closes while it listens would send none.
#[test]
fn a_transfer_of_given_size_ends_with_all_of_it_delivered() {
    for request in [0, 300] {
        for mut traffic in
            [build::download(&Config::default(), Some(100_000)), build::upload(&Config::default(), Some(100_000))]
        {
            let Source::Bulk { request: asked, .. } = &mut traffic.source else { panic!("a transfer") };
            *asked = request;
            let name = format!("{} after a request of {request} bytes", traffic.name);
            let mut network = build::line(2_000, 512, "bridged-vcmux-fcs", Duration::from_ms(4));
            // Long enough for TIME-WAIT to pass as well.
            network.duration = Duration::from_s(600);
            network.traffic.push(traffic);
            let flow = run(&network).unwrap().flows.remove(0);
            assert_eq!(flow.bytes_delivered, 100_000, "{name}");
            assert!(flow.end.is_some_and(|end| end < lastmile_units::Instant::ZERO + Duration::from_s(5)), "{name}");
            assert!(flow.tcp.unwrap().closed, "{name}");
        }
    }
}
