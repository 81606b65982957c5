//! The choice of the next segment: new data, a retransmission, or a probe.
//!
//! Published: RFC 5681; RFC 3042 (limited transmit); RFC 6675, section 5 (SACK); RFC 9293, section
//! 3.8.6.2.1 (silly windows).
//! Differs: no Nagle algorithm, so offered data are sent at once. After a timeout without SACK, and in
//! Tahoe, the sender goes back to the hole and sends all octets from there.
//! Cost: without losses a dozen comparisons and additions for each segment.

use lastmile_units::{Duration, Instant};

use super::flight::Accounting;
use super::repair::Frto;
use super::{Alarm, Sender, Urgent};
use crate::ranges::Range;
use crate::{Config, Limit};

/// A segment to send: octets `start..end` of the stream, the FIN counted as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// True if the segment is a retransmission.
    pub(crate) again: bool,
    /// True if the segment is an octet beyond the peer's shut window.
    pub(crate) probe: bool,
}

impl Plan {
    pub(super) fn new_data(start: u64, end: u64) -> Self {
        Self { start, end, again: false, probe: false }
    }

    pub(super) fn retransmission(range: Range) -> Self {
        Self { start: range.start, end: range.end, again: true, probe: false }
    }
}

/// The header fields of a segment that the sender determines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentInfo {
    /// Payload bytes.
    pub(crate) len: u16,
    pub(crate) push: bool,
    pub(crate) fin: bool,
    /// The segment is ECN-capable, and carries CWR.
    pub(crate) ecn_capable: bool,
    pub(crate) cwr: bool,
}

impl Sender {
    /// The segment to send now, or the reason that forbids it.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, config: &Config) -> Result<Plan, Limit> {
        if self.buffer.is_unused() {
            return Err(Limit::Application);
        }
        if let Some(urgent) = self.data.urgent.take()
            && let Some(plan) = self.next_urgent(now, config, urgent)
        {
            return Ok(plan);
        }
        let idle = self.data.flight.is_empty();
        if idle {
            self.after_idle(now, config);
        }
        if self.data.pacer.is_some()
            && let Some(limit) = self.held_by_pacing(now, config)
        {
            self.note_use(now, config, limit);
            self.await_window(now, config, limit);
            return Err(limit);
        }
        let plan = match self.data.flight.accounting() {
            Accounting::Cumulative => self.next_in_order(now, config),
            Accounting::Scoreboard(_) => self.next_by_sack(config),
            Accounting::Transmissions => self.next_by_rack(config),
        };
        match plan {
            Ok(plan) => {
                if idle {
                    self.end_idle(now, plan);
                }
                self.note_sent(now, config, plan);
            }
            Err(limit) => {
                self.note_use(now, config, limit);
                self.await_window(now, config, limit);
                if matches!(limit, Limit::Application | Limit::SendBuffer) && self.data.rate.is_some() {
                    self.note_app_limited();
                }
            }
        }
        plan
    }

    /// Records a segment as sent.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, now: Instant, config: &Config, plan: Plan) {
        let len = (plan.end - plan.start) as u32;
        if config.congestion.tso_deferral {
            let joins = !plan.again && now == self.data.flight.last_sent();
            self.data.packet = len + if joins { self.data.packet } else { 0 };
            self.note_written(plan.end);
        }
        if self.data.pacer.is_some() {
            self.note_paced(now, plan, len);
        }
        self.data.flight.on_sent(now);
        if plan.again {
            self.note_retransmission(now, config, plan, len);
        } else if self.rtt.is_linux() {
            if plan.start < self.buffer.end() {
                self.data.flight.set_last_start(plan.start);
            }
            self.data.flight.transmissions_mut().on_sent(now, plan.end);
        } else {
            self.rtt.time_segment(now, plan.end);
        }
        // RFC 6298 (5.1) Every time a packet containing data is sent (including a retransmission), if the
        // timer is not running, start it.
        let alarm = self.timers.alarm();
        if alarm.is_none() || alarm == Some(Alarm::Persist) {
            self.arm(now, config, true);
        } else if self.data.repair.is_rack() {
            // As in Linux: new data postpone a tail loss probe, and the first retransmission the timeout.
            if self.data.repair.is_open() {
                self.postpone_probe(now, config);
            } else if plan.again && plan.start == self.data.flight.una() && alarm != Some(Alarm::Reordering) {
                self.set_rto(now, config);
            }
        }
    }

    /// Linux divides what an application writes into socket buffers when it is written. The octets up to `end` are
    /// sent: if they are all, a new buffer begins with the next write.
    fn note_written(&mut self, end: u64) {
        if end >= self.buffer.end() {
            self.data.socket_buffer_end = end;
        }
        while self.data.socket_buffer_end < end {
            self.data.socket_buffer_end += self.socket_buffer();
        }
    }

    /// The size of a full socket buffer (`tcp_xmit_size_goal`): whole segments of 64 KiB without the space for headers,
    /// and of half of the peer's largest window.
    fn socket_buffer(&self) -> u64 {
        const MOST: u64 = 65_535 - 320;
        let mss = u64::from(self.mss);
        (MOST.min(u64::from(self.peer.largest() / 2)) / mss).max(1) * mss
    }

    #[cold]
    fn note_retransmission(&mut self, now: Instant, config: &Config, plan: Plan, len: u32) {
        let una = self.data.flight.una();
        let alone = self.data.flight.transmissions().retransmitted() <= una;
        self.data.repair.on_retransmission(len, config.timers.timestamp(now), alone);
        let range = Range { start: plan.start, end: plan.end };
        if !self.rtt.is_linux() {
            self.rtt.abandon_timed_segment();
        } else if self.data.repair.is_rack() {
            self.data.flight.transmissions_mut().retransmit(now, una, range);
        } else {
            self.data.flight.transmissions_mut().on_retransmitted(now, una, range);
        }
    }

    #[inline]
    fn next_in_order(&mut self, now: Instant, config: &Config) -> Result<Plan, Limit> {
        let (start, max, offered) = (self.data.flight.nxt(), self.data.flight.max(), self.buffer.end());
        let again = start < max;
        let last = if again { max.min(offered) } else { offered };
        let len = last.saturating_sub(start).min(u64::from(self.mss));
        if len == 0 {
            return self.next_fin();
        }
        let flight = start - self.data.flight.una();
        let fits = again || flight + len <= self.data.capacity;
        let len = if fits { len } else { self.next_of_full_buffer(flight)? };
        let cwnd = self.usable_cwnd(config);
        // Octets sent once were within the window then, and a receiver should not shrink it.
        let free = self.peer.edge().max(max) - start;
        if flight + len > cwnd {
            return Err(self.shut_by_cwnd(cwnd, free < len));
        }
        if config.congestion.tso_deferral && !again && self.gathers(now, cwnd, flight) {
            return Err(Limit::CongestionWindow);
        }
        let len = self.peer.admits(free, len).ok_or(Limit::ReceiveWindow)?;
        let end = start + len;
        if !again {
            self.data.repair.on_new_data(len);
        }
        // The FIN is sent with the last data, whatever the window.
        let fin = end == offered && self.buffer.is_closing() && (!again || self.fin_sent());
        let end = end + u64::from(fin);
        self.data.flight.set_nxt(end);
        Ok(Plan { start, end, again, probe: false })
    }

    /// The send buffer has less space than a segment of new octets needs, with `flight` octets in flight. A smaller
    /// segment is sent only where a whole one never fits: an application is woken for larger parts
    /// (`sk_stream_is_writeable`).
    #[cold]
    pub(super) fn next_of_full_buffer(&self, flight: u64) -> Result<u64, Limit> {
        if flight == 0 { Ok(self.data.capacity) } else { Err(Limit::SendBuffer) }
    }

    /// Waits for a larger part of the window, to send about a millisecond's worth at once. Linux does so with
    /// any offload settings: it builds packets of that size, and a device without segmentation receives their
    /// segments back to back. It waits at most 1 ms after the last packet, or after the time at which pacing admits
    /// the next one (`tcp_wstamp_ns`), for at most a third of the window, only if the application has offered
    /// more than the window admits, only if the window does not admit the rest of a socket buffer that was full
    /// (`tcp_tso_should_defer`: "Middle in queue"; the packet is then filled from the next buffer as far as the window
    /// admits, `tcp_grow_skb`), and only if the next acknowledgement is expected within 1 ms
    /// (half of a round trip, if that is less). The acknowledgement is expected a smoothed round trip after the
    /// transmission of the oldest segment in flight (Linux 6.18, and stable kernels from October 2025 on; earlier
    /// kernels waited if that segment was older than half of the round trip).
    fn gathers(&self, now: Instant, cwnd: u64, flight: u64) -> bool {
        const RECENT: Duration = Duration::from_ms(1);
        let last_sent = self.data.flight.last_sent();
        let apart = self.data.pacer.as_deref().map_or_else(|| now.since(last_sent), |pacer| pacer.admitted_for(now));
        let usable = cwnd - flight;
        let max = self.data.flight.max();
        let building = now == last_sent && self.data.packet > 0;
        let rest = self.data.socket_buffer_end.saturating_sub(max);
        let rest_fits = (1..=usable).contains(&rest) || self.buffer.end() - max <= usable;
        if building || apart > RECENT || usable >= cwnd / 3 || rest_fits || self.is_burst(usable) {
            return false;
        }
        let srtt = self.rtt.srtt().unwrap_or_default();
        let soon = Duration::from_ps(srtt.as_ps() / 2).min(Duration::from_ms(1));
        let age = self.data.flight.transmissions().first_age(now);
        !self.rtt.is_linux() || age.is_none_or(|age| age >= srtt.saturating_sub(soon))
    }

    /// The size of the packets that Linux builds: the octets of 2^-10 s at the rate of the window and a
    /// fifth more (twice that rate in the first half of slow start), in whole segments, at least two and at
    /// most 64 KiB. A burst of Prague has the octets of 2^-12 s and at least one segment (`prague_burst_shift`;
    /// RFC 9331, section 4.3).
    pub(super) fn burst(&self) -> u64 {
        let mss = u64::from(self.mss);
        if let Some(rate) = self.pacing_rate() {
            let (parts, least) = match &self.data.congestion {
                control if control.is_smooth() => (4096, 1),
                // `bbr_min_tso_segs`: below 1.2 Mbit/s a burst of BBR may have a single segment.
                control if control.is_model() && rate.octets_per_s() < 150_000 => (1024, 1),
                _ => (1024, 2),
            };
            return ((rate.octets_per_s() / parts).min(65_535) / mss).max(least) * mss;
        }
        let (cwnd, ssthresh) = (self.data.congestion.cwnd(), self.data.congestion.ssthresh());
        let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let srtt_ns = self.rtt.srtt().map_or(1, |srtt| srtt.as_ns().max(1));
        let worth = u64::from(cwnd) * percent / 100 * 976_562 / srtt_ns;
        (worth.min(65_535) / mss).max(2) * mss
    }

    /// True if `octets` are at least a burst. Without pacing a burst has at least two segments: that test decides most
    /// cases without the divisions of `burst`.
    #[inline]
    pub(super) fn is_burst(&self, octets: u64) -> bool {
        (octets >= 2 * u64::from(self.mss) || self.data.pacer.is_some()) && octets >= self.burst()
    }

    /// The segment just sent ends a packet of several segments: the packet has its full size, or the
    /// windows admit no more. Linux sets PSH on it.
    fn ends_packet(&mut self) -> bool {
        let (mss, max) = (u64::from(self.mss), self.data.flight.max());
        let follows = self.buffer.end().saturating_sub(max).min(mss);
        let shut = self.in_flight() + mss > u64::from(self.data.congestion.cwnd()) || max + follows > self.peer.edge();
        if !shut && !self.is_burst(u64::from(self.data.packet)) {
            return false;
        }
        core::mem::take(&mut self.data.packet) > u32::from(self.mss)
    }

    /// All offered octets are sent.
    fn next_fin(&mut self) -> Result<Plan, Limit> {
        if !self.buffer.is_closing() {
            return Err(Limit::Application);
        }
        let start = self.data.flight.nxt();
        if start > self.buffer.end() {
            return Err(Limit::AwaitingAck);
        }
        self.data.flight.set_nxt(start + 1);
        Ok(Plan { start, end: start + 1, again: self.fin_sent(), probe: false })
    }

    /// RFC 3042, section 2: each of the first two duplicate acknowledgements allows a segment beyond the
    /// window. Only without SACK, since SACKed octets leave the pipe of RFC 6675.
    #[inline]
    pub(super) fn usable_cwnd(&self, config: &Config) -> u64 {
        let cwnd = u64::from(self.data.congestion.cwnd());
        let duplicates = self.data.repair.dup_acks();
        if duplicates == 0 || !self.data.repair.is_open() || !config.congestion.limited_transmit {
            return cwnd;
        }
        cwnd + u64::from(duplicates.min(2)) * u64::from(self.mss)
    }

    pub(super) fn shut_by_cwnd(&self, cwnd: u64, window_shut: bool) -> Limit {
        if self.timers.backoff() > 0 {
            Limit::AwaitingAck
        } else if window_shut && self.peer.edge() <= self.data.flight.una() + cwnd {
            Limit::ReceiveWindow
        } else {
            Limit::CongestionWindow
        }
    }

    /// The congestion window admits a full segment where SACK decides. Without limited transmit, SACKed
    /// octets release segments only in a repair.
    pub(super) fn fits_cwnd(&self, config: &Config) -> Result<(), Limit> {
        let outside = self.data.repair.is_open() && !config.congestion.limited_transmit;
        let counted = if outside { self.data.flight.size() } else { self.in_flight() };
        let cwnd = u64::from(self.data.congestion.cwnd());
        if counted + u64::from(self.mss) > cwnd { Err(self.shut_by_cwnd(cwnd, false)) } else { Ok(()) }
    }

    /// RFC 6675, section 5: steps 3.3 and C, and after a timeout the holes in order.
    fn next_by_sack(&mut self, config: &Config) -> Result<Plan, Limit> {
        self.fits_cwnd(config)?;
        let (una, max, mss) = (self.data.flight.una(), self.data.flight.max(), u32::from(self.mss));
        let new_first = self.data.repair.frto() == Some(Frto::Second);
        if !self.data.repair.is_open()
            && !new_first
            && let Some(part) = self.data.flight.board_mut().and_then(|board| board.next_lost(una, max, mss))
        {
            return Ok(Plan::retransmission(part));
        }
        let limit = match self.next_limited(new_first) {
            Ok(plan) => return Ok(plan),
            Err(_) if new_first && self.data.repair.frto().is_none() => return self.next_by_sack(config),
            Err(limit) => limit,
        };
        if self.data.repair.in_recovery()
            && let Some(board) = self.data.flight.board_mut()
        {
            let part = board.next_suspect(una, max, mss);
            let part = part.or_else(|| board.rescue(una, max, mss, self.data.repair.recover()));
            return part.map(Plan::retransmission).ok_or(limit);
        }
        Err(limit)
    }

    /// Lost octets, then new data. As in Linux with RACK, only octets known to be lost are retransmitted.
    fn next_by_rack(&mut self, config: &Config) -> Result<Plan, Limit> {
        self.fits_cwnd(config)?;
        let new_first = self.data.repair.frto() == Some(Frto::Second);
        if self.data.flight.transmissions().lost() > 0
            && !new_first
            && let Some(part) = self.data.flight.first_lost(u32::from(self.mss))
        {
            return Ok(Plan::retransmission(part));
        }
        match self.next_limited(new_first) {
            Err(_) if new_first && self.data.repair.frto().is_none() => self.next_by_rack(config),
            result => result,
        }
    }

    /// New data where SACK decides. RFC 5682, section 2.1, step 2b: if F-RTO wants new data and none can be sent, the
    /// timeout counts as genuine. A single new segment is enough, as in Linux.
    fn next_limited(&mut self, frto: bool) -> Result<Plan, Limit> {
        let result = self.next_new();
        match result {
            Ok(plan) if self.data.repair.is_open() => self.data.repair.on_new_data(plan.end - plan.start),
            Err(_) if frto && self.data.flight.max() <= self.data.repair.recover() => self.data.repair.end_frto(),
            _ => {}
        }
        result
    }

    /// RFC 6675, section 4, NextSeg, rule 2: octets never sent, as the peer's window allows.
    pub(super) fn next_new(&mut self) -> Result<Plan, Limit> {
        let (start, offered) = (self.data.flight.max(), self.buffer.end());
        let len = offered.saturating_sub(start).min(u64::from(self.mss));
        if len == 0 {
            return self.next_fin();
        }
        let flight = self.data.flight.size();
        let fits = flight + len <= self.data.capacity;
        let len = if fits { len } else { self.next_of_full_buffer(flight)? };
        let free = self.peer.edge().saturating_sub(start);
        let end = start + self.peer.admits(free, len).ok_or(Limit::ReceiveWindow)?;
        let end = end + u64::from(end == offered && self.buffer.is_closing());
        self.data.flight.set_nxt(end);
        Ok(Plan::new_data(start, end))
    }

    /// A segment that the congestion window does not limit: the first one once more, or a probe.
    #[cold]
    fn next_urgent(&mut self, now: Instant, config: &Config, urgent: Urgent) -> Option<Plan> {
        match urgent {
            Urgent::WindowProbe => return self.next_window_probe(now, config),
            Urgent::TailLossProbe => return self.next_tail_loss_probe(now, config),
            Urgent::First => {}
        }
        let (una, max, mss) = (self.data.flight.una(), self.data.flight.max(), u32::from(self.mss));
        let range = if let Some(board) = self.data.flight.board_mut() {
            board.retransmit_first(una, max, mss)
        } else if self.data.repair.is_rack() {
            self.data.flight.first_lost(mss)?
        } else {
            // The FIN is part of it if it was before.
            let last = una + u64::from(mss);
            Range { start: una, end: if last >= self.buffer.end() { max } else { last.min(max) } }
        };
        let plan = Plan::retransmission(range);
        self.note_sent(now, config, plan);
        Some(plan)
    }

    /// Nothing is in flight. RFC 5681, section 4.1: after more than one retransmission timeout without
    /// sending, the window is at most the initial one. A sender that repairs losses as Linux does also restarts as
    /// Linux does.
    fn after_idle(&mut self, now: Instant, config: &Config) {
        let last_sent = self.data.flight.last_sent();
        if self.buffer.end() > self.data.flight.max() && self.data.pacer.is_some() {
            self.restart_model(now);
        }
        if config.congestion.idle_restart
            && self.data.flight.max() > 1
            && now.since(last_sent) > self.rtt.rto()
            && self.timers.alarm() != Some(Alarm::Persist)
            && !self.data.congestion.is_model()
        {
            let least = config.congestion.initial_window.bytes(self.mss);
            if !self.data.repair.is_rack() {
                self.data.congestion.hold_at(least);
            } else if self.buffer.end() > self.data.flight.max() {
                self.data.congestion.restart(now, last_sent, self.rtt.rto(), (least, u32::from(self.mss)));
                self.data.usage.restart(now);
            }
        }
    }

    /// A segment departs after a time with nothing in flight, however often the sender was asked in it. As in Linux
    /// (`CA_EVENT_TX_START`), only one with data ends that time.
    pub(super) fn end_idle(&mut self, now: Instant, plan: Plan) {
        if plan.start < self.buffer.end() {
            self.data.congestion.on_idle(now, self.data.flight.last_sent());
        }
    }

    /// Counts a planned segment and determines its header fields.
    #[inline]
    pub(crate) fn describe(&mut self, config: &Config, plan: Plan, ecn: bool) -> SegmentInfo {
        let offered = self.buffer.end();
        let data_end = plan.end.min(offered);
        let len = (data_end - plan.start) as u16;
        let mut push = false;
        if len > 0 {
            self.data.stats.data_packets += 1;
            self.data.stats.data_bytes_sent += u64::from(len);
            push = self.pushes(config, plan, data_end);
        }
        if plan.again {
            self.stats.retransmissions += 1;
            self.data.stats.retransmitted_bytes += u64::from(len);
        }
        // RFC 3168, sections 6.1.1 and 6.1.5: only new data are ECN-capable; 6.1.2: the first carries CWR.
        let ecn_capable = ecn && len > 0 && !plan.again && !plan.probe;
        let cwr = ecn_capable && self.data.ecn.take_cwr();
        SegmentInfo { len, push, fin: plan.end > offered, ecn_capable, cwr }
    }

    /// PSH. Real stacks push at the end of a write; here that is where no more is offered. Linux also
    /// pushes within a long write, and at the end of a packet of several segments.
    #[inline]
    fn pushes(&mut self, config: &Config, plan: Plan, data_end: u64) -> bool {
        if data_end == self.buffer.end() {
            return true;
        }
        if config.acks.quick_acks {
            let half = u64::from(self.peer.largest() / 2).max(1);
            if plan.start % half + (data_end - plan.start) >= half {
                return true;
            }
        }
        config.congestion.tso_deferral && !plan.again && self.ends_packet()
    }
}
