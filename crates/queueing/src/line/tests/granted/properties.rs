//! Any grants: packets in order, within grants, token buckets and the trace.

use super::changing_rates::steps;
use super::*;

prop_compose! {
    fn any_requests()(
        every in 1_u64..4_000,
        response in 0_u64..20_000,
        piggyback: bool,
        contention in proptest::option::of((0_u8..4, 0_u32..80)),
        packet in 0_u8..4,
        most in proptest::option::of(50_u64..4_000),
        first in proptest::option::of(20_u64..500),
        many: bool,
    ) -> Requests {
        let contention = contention.map(|(first, percent)| {
            Contention { first, last: first + 3, collisions: Ratio::from_percent(percent).unwrap() }
        });
        let asks = match packet {
            0 => Asks::Packet,
            _ => Asks::Backlog { most: most.map(WireBytes::new), first: first.map(WireBytes::new) },
        };
        let outstanding = if many { Outstanding::Many } else { Outstanding::One };
        Requests { every: us(every), contention, piggyback, response: us(response), asks, outstanding }
    }
}

prop_compose! {
    fn any_grants()(
        length in 100_u64..3_000,
        parts in proptest::collection::vec((0_u64..100, 0_u64..=100), 1..6),
        requests in proptest::option::weighted(0.8, any_requests()),
        proactive in proptest::option::of((50_u64..5_000, 1_u64..2_000)),
        limits in proptest::collection::vec((500_u64..8_000, 1_600_u64..10_000), 0..3),
        unit in 1_u64..100,
        fragmentation: bool,
        buffer in proptest::option::weighted(0.3, 1_u64..10_000),
        (seed, apart) in (0_u64..1_000, any::<bool>()),
        rates in proptest::option::weighted(0.3, proptest::collection::vec(0_u64..8_000, 1..5)),
        (rounds, period) in (2_u64..20, any::<bool>()),
    ) -> Grants {
        let mut spans: Vec<Span> = parts.iter().map(|(from, to)| {
            let (from, to) = (length * from / 100, length * to / 100);
            Span { start: us(from.min(to)), end: us(from.max(to)) }
        }).collect();
        spans.push(Span { start: Duration::ZERO, end: us(length) });
        let limits = limits.into_iter().map(|(kbit, burst)| {
            Bucket { rate: BitRate::from_kbit_per_s(kbit), burst: WireBytes::new(burst) }
        });
        let whole = requests.as_ref().is_none_or(|requests| match requests.asks {
            Asks::Packet => true,
            Asks::Backlog { first, .. } => first.is_none() && requests.outstanding == Outstanding::One,
        });
        let slots = Slots::new(us(length), spans).unwrap();
        let trace = rates.map(|rates| steps(&rates, slots.round() * rounds, period));
        let fragmentation = fragmentation || !whole || trace.is_some();
        let limits = limits.take(if trace.is_some() { 0 } else { usize::MAX });
        Grants {
            rate: byte_rate(),
            trace,
            slots,
            requests,
            unit: NonZeroU64::new(unit).unwrap(),
            fragmentation,
            proactive: proactive.map(|(every, bytes)| Proactive { every: us(every), bytes: WireBytes::new(bytes) }),
            apart,
            limits: limits.collect(),
            buffer: buffer.map(WireBytes::new),
            seed,
        }
    }
}

/// Drives a line with wake-ups that are up to `late` us late, and at least as often as packets come.
fn drive(grants: &Grants, packets: &[(u64, u16)], late: u64) -> (Log, Line<Meta>) {
    let mut line = granted(grants.clone());
    let mut log = Log::default();
    let wake = |line: &mut Line<Meta>, log: &mut Log, until: Option<Instant>| {
        for _ in 0..200_000 {
            let Some(due) = line.next_transmission() else { return };
            let at = due + us(late);
            if until.is_some_and(|until| at >= until) {
                return;
            }
            line.transmit(at, log);
        }
        panic!("{} wait for ever", line.backlog().packets);
    };
    for (number, (at, len)) in (0..).zip(packets) {
        wake(&mut line, &mut log, Some(at_us(*at)));
        line.enqueue(at_us(*at), packet(number, *len), &mut log);
    }
    wake(&mut line, &mut log, None);
    (log, line)
}

proptest! {
    /// Every packet is sent, in order and once; no more is sent than granted, and no bucket is exceeded; a late
    /// wake-up changes nothing.
    #[test]
    fn grants_hold(
        grants in any_grants(),
        gaps in proptest::collection::vec((0_u64..5_000, 20_u16..3_000), 1..60),
        late in 1_u64..5_000,
    ) {
        let mut time = 0;
        let packets: Vec<(u64, u16)> = gaps.iter().map(|(gap, len)| { time += gap; (time, *len) }).collect();
        let (log, line) = drive(&grants, &packets, 0);
        let sent = log.transmitted;
        prop_assert!(sent.iter().map(|(number, ..)| *number).eq(0..packets.len() as u32));
        let bytes: u64 = packets.iter().map(|(_, len)| u64::from(*len)).sum();
        prop_assert_eq!(line.stats().wire_bytes.as_u64(), bytes);
        let counts = *line.grants().unwrap();
        prop_assert!(bytes <= counts.granted - counts.unused + counts.unasked, "{counts:?}");
        prop_assert!(counts.collisions + counts.piggybacked <= counts.requests, "{counts:?}");
        let waits = log.granted.len() as u64;
        prop_assert!(waits <= counts.grants && waits <= counts.requests - counts.collisions, "{counts:?}");
        // No request is granted before the response.
        let response = grants.requests.as_ref().map_or(Duration::ZERO, |requests| requests.response);
        prop_assert!(log.granted.iter().all(|waited| *waited >= response));

        // No more than the usable spans of the trace let pass.
        if let Some(work) = grants.work_between(Instant::ZERO, line.busy_until) {
            let most = work / 8_000_000_000_000;
            prop_assert!(u128::from(bytes) <= most + 1, "{bytes} of {most}");
        }

        // The end of the last packet: no bucket allows more than its burst and its rate until then, and the padding
        // of a grant to a whole unit.
        let end = line.busy_until.as_secs_f64();
        for bucket in &grants.limits {
            let refilled = bucket.rate.as_bps() as f64 / 8.0 * end;
            let most = bucket.burst.as_u64() as f64 + refilled + grants.unit.get() as f64;
            // The last grant may begin after that end, so what was sent counts, not what was granted.
            let sent = bytes - counts.unasked;
            prop_assert!(sent as f64 <= most, "{sent} of {most}");
            // One grant is not used yet, and has no more than the tokens of a full bucket.
            let kept = counts.granted - counts.unused.min(counts.granted);
            prop_assert!(kept as f64 <= most + bucket.burst.as_u64() as f64, "{kept} of {most}");
        }
        let (rate, beyond) = grants.at_most().unwrap();
        prop_assert!(bytes as f64 <= rate.as_bps() as f64 / 8.0 * end + beyond.as_u64() as f64, "{rate} and {beyond}");
        // Transmissions begin in usable spans, and the line sends at most at its rate.
        let mut arrivals: Vec<Instant> = line.in_flight.on_wire().map(|packet| packet.arrived).collect();
        prop_assert!(arrivals.is_sorted());
        arrivals.dedup();
        prop_assert_eq!(arrivals.len(), packets.len());

        let (again, _) = drive(&grants, &packets, late);
        prop_assert_eq!((sent, log.granted), (again.transmitted, again.granted));
    }
}
