//! The limit of a flow, in words, inferred from measurements: the sender's own account of its
//! waiting, its round trips, the utilisation of links, and the queueing delays of packets and ACKs.
//!
//! A sender that is limited by its receive window delivers window / round trip. The mean round trip
//! is taken over octets, and that of queues over packets: each octet of a window waits one round
//! trip, so this mean times the mean rate is the window (Little's law), also in a phase in which
//! the queue grows.

use lastmile_model::{Network, Source};
use lastmile_tcp::RoundTrips;

use crate::bounds::{Full, Loads, Shape};
use crate::format;
use crate::interval::Interval;
use crate::schema::{PhaseLink, Shares};

/// The share of pure ACKs among a link's packets from which ACKs alone fill it.
const ACKS_ALONE: f64 = 0.9;
/// The share of the time from which one cause is that of nearly all of it.
const NEARLY_ALL: f64 = 0.9;
/// The deviation of a mean window from that at the end from which both are reported.
const MOVED: f64 = 0.1;
/// The packets for each ACK whose effect is reported where ACKs of QUIC fill their path.
const RATIOS: [u32; 3] = [2, 4, 10];
/// The least share of outages in a phase that is reported.
const OUTAGE: f64 = 0.05;
/// The least share of a queue in the round trip that is reported.
const WORTH_TELLING: f64 = 0.1;

/// The measurements of a flow in a phase.
pub(crate) struct Case<'a> {
    pub(crate) network: &'a Network,
    pub(crate) shape: &'a Shape,
    /// Index of its traffic.
    pub(crate) traffic: usize,
    /// The measurements of the phase.
    pub(crate) interval: &'a Interval,
    /// The flow opens connections in the phase.
    pub(crate) opens: bool,
    /// Links in that phase, in the order of the network.
    pub(crate) links: &'a [PhaseLink],
    /// The flow's own round trips.
    pub(crate) round_trips: RoundTrips,
    /// Shares of the flow's time by cause.
    pub(crate) shares: Shares,
    /// The flow's receive window at the end of the phase, if that was measured.
    pub(crate) receive_window: Option<u64>,
    /// Retransmitted segments.
    pub(crate) retransmissions: u64,
    /// Reductions of the window for CE marks.
    pub(crate) mark_reductions: u64,
    /// Packets for each ACK over the flow's life, and its goodput in the phase, bit/s.
    pub(crate) reached: (f64, f64),
    /// The data of all traffic in the phase.
    pub(crate) data: &'a Loads<'a>,
}

/// A measured round trip.
struct Trip {
    mean_s: f64,
    /// The part that neither the empty path nor queues explain.
    rest_s: f64,
    /// The queue with the largest part of the round trip.
    worst: Option<Wait>,
}

/// The delay in the queue of one link.
#[derive(Clone, Copy)]
struct Wait {
    link: usize,
    mean_s: f64,
    max_s: f64,
    /// True if the delay is that of ACKs.
    acks: bool,
}

impl Case<'_> {
    /// The limit of the flow.
    pub(crate) fn words(&self) -> String {
        let Some((cause, share)) = self.shares.iter().reduce(|a, b| if b.1 > a.1 { b } else { a }) else {
            return String::new();
        };
        let words = match cause {
            "application" => self.application(),
            "awaiting_ack" => self.awaiting_ack(),
            _ => self.link_or_window(cause),
        };
        // One cause for nearly all the time is given without its share.
        let words = if share >= NEARLY_ALL { words } else { format!("{words} ({} of the time)", whole_percent(share)) };
        [words].into_iter().chain(self.outages()).collect::<Vec<_>>().join("; ")
    }

    /// The outages of the links on the path, in words, if they take a telling part of the phase.
    fn outages(&self) -> impl Iterator<Item = String> + '_ {
        let (from, to) = (self.interval.from, self.interval.to);
        let links = self.shape.data_path.iter().chain(&self.shape.ack_path);
        links.filter_map(move |link| {
            let trace = self.network.links[*link].hop.line.trace.as_ref()?;
            let name = &self.links[*link].name;
            if trace.rate_between(from, to) == Some(0.0) {
                return Some(format!("link {name} carries nothing"));
            }
            let outage_s = trace.outage_between(from, to).as_secs_f64();
            let is_told = outage_s >= OUTAGE * self.interval.length_s();
            is_told.then(|| format!("link {name} carried nothing for {}", format::seconds(outage_s)))
        })
    }

    fn application(&self) -> String {
        match &self.network.traffic[self.traffic].source {
            Source::Bulk { .. } | Source::Quic { .. } | Source::Writes { .. } => {
                "the application offered nothing more".to_owned()
            }
            _ => {
                let full = self.full_of_data();
                let full = full.map(|full| format!("; {} is {} busy", full.filled(), full.percent()));
                format!("the source, which sends on its own schedule{}", full.unwrap_or_default())
            }
        }
    }

    fn awaiting_ack(&self) -> String {
        if self.round_trips == RoundTrips::default() {
            let place = self.stuck().map_or_else(String::new, |words| format!("; {words}"));
            return format!("waiting for the handshake of the other end, which has not arrived{place}");
        }
        let trip = self.round_trip("awaiting_ack");
        let trip = trip.map_or_else(String::new, |trip| format!("; {}", self.trip(&trip)));
        // Nothing was retransmitted: a handshake, the end of the data and the FIN remain.
        if self.retransmissions == 0 {
            let full = self.full_of_data();
            let full = full.map(|full| format!("{} ({} busy); ", full.words(), full.percent())).unwrap_or_default();
            let handshake = match (self.reached.1 > 0.0, self.opens) {
                (true, true) => "its handshake and ",
                (true, false) => "",
                (false, _) => "a handshake or ",
            };
            return format!("{full}waiting for {handshake}its last data to be acknowledged{trip}");
        }
        format!(
            "waiting for a handshake or retransmission to be acknowledged, {}{trip}",
            self.retransmitted(self.retransmissions)
        )
    }

    /// The full link that holds up what opens the connection, in words.
    fn stuck(&self) -> Option<String> {
        let path: Vec<usize> = self.shape.ack_path.iter().chain(&self.shape.data_path).copied().collect();
        let full = self.fullest(&path)?;
        Some(format!("link {} is {} busy", self.links[full.index].name, full.percent()))
    }

    fn link_or_window(&self, cause: &str) -> String {
        let trip = self.round_trip(cause);
        let window = self.window(cause, trip.as_ref());
        if let Some(full) = self.full_of_data() {
            let sharing = match self.data.flows_through(&full) {
                0 | 1 => String::new(),
                flows => format!(", shared by {flows} flows"),
            };
            let waiting = self.wait_at_source(&full, cause).filter(|_| trip.is_none()).unwrap_or_default();
            return format!("{} ({} busy{sharing}); {window}{waiting}", full.words(), full.percent());
        }
        if let Some(full) = self.fullest(&self.shape.ack_path).filter(|full| self.has_acks_alone(full.index)) {
            let remedy = self.remedy().map_or_else(String::new, |words| format!("; {words}"));
            return format!("ACKs fill {} ({} busy){remedy}; {window}", full.filled(), full.percent());
        }
        window
    }

    /// The wait behind what holds packets at the source of their virtual channel, in words; queues of cells have no
    /// waits of packets.
    fn wait_at_source(&self, full: &Full<'_>, cause: &str) -> Option<String> {
        let own_s = self.own_round_trip_s(cause).filter(|_| full.holds_at_source())?;
        let waited_s = own_s - self.shape.base_rtt_s(self.network);
        let is_told = waited_s >= own_s * WORTH_TELLING;
        let [own, waited] = [own_s, waited_s].map(format::seconds);
        is_told.then(|| format!("; round trip {own}, {waited} of it at the source and in queues of cells"))
    }

    /// The words for a window limit, such as `receive window 64 KiB / round trip 3.2 s, of which
    /// 3.1 s is the queue of link up, where ACKs wait`.
    fn window(&self, cause: &str, measured: Option<&Trip>) -> String {
        // A window is sent once a round trip; a rate is what it is.
        let by = if cause == "pacing" { ", " } else { " / " };
        let trip = measured.map_or_else(String::new, |trip| format!("{by}{}", self.trip(trip)));
        match (cause, self.shape.tcp) {
            ("receive_window", Some(tcp)) => {
                // One that grows, or that a middlebox clamps, is below the configured one.
                let window = self.receive_window.map_or(tcp.window, |window| window.min(tcp.window));
                // The receiver may delay its ACK until it has this number of segments, which the
                // window never allows.
                let waits = |trip: &Trip| trip.rest_s >= trip.mean_s * WORTH_TELLING;
                let (segments, payload) = (tcp.segments_per_ack, self.shape.payload);
                let held = if segments > 1 && window < segments * payload && measured.is_some_and(waits) {
                    format!("; it is under {segments} full segments, so that ACKs also wait for the delayed-ACK timer")
                } else {
                    String::new()
                };
                // RFC 9293, section 3.8.6.2.1: what is left is less than half of the window, and waits.
                let room = if tcp.hidden {
                    ", raised by halves".to_owned()
                } else if (payload..2 * payload).contains(&window) && window > payload {
                    format!(", room for one segment of {payload} bytes")
                } else {
                    String::new()
                };
                match measured.and_then(|trip| self.moved_window(window, trip)) {
                    Some(mean) => format!(
                        "receive window {} on average ({} at the end){trip}{held}",
                        format::bytes(mean),
                        format::window(window)
                    ),
                    None => format!("receive window {}{room}{trip}{held}", format::window(window)),
                }
            }
            ("send_buffer", Some(tcp)) => {
                let bytes = tcp.send_buffer.unwrap_or(tcp.window);
                format!("send buffer {}{trip}", format::window(bytes))
            }
            _ => {
                let control = match (cause, self.is_model()) {
                    ("pacing", true) => "pacing rate of its model",
                    ("pacing", false) => "pacing rate",
                    (_, true) => "window of its model",
                    (_, false) => "congestion window",
                };
                let marked = match self.mark_reductions {
                    count if count <= self.retransmissions => String::new(),
                    1 => ", 1 reduction for CE marks".to_owned(),
                    count => format!(", {count} reductions for CE marks"),
                };
                match self.retransmissions {
                    0 => format!("{control}{trip}{marked}"),
                    count => format!("{control}{trip}{marked}, {}", self.retransmitted(count)),
                }
            }
        }
    }

    /// The mean receive window, by Little's law from goodput and round trip, if it limited nearly all the time and
    /// is not that at the end, of which whole segments are used. QUIC raises its window by halves.
    fn moved_window(&self, at_end: u64, trip: &Trip) -> Option<u64> {
        let limited = self.shares.iter().any(|(cause, share)| cause == "receive_window" && share >= NEARLY_ALL);
        let mean = (self.reached.1 / 8.0 * trip.mean_s).round() as u64;
        let unused = format::to_f64(self.shape.payload) + MOVED * format::to_f64(mean);
        let moved = format::to_f64(mean.abs_diff(at_end)) > unused && !self.shape.tcp.is_some_and(|tcp| tcp.hidden);
        (limited && moved && self.own_round_trip_s("receive_window").is_some()).then_some(mean)
    }

    /// The link carries ACKs and next to nothing else. ACKs of QUIC are not counted there: no flow has data on it.
    fn has_acks_alone(&self, link: usize) -> bool {
        match self.shape.tcp {
            Some(tcp) if tcp.hidden => self.data.flows_over(link) == 0,
            _ => self.interval.ack_share(link) >= ACKS_ALONE,
        }
    }

    /// A remedy of a QUIC sender for ACKs that fill their path, since no middlebox can thin them: a request for fewer
    /// ACKs, if that allows a higher goodput, and for a delay in which the packets of an ACK arrive.
    fn remedy(&self) -> Option<String> {
        let quic = self.network.traffic[self.traffic].source.quic()?;
        let allowed = |every: u32| {
            Some((every, self.shape.by_ratio(self.network, every, (self.interval.from, self.interval.to))?))
        };
        let takes_s = |(every, bps): (u32, f64)| f64::from(every) * format::to_f64(self.shape.payload) * 8.0 / bps;
        let delay_s = quic.ack_delay().as_secs_f64();
        let (mut packets_per_ack, goodput_bps) = self.reached;
        if takes_s(allowed(quic.ack_every())?) <= delay_s {
            packets_per_ack = packets_per_ack.max(quic.ack_every().into());
        }
        let is_more = |(every, bps): &(u32, f64)| f64::from(*every) > packets_per_ack && *bps > goodput_bps;
        let offered: Vec<(u32, f64)> = RATIOS.into_iter().filter_map(allowed).filter(is_more).collect();
        let packets: Vec<String> = offered.iter().map(|(every, _)| every.to_string()).collect();
        let rates: Vec<String> = offered.iter().map(|(_, bps)| format::rate(*bps)).collect();
        let longest_s = offered.iter().copied().map(takes_s).reduce(f64::max)?;
        let delay = if longest_s > delay_s {
            format!(" with `max_delay` of at least {}", format::seconds(longest_s))
        } else {
            String::new()
        };
        Some(format!(
            "no middlebox can thin the ACKs of QUIC; one for {} packets{delay}, which only its sender can request, \
             allows {} while none is lost",
            either(&packets),
            either(&rates)
        ))
    }

    /// The number of retransmissions, in words.
    fn retransmitted(&self, count: u64) -> String {
        let unit = if self.shape.tcp.is_some_and(|tcp| tcp.hidden) { "packet" } else { "segment" };
        if count == 1 { format!("1 {unit} retransmitted") } else { format!("{count} {unit}s retransmitted") }
    }

    /// True if the flow's sender paces by a model of the path, such as BBR.
    fn is_model(&self) -> bool {
        let traffic = &self.network.traffic[self.traffic];
        let sender = traffic.tcp().next();
        sender.is_some_and(|tcp| tcp.variant.measures_rates())
            || traffic.source.quic().is_some_and(|quic| quic.congestion.is_model())
    }

    fn trip(&self, trip: &Trip) -> String {
        let total = format!("round trip {}", format::seconds(trip.mean_s));
        let Some(wait) = trip.worst.filter(|wait| wait.mean_s >= trip.mean_s * WORTH_TELLING) else {
            return format!("{total}, next to none of it in queues");
        };
        let most = if wait.max_s >= wait.mean_s * 1.2 {
            format!(" (at most {})", format::seconds(wait.max_s))
        } else {
            String::new()
        };
        let granted = self.network.links[wait.link].hop.line.grants.is_some();
        let waiting = match (wait.acks, granted) {
            (true, true) => ", where its ACKs wait for grants",
            (true, false) => ", where its ACKs wait",
            (false, true) => ", where packets wait for grants",
            (false, false) => "",
        };
        format!(
            "{total}, of which {}{most} is the queue of link {}{waiting}",
            format::seconds(wait.mean_s),
            self.links[wait.link].name
        )
    }

    /// The flow's own round trip; else the empty path's plus the mean delay in each queue of the path, which is that of
    /// all flows. `None` if no packet of its kind left some queue. Where ACKs are thinned, one acknowledges many
    /// segments, and longer delays leave fewer ACKs, so that the mean over ACKs is too low.
    fn round_trip(&self, cause: &str) -> Option<Trip> {
        let own_s = self.own_round_trip_s(cause);
        let tcp = self.shape.tcp?;
        let wait = |link: usize, acks: bool| {
            let of = if acks && !tcp.hidden { &self.interval.ack_waits } else { &self.interval.waits };
            Some(Wait { link, mean_s: of[link].mean_s()?, max_s: format::to_f64(of[link].max_ns) / 1e9, acks })
        };
        let there = self.shape.data_path.iter().map(|link| wait(*link, false));
        let back = self.shape.ack_path.iter().map(|link| wait(*link, true));
        let mut waits: Vec<Wait> = there.chain(back).collect::<Option<_>>()?;
        let empty_s = self.shape.base_rtt_s(self.network);
        let queued_s: f64 = waits.iter().map(|wait| wait.mean_s).sum();
        if let Some(own_s) = own_s {
            let own_queued_s = (own_s - empty_s).max(0.0);
            let told_s = WORTH_TELLING * own_s;
            let is_split = own_queued_s >= told_s && waits.iter().all(|wait| wait.mean_s < told_s);
            let longest = waits.iter_mut().reduce(|a, b| if b.max_s > a.max_s { b } else { a });
            let rest_s = own_queued_s - queued_s;
            let is_thinned = |wait: &Wait| tcp.is_thinned(&self.network.links[wait.link].hop.queue);
            let is_much = rest_s < 0.0 || rest_s >= told_s || is_split;
            if let Some(other) = longest.filter(|wait| is_much || is_thinned(wait)) {
                // The wait of a class of its own or at busy times, or of the ACKs that the thinning left.
                other.mean_s = (other.mean_s + rest_s).clamp(0.0, other.max_s);
            }
            let waited_s: f64 = waits.iter().map(|wait| wait.mean_s).sum();
            if waited_s > own_queued_s {
                waits.iter_mut().for_each(|wait| wait.mean_s *= own_queued_s / waited_s);
            }
            if rest_s < 0.0 {
                // The longest waits are those of others.
                waits.iter_mut().for_each(|wait| wait.max_s = wait.mean_s);
            }
        }
        let explained_s = empty_s + waits.iter().map(|wait| wait.mean_s).sum::<f64>();
        let mean_s = own_s.unwrap_or(explained_s);
        let worst = waits.into_iter().reduce(|a, b| if b.mean_s > a.mean_s { b } else { a });
        Some(Trip { mean_s, rest_s: mean_s - explained_s, worst })
    }

    /// The flow's own mean round trip of an octet. A receive window and a send buffer hold an octet until it is
    /// acknowledged, retransmitted or not; a congestion window holds it for one of its transmissions.
    fn own_round_trip_s(&self, cause: &str) -> Option<f64> {
        let held = matches!(cause, "receive_window" | "send_buffer");
        if held { self.round_trips.in_flight_s() } else { self.round_trips.measured_s() }
    }

    /// The fullest constraint on each packet of the links of `path`, if it is full.
    fn fullest(&self, path: &[usize]) -> Option<Full<'_>> {
        Full::of(self.network, path, self.interval, self.data)
    }

    /// The fullest constraint on the flow's data, if it is full.
    fn full_of_data(&self) -> Option<Full<'_>> {
        Full::of_data(self.network, self.shape, self.interval, self.data)
    }
}

/// `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
