//! ACKs dropped ahead of the line and restored behind it: the sender receives every number of its receiver.

use std::cell::RefCell;
use std::rc::Rc;

use lastmile_model::Node;
use lastmile_model::{Observer, Passage};
use lastmile_packet::{Meta, Protocol, SeqNumber};
use lastmile_queueing::Match;
use lastmile_queueing::ack::regenerator::{Config as Regeneration, Know};
use lastmile_queueing::ack::sad;
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_sim::Simulation;
use lastmile_tcp::{AckConfig, Config, Variant};
use lastmile_units::{BitRate, Duration, Instant, Ratio};

use crate::build;

/// ACK numbers that arrived at the dropper, and at the sender.
type Numbers = Rc<RefCell<[Vec<SeqNumber>; 2]>>;

struct Log(Numbers);

impl Observer<Meta> for Log {
    fn packet(&mut self, _at: Instant, link: usize, passage: Passage, packet: &Meta) {
        // Link 2 leads from the client to the dropper, link 3 from the regenerator to the server.
        if passage == Passage::Arrived && packet.protocol == Protocol::Tcp && (link == 2 || link == 3) {
            self.0.borrow_mut()[link - 2].push(packet.ack);
        }
    }
}

/// k = 5, with losses on the way down, so that there are duplicates and holes.
#[test]
fn the_sender_receives_every_number_in_order() {
    for (report, know, sack) in [(Report::List, Know::List, false), (Report::Signal, Know::Signal, true)] {
        let mut network = build::line(8_000, 64, "ip", Duration::from_ms(10));
        network.links[1].hop.line.loss = Ratio::from_ppm(2_000).unwrap();
        network.duration = Duration::from_s(30);
        // client - cpe - gateway - server: the line lies between the middle two.
        network.nodes.insert(1, Node { name: "cpe".to_owned(), processing: Duration::ZERO });
        network.nodes.insert(2, Node { name: "gateway".to_owned(), processing: Duration::ZERO });
        (network.links[0].from, network.links[0].to) = (1, 2);
        (network.links[1].from, network.links[1].to) = (3, 0);
        let queue = Box::new(Spec::fifo(1000));
        let sad = Spec::Sad(Over {
            config: sad::Config { duplicates: Duplicates::Count, report, exempt: Match::Never },
            queue: queue.clone(),
        });
        network.links[0].hop.queue = sad;
        let config = Regeneration { know, ..Regeneration::default() };
        for (name, from, to, queue) in
            [("in", 0, 1, *queue.clone()), ("out", 2, 3, Spec::AckRegenerator(Over { config, queue }))]
        {
            let mut link = network.links[0].clone();
            (link.hop.name, link.from, link.to, link.hop.queue) = (name.to_owned(), from, to, queue);
            link.hop.line.rate = Some(BitRate::from_mbit_per_s(100));
            network.links.push(link);
        }
        let tcp = Config {
            variant: Variant::NewReno,
            sack,
            timestamps: sack,
            acks: AckConfig { delayed_ack: Duration::ZERO, ..AckConfig::default() },
            ..Config::default()
        };
        let mut traffic = build::download(&tcp, None);
        traffic.from = 3;
        network.traffic.push(traffic);

        let numbers = Numbers::default();
        let outcome = Simulation::new(&network, Some(Box::new(Log(Rc::clone(&numbers))))).unwrap().finish();
        assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
        assert!(outcome.conservation.created.packets > 1000);
        assert!(outcome.flows[0].tcp.as_ref().unwrap().fast_retransmits > 10);
        let [dropper, sender] = &*numbers.borrow();
        assert_eq!(sender[..], dropper[..sender.len()], "missing numbers are still in flight");
        assert!(dropper.len() - sender.len() < 1000);
    }
}
