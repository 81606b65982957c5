//! Results of cells: the line of the demonstration, whose upstream is a link of cells with too
//! short a queue.

use lastmile_atm::{LinkSpec, NetworkSpec, Queues, VcSpec, discard::Discard};
use lastmile_model::{Atm, Circuit, Network, OpenedBy};
use lastmile_results::{report, table};
use lastmile_tcp::{Config, Variant};
use lastmile_units::{CellCount, Duration};

use crate::network::{bulk, line, modem, traffic};
use crate::run;

/// Four uploads over the port of 100 cells, two of them on one virtual channel.
pub(crate) fn short_of_cells() -> Network {
    let mut network = line(2_000, 512, "ipoa-llcsnap", modem());
    network.duration = Duration::from_s(20);
    let tcp = Config { variant: Variant::Reno, sack: false, ..Config::default() };
    let mut spec = NetworkSpec::new();
    let nodes = ["client", "server"].map(|name| spec.node(name));
    for (link, [from, to]) in network.links.iter().zip([nodes, [nodes[1], nodes[0]]]) {
        let queues = Queues::fifo(CellCount::new(100), Discard::default());
        spec.link(
            LinkSpec::new(from, to, link.hop.line.rate.expect("a rate"), link.hop.line.delay).with_queues(queues),
        );
    }
    let mut circuits = Vec::new();
    for (name, count) in [("pair", 2), ("other", 2)] {
        let mut uploads = traffic(name, 0, 1, bulk(&tcp, None, OpenedBy::Sender));
        uploads.count = count;
        network.traffic.push(uploads);
        for (back, path) in [(false, ["client", "server"]), (true, ["server", "client"])] {
            let route = spec.route(&path).expect("a route");
            let vcs = (0..if name == "pair" { 1 } else { count }).map(|_| {
                let vci = 32 + spec.vcs.len() as u16;
                spec.vc(VcSpec::new(format!("{name} {vci}"), vci, route.clone()))
            });
            circuits.push(Circuit {
                traffic: network.traffic.len() - 1,
                back,
                vcs: vcs.collect(),
                contract: None,
                edge: None,
                hold: None,
            });
        }
    }
    network.atm = Some(Atm { network: spec, links: vec![0, 1], circuits, edges: Vec::new() });
    network
}

#[test]
fn ports_and_virtual_channels_say_what_was_worth_its_cells() {
    let run = run(&short_of_cells());
    let atm = run.summary.atm.as_ref().unwrap();
    assert!(atm.conservation.holds && run.summary.conservation.holds, "{:?}", atm.conservation);
    let up = &atm.ports[0];
    assert_eq!((up.link.as_str(), up.buffer_cells, up.max_queue_cells), ("up", Some(100), 100));
    assert_eq!(up.arrived_cells, up.sent_cells + up.dropped_cells + up.waiting_cells);
    assert_eq!(up.drops_cells.keys().collect::<Vec<_>>(), ["queue_full"]);
    // If the last of a packet's 32 cells is dropped, 31 are transmitted in vain.
    let share = up.goodput_share.unwrap();
    assert!((0.5..0.99).contains(&share), "{share}");
    assert_eq!(atm.vcs.len(), 6);
    let there = || atm.vcs.iter().filter(|vc| vc.route == ["up"]);
    assert_eq!(there().map(|vc| vc.counts.goodput_cells).sum::<u64>(), up.goodput_cells);
    let lost: u64 = atm.vcs.iter().flat_map(|vc| vc.counts.lost_frames.values()).sum();
    assert_eq!(lost, run.summary.conservation.packets.dropped);
    assert!(run.summary.conservation.dropped_by_reason["lost_cells"] > 0);
    let busy = up.sent_cells as f64 * 424.0 / (512e3 * 20.0);
    assert!(
        (run.summary.links[0].utilisation.unwrap() - busy).abs() < 424.0 / (512e3 * 20.0),
        "{busy}: but for a cell on its way"
    );
}

#[test]
fn tables_and_report_show_them() {
    let run = run(&short_of_cells());
    let text = table::run(&run.summary, 120);
    assert!(text.contains("Ports of cells") && text.contains("queue full"), "{text}");
    let page = report::page(&[run]);
    assert!(page.contains("Cells in the queue") && page.contains("Virtual channels"), "a panel and a table");
}

#[test]
fn cells_lost_on_the_wire_are_told_apart_from_dropped_ones() {
    let mut network = short_of_cells();
    network.atm.as_mut().unwrap().network.links[0].loss_ppb = 5_000_000;
    let run = run(&network);
    let atm = run.summary.atm.as_ref().unwrap();
    assert!(atm.conservation.holds && run.summary.conservation.holds, "{:?}", atm.conservation);
    let [up, down] = &atm.ports[..] else { panic!("two ports") };
    assert!(up.lost_cells > 0 && down.lost_cells == 0, "{} {}", up.lost_cells, down.lost_cells);
    assert_eq!(atm.conservation.lost, up.lost_cells);
    assert_eq!(atm.conservation.dropped, up.dropped_cells + down.dropped_cells);
    assert_eq!(atm.vcs.iter().map(|vc| vc.counts.lost_cells).sum::<u64>(), up.lost_cells);
    let on_wire: u64 = atm.vcs.iter().filter_map(|vc| vc.counts.lost_frames.get("wire_loss")).sum();
    assert!((1..=up.lost_cells).contains(&on_wire), "{on_wire} packets, {} cells", up.lost_cells);
    let lost: u64 = atm.vcs.iter().flat_map(|vc| vc.counts.lost_frames.values()).sum();
    assert_eq!(lost, run.summary.conservation.packets.dropped);
    let text = table::run(&run.summary, 160);
    assert!(text.contains("Lost on"), "{text}");
    let page = report::page(&[run]);
    assert!(page.contains("wire loss"), "in the table of virtual channels");
}
