//! Series: queues, windows and rates at each sample interval.

use lastmile_units::{Duration, Instant};

use super::flow_names;
use crate::hosts::{Autorate, Hosts};
use crate::network::Net;
use crate::network::flow::StateIndex;
use lastmile_model::Network;
use lastmile_model::outcome::Series;

/// Samples every link, and every flow if there are at most `flow_limit` flows.
pub(crate) struct Sampler {
    interval: Duration,
    links: Vec<LinkSeries>,
    /// Queued cells, by link of cells with a limited queue.
    cells: Vec<Series>,
    /// Allowed cell rate and backlog in bytes, by source of ABR.
    sources: Vec<[Series; 2]>,
    /// Rates of the shapers that controllers steer: down and up of each.
    shapers: Vec<Series>,
    flows: Vec<FlowSeries>,
}

struct LinkSeries {
    queue_packets: Series,
    queue_bytes: Series,
    queue_delay: Series,
    rate: Series,
    wire_bits: u64,
}

struct FlowSeries {
    goodput: Series,
    delivered: u64,
    delay: Series,
    jitter: Series,
    tcp: Option<TcpSeries>,
}

struct TcpSeries {
    cwnd: Series,
    ssthresh: Series,
    in_flight: Series,
    acked: Series,
    srtt: Series,
}

impl Sampler {
    pub(crate) fn new(network: &Network, net: &Net, interval: Duration) -> Self {
        let links = network.links.iter().map(|link| LinkSeries::new(&link.hop.name)).collect();
        let of = |link: usize| Series::new("queue_cells", &network.links[link].hop.name);
        let cells = net.cells.iter().flat_map(|cells| cells.sampled()).map(of).collect();
        let steered = network.autorates.iter().flat_map(|autorate| autorate.shapers);
        let shapers = steered.map(|link| Series::new("shaper_rate_bps", &network.links[link].hop.name)).collect();
        let few = net.declared <= network.record.flow_limit;
        let names = flow_names(network).take(if few { usize::MAX } else { 0 });
        let flows = names.zip(&net.flows).map(|(name, flow)| FlowSeries::new(&name, flow.state())).collect();
        let sources = net.cells.iter().flat_map(|cells| cells.sources()).map(|(vc, ..)| {
            let vcs = &network.atm.as_ref().expect("there are cells").network.vcs;
            ["acr_bps", "edge_bytes"].map(|name| Series::new(name, &vcs[vc.index()].name))
        });
        let sources = sources.take(if few { usize::MAX } else { 0 }).collect();
        Self { interval, links, cells, sources, shapers, flows }
    }

    /// Takes a sample. Returns the time of the next one.
    pub(crate) fn sample(&mut self, now: Instant, net: &mut Net, hosts: &Hosts) -> Instant {
        let interval_s = self.interval.as_secs_f64();
        if let Some(cells) = &net.cells {
            let waiting = self.cells.iter_mut().zip(cells.waiting());
            waiting.for_each(|(series, cells)| series.push(now, cells as f64));
            for ([rate, waiting], (_, acr_bps, edge_bytes)) in self.sources.iter_mut().zip(cells.sources()) {
                rate.push(now, acr_bps as f64);
                waiting.push(now, edge_bytes as f64);
            }
        }
        for (series, link) in self.links.iter_mut().zip(&mut net.links) {
            if link.cells {
                continue;
            }
            let backlog = link.line.backlog();
            let mut waits = std::mem::take(&mut link.monitor.others.since_sample);
            waits.join(&std::mem::take(&mut link.monitor.acks.since_sample));
            let wire_bits = link.line.bits_sent(now);
            series.queue_packets.push(now, backlog.packets.as_u64() as f64);
            series.queue_bytes.push(now, backlog.bytes.as_u64() as f64);
            if let Some(mean_s) = waits.mean_s() {
                series.queue_delay.push(now, mean_s);
            }
            series.rate.push(now, wire_bits.saturating_sub(series.wire_bits) as f64 / interval_s);
            series.wire_bits = wire_bits;
        }
        let rates = hosts.autorates.iter().flat_map(Autorate::rates);
        for (series, (_, rate)) in self.shapers.iter_mut().zip(rates) {
            series.push(now, rate.as_bps() as f64);
        }
        for (number, (series, flow)) in self.flows.iter_mut().zip(&net.flows).enumerate() {
            series.sample(now, interval_s, hosts, flow.state());
            let Some((delay_s, jitter_s)) = net.delays.sample(number) else { continue };
            delay_s.into_iter().for_each(|delay_s| series.delay.push(now, delay_s));
            jitter_s.into_iter().for_each(|jitter_s| series.jitter.push(now, jitter_s));
        }
        now + self.interval
    }

    /// All series.
    pub(crate) fn series(&self) -> impl Iterator<Item = &Series> {
        let links = self.links.iter().flat_map(|s| [&s.queue_packets, &s.queue_bytes, &s.queue_delay, &s.rate]);
        let flows = self.flows.iter().flat_map(|s| {
            let tcp = s.tcp.iter().flat_map(|t| [&t.cwnd, &t.ssthresh, &t.in_flight, &t.acked, &t.srtt]);
            [&s.goodput, &s.delay, &s.jitter].into_iter().chain(tcp)
        });
        links.chain(&self.cells).chain(self.sources.iter().flatten()).chain(&self.shapers).chain(flows)
    }

    pub(crate) fn into_series(self) -> Vec<Series> {
        let links = self.links.into_iter().flat_map(|s| [s.queue_packets, s.queue_bytes, s.queue_delay, s.rate]);
        let flows = self.flows.into_iter().flat_map(|s| {
            let tcp = s.tcp.into_iter().flat_map(|t| [t.cwnd, t.ssthresh, t.in_flight, t.acked, t.srtt]);
            [s.goodput, s.delay, s.jitter].into_iter().chain(tcp)
        });
        links
            .chain(self.cells)
            .chain(self.sources.into_iter().flatten())
            .chain(self.shapers)
            .chain(flows)
            .filter(|series| !series.points.is_empty())
            .collect()
    }
}

impl LinkSeries {
    fn new(link: &str) -> Self {
        Self {
            queue_packets: Series::new("queue_packets", link),
            queue_bytes: Series::new("queue_bytes", link),
            queue_delay: Series::new("queue_delay_s", link),
            rate: Series::new("wire_rate_bps", link),
            wire_bits: 0,
        }
    }
}

impl FlowSeries {
    fn new(flow: &str, state: StateIndex) -> Self {
        let tcp = matches!(state, StateIndex::Transfer(_)).then(|| TcpSeries {
            cwnd: Series::new("cwnd_bytes", flow),
            ssthresh: Series::new("ssthresh_bytes", flow),
            in_flight: Series::new("in_flight_bytes", flow),
            acked: Series::new("acked_bytes", flow),
            srtt: Series::new("srtt_s", flow),
        });
        Self {
            goodput: Series::new("goodput_bps", flow),
            delivered: 0,
            delay: Series::new("one_way_delay_s", flow),
            jitter: Series::new("jitter_s", flow),
            tcp,
        }
    }

    fn sample(&mut self, now: Instant, interval_s: f64, hosts: &Hosts, state: StateIndex) {
        let delivered = hosts.bytes_delivered(state);
        if matches!(state, StateIndex::Ping(_)) {
            return;
        }
        self.goodput.push(now, (delivered - self.delivered) as f64 * 8.0 / interval_s);
        self.delivered = delivered;
        let (Some(tcp), StateIndex::Transfer(index)) = (&mut self.tcp, state) else { return };
        let sender = hosts.transfers[index as usize].sender();
        if !sender.is_established() {
            return;
        }
        tcp.cwnd.push(now, f64::from(sender.cwnd_bytes()));
        if let Some(bytes) = sender.ssthresh_bytes() {
            tcp.ssthresh.push(now, f64::from(bytes));
        }
        tcp.in_flight.push(now, sender.in_flight() as f64);
        tcp.acked.push(now, sender.acked() as f64);
        if let Some(srtt) = sender.srtt() {
            tcp.srtt.push(now, srtt.as_secs_f64());
        }
    }
}
