//! A router that moves the rates of its shapers: it pings the reflectors in turns, and asks the controller.
//!
//! Its flow numbers are those of the reflectors, in order, and one more, whose events measure the load. While the pings
//! sleep their turns pass.

use lastmile_model::{self as model, BuildError, IpFields};
use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::autorate::{Controller, Delay, Method, Pings};
use lastmile_units::{BitRate, ByteCount, Instant, WireBytes};

use super::datagram;
use crate::network::route::LinkIndex;

/// The controller of two shapers, and its pings.
#[derive(Debug)]
pub(crate) struct Autorate {
    controller: Controller,
    pings: Pings,
    /// The links of the shapers: down, up.
    pub(crate) shapers: [LinkIndex; 2],
    /// The rates that they have.
    applied: [BitRate; 2],
    /// The flow number of its first reflector.
    first: u32,
    /// By reflector: the number of the next turn.
    turns: Vec<u64>,
}

/// What is due at an event of a flow number.
pub(crate) enum Due {
    /// A ping, if they do not sleep, and the next turn.
    Turn(Option<Meta>, Instant),
    /// A measurement of the load.
    Load,
}

impl Autorate {
    pub(crate) fn new(autorate: &model::Autorate, first: u32) -> Result<Self, BuildError> {
        let controller = Controller::new(&autorate.controller, 0, Instant::ZERO).map_err(BuildError::Autorate)?;
        let pings = autorate.controller.pings;
        let shapers = autorate.shapers.map(|link| u32::try_from(link).expect("Network::check limits links"));
        let applied = controller.rates();
        Ok(Self { controller, pings, shapers, applied, first, turns: vec![0; pings.no_pingers as usize] })
    }

    /// The links of the shapers and their rates.
    pub(crate) fn rates(&self) -> impl Iterator<Item = (LinkIndex, BitRate)> {
        self.shapers.into_iter().zip(self.applied)
    }

    /// The links and rates of shapers whose rate changes.
    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = (LinkIndex, BitRate)> + use<> {
        let rates = self.controller.rates();
        let before = std::mem::replace(&mut self.applied, rates);
        let changes = self.shapers.into_iter().zip(rates).zip(before);
        changes.filter(|((_, rate), before)| rate != before).map(|(change, _)| change)
    }

    /// Its flow numbers, and the first event of each.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (u32, Instant)> {
        let reflectors = self.pings.no_pingers;
        let pings = (0..reflectors).map(|reflector| (self.first + reflector, self.left(reflector, 0)));
        pings.chain([(self.first + reflectors, self.controller.next_monitor())])
    }

    /// The departure of a ping.
    fn left(&self, reflector: u32, number: u64) -> Instant {
        self.pings.turn(Instant::ZERO, reflector, number)
    }

    pub(crate) fn due(&mut self, flow: u32) -> Due {
        let reflector = flow - self.first;
        let Some(turn) = self.turns.get_mut(reflector as usize) else { return Due::Load };
        let number = *turn;
        *turn += 1;
        let size = ByteCount::new(Pings::IP_BYTES);
        let ping = datagram(FlowId::new(2 * flow), Protocol::EchoRequest, size, number, IpFields::default());
        Due::Turn(self.controller.is_pinging().then_some(ping), self.left(reflector, number + 1))
    }

    /// The shapers have sent so much: down, up. Returns the time of the next measurement.
    pub(crate) fn measure(&mut self, now: Instant, sent: [WireBytes; 2]) -> Instant {
        self.controller.monitor(now, sent);
        self.controller.next_monitor()
    }

    /// The answer to a request; `None` for an answer, which the controller has taken.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) -> Option<Meta> {
        let (flow, number) = (packet.flow.index(), u64::from(packet.seq.raw()));
        if flow.is_multiple_of(2) {
            let back = FlowId::new(flow + 1);
            return Some(datagram(back, Protocol::EchoReply, packet.ip_bytes(), number, IpFields::default()));
        }
        let reflector = flow / 2 - self.first;
        let left = self.left(reflector, number);
        let delay = match self.pings.pinger_method {
            Method::Fping => Delay::RoundTrip(now.since(left)),
            // A reflector answers at once.
            Method::FpingTs => Delay::OneWay([now.since(packet.sent), packet.sent.since(left)]),
        };
        self.controller.response(now, reflector as usize, delay);
        None
    }
}
