use proptest::prelude::*;

use super::*;

fn problem<T: FromStr<Err = ParseError> + core::fmt::Debug>(text: &str) -> Problem {
    text.parse::<T>().expect_err(text).problem().clone()
}

fn message<T: FromStr<Err = ParseError> + core::fmt::Debug>(text: &str) -> String {
    text.parse::<T>().expect_err(text).to_string()
}

#[test]
fn times_are_read_in_every_unit() {
    let cases = [
        ("20 ms", Duration::from_ms(20)),
        ("1.5 s", Duration::from_ms(1_500)),
        ("0 ms", Duration::ZERO),
        ("100 us", Duration::from_us(100)),
        ("100 \u{b5}s", Duration::from_us(100)),
        ("100 \u{3bc}s", Duration::from_us(100)),
        ("3 ns", Duration::from_ns(3)),
        ("7ps", Duration::from_ps(7)),
        ("2.831196 us", Duration::from_ps(2_831_196)),
        ("2 min", Duration::from_s(120)),
        ("0.5 h", Duration::from_s(1_800)),
        ("  20\u{a0}ms\t", Duration::from_ms(20)),
        ("007 ms", Duration::from_ms(7)),
        ("1.50000000000000000000000000000000000000000000 s", Duration::from_ms(1_500)),
    ];
    for (text, span) in cases {
        assert_eq!(text.parse(), Ok(span), "{text}");
        assert_eq!(text.parse(), Ok(Instant::ZERO + span), "{text}");
    }
}

#[test]
fn rates_are_read_as_written_on_paper_and_as_tc_writes_them() {
    let cases = [
        ("512 kbit/s", 512_000),
        ("2 Mbit/s", 2_000_000),
        ("1.544 Mbit/s", 1_544_000),
        ("149.76 Mbit/s", 149_760_000),
        ("9600 bit/s", 9_600),
        ("512kbit", 512_000),
        ("512Kbit", 512_000),
        ("2mbit", 2_000_000),
        ("1 Gbit/s", 1_000_000_000),
        ("1 Tbit/s", 1_000_000_000_000),
        ("64 Kibit/s", 65_536),
        ("28.8 kbits/sec", 28_800),
    ];
    for (text, bps) in cases {
        assert_eq!(text.parse::<BitRate>().map(BitRate::as_bps), Ok(bps), "{text}");
    }
}

#[test]
fn a_kb_is_a_thousand_and_a_kib_1024() {
    let cases = [
        ("206 kB", 206_000),
        ("64 KiB", 65_536),
        ("1500 B", 1_500),
        ("1500 bytes", 1_500),
        ("1 byte", 1),
        ("52.5 MB", 52_500_000),
        ("2 MiB", 2 << 20),
        ("1 GB", 1_000_000_000),
        ("1 GiB", 1 << 30),
        ("0.5 KiB", 512),
        ("0.000000000931322574615478515625 GiB", 1),
        ("18446744073709551615 B", u64::MAX),
    ];
    for (text, count) in cases {
        assert_eq!(text.parse::<ByteCount>().map(ByteCount::as_u64), Ok(count), "{text}");
    }
}

#[test]
fn the_unit_of_a_limit_says_what_it_counts() {
    assert_eq!("100 packets".parse(), Ok(Limit::Packets(PacketCount::new(100))));
    assert_eq!("206 kB".parse(), Ok(Limit::Bytes(ByteCount::new(206_000))));
    assert_eq!("1000 cells".parse(), Ok(Limit::Cells(CellCount::new(1_000))));
    assert_eq!("5300 wire bytes".parse(), Ok(Limit::Wire(WireBytes::new(5_300))));
    assert_eq!(
        message::<Limit>("100"),
        "\"100\" has no unit; write for example \"100 packets\" (units: packets, bytes (B, kB, KiB, MB, MiB), \
         cells, or ms for a time at the rate of the line)"
    );
}

#[test]
fn a_small_b_counts_bits_as_everywhere_but_in_tc() {
    for (text, bps) in
        [("40 Mbps", 40_000_000), ("512 kb/s", 512_000), ("1.5 Gbps", 1_500_000_000), ("9600 bps", 9_600)]
    {
        assert_eq!(text.parse::<BitRate>().map(BitRate::as_bps), Ok(bps), "{text}");
    }
    assert_eq!(message::<BitRate>("5 MB/s"), "\"5 MB/s\" counts bytes; a bit rate counts bits: write \"40 Mbit/s\"");
}

#[test]
fn shares_are_exact() {
    assert_eq!("20 %".parse(), Ok(Ratio::from_percent(20).unwrap()));
    assert_eq!("0.5%".parse(), Ok(Ratio::from_ppm(5_000).unwrap()));
    assert_eq!("5 ppm".parse(), Ok(Ratio::from_ppm(5).unwrap()));
    assert_eq!("100 percent".parse(), Ok(Ratio::ONE));
    assert_eq!(problem::<Ratio>("101 %"), Problem::TooLarge);
    assert_eq!(problem::<Ratio>("0.00000001 %"), Problem::TooFine);
    assert_eq!(problem::<BitRate>("512"), Problem::MissingUnit { write: "512 kbit/s".into() });
    assert_eq!(problem::<BitRate>("1000000"), Problem::MissingUnit { write: "1000000 bit/s".into() });
    assert_eq!(problem::<BitRate>("20000000.0"), Problem::MissingUnit { write: "20000000 bit/s".into() });
    assert_eq!(problem::<Ratio>("20"), Problem::MissingUnit { write: "20 %".into() });
    assert_eq!(
        message::<Ratio>("0.01"),
        "\"0.01\" can be read in two ways; write \"1 %\" (a share of one) or \"0.01 %\" (percent)"
    );
}

/// Whole numbers of bytes are mostly sizes of packets and windows.
#[test]
fn a_number_without_a_unit_gets_the_usual_one() {
    assert_eq!(problem::<ByteCount>("1500"), Problem::MissingUnit { write: "1500 B".into() });
    assert_eq!(problem::<ByteCount>("1.5"), Problem::MissingUnit { write: "1.5 kB".into() });
}

/// `tc(8)`, section PARAMETERS: `bps` and `kbps` are bytes per second there.
#[test]
fn what_can_be_read_in_two_ways_is_refused_with_both() {
    assert_eq!(
        message::<BitRate>("512 kb"),
        "\"512 kb\" can be read in two ways; write \"512 kbit/s\" (kilobits) or \"4096 kbit/s\" (kilobytes)"
    );
    assert_eq!(
        message::<BitRate>("1.5 M"),
        "\"1.5 M\" can be read in two ways; write \"1.5 Mbit/s\" (megabits) or \"12 Mbit/s\" (megabytes)"
    );
    assert_eq!(
        message::<Duration>("5 m"),
        "\"5 m\" can be read in two ways; write \"5 min\" (minutes) or \"5 ms\" (milliseconds)"
    );
    assert_eq!(
        message::<ByteCount>("64 K"),
        "\"64 K\" can be read in two ways; write \"64 kB\" (thousands) or \"64 KiB\" (1024s)"
    );
    assert_eq!(
        message::<ByteCount>("1 Mb"),
        "\"1 Mb\" can be read in several ways; write \"1 MB\" (millions), \
         \"1 MiB\" (1024s of 1024) or \"125 kB\" (bits)"
    );
    assert_eq!(message::<ByteCount>("8 b"), "\"8 b\" can be read in two ways; write \"8 B\" (bytes) or \"1 B\" (bits)");
}

#[test]
fn every_reading_that_an_error_offers_parses() {
    for unit in ["KB/s", "k", "K", "kb", "Mb", "m", "G", "gb"] {
        offers_parse::<BitRate>(unit);
    }
    for unit in ["b", "k", "KB", "kb", "Kb", "M", "mb", "Mb", "g", "Gb"] {
        offers_parse::<ByteCount>(unit);
        offers_parse::<Limit>(unit);
    }
    offers_parse::<Duration>("m");
    offers_parse::<Duration>("M");
}

fn offers_parse<T: FromStr<Err = ParseError> + core::fmt::Debug>(unit: &str) {
    let Problem::Ambiguous { readings } = problem::<T>(&format!("16 {unit}")) else { panic!("{unit} is ambiguous") };
    assert!(readings.len() >= 2, "{unit}");
    for Reading { write, .. } in readings {
        assert!(write.parse::<T>().is_ok(), "{unit}: {write}");
    }
}

#[test]
fn every_example_and_suggestion_parses() {
    assert!(Quantity::Time.example().parse::<Duration>().is_ok());
    assert!(Quantity::Rate.example().parse::<BitRate>().is_ok());
    assert!(Quantity::Bytes.example().parse::<ByteCount>().is_ok());
    assert!(Quantity::WireBytes.example().parse::<WireBytes>().is_ok());
    assert!(Quantity::Cells.example().parse::<CellCount>().is_ok());
    assert!(Quantity::Packets.example().parse::<PacketCount>().is_ok());
    assert!(Quantity::Share.example().parse::<Ratio>().is_ok());
    assert!(Quantity::Limit.example().parse::<Limit>().is_ok());
    assert_eq!(problem::<BitRate>("4 MB/s"), Problem::CountsBytes { write: "32 Mbit/s".into() });
    assert_eq!(problem::<BitRate>("0.5 KiB/s"), Problem::CountsBytes { write: "4 Kibit/s".into() });
    assert!("4 Kibit/s".parse::<BitRate>().is_ok());
}

#[test]
fn a_unit_of_something_else_is_named_for_what_it_is() {
    assert_eq!(
        message::<BitRate>("20 ms"),
        "\"20 ms\" is a time, where a bit rate is expected, for example \"512 kbit/s\""
    );
    assert_eq!(problem::<Duration>("512 kbit/s"), Problem::WrongKind { found: Quantity::Rate });
    assert_eq!(problem::<CellCount>("100 packets"), Problem::WrongKind { found: Quantity::Packets });
    assert_eq!(problem::<ByteCount>("53 wire bytes"), Problem::WrongKind { found: Quantity::WireBytes });
    assert_eq!(problem::<WireBytes>("53 bytes"), Problem::WrongKind { found: Quantity::Bytes });
    assert_eq!(problem::<Limit>("20 %"), Problem::WrongKind { found: Quantity::Share });
    assert_eq!(problem::<BitRate>("4 MB"), Problem::WrongKind { found: Quantity::Bytes });
}

#[test]
fn what_is_no_number_is_refused() {
    for text in ["", "   ", "\t\n"] {
        assert_eq!(problem::<Duration>(text), Problem::Empty, "{text:?}");
    }
    for text in ["nan ms", "NaN", "inf s", "Infinity"] {
        assert_eq!(problem::<Duration>(text), Problem::NotFinite, "{text:?}");
    }
    for text in ["-20 ms", "- 20 ms", "\u{2212}1 s", "-0 s", "-.5 s"] {
        assert_eq!(problem::<Duration>(text), Problem::Negative, "{text:?}");
    }
    for text in ["ms", "fast", "+5 ms", "-ms", "\u{0663} ms"] {
        assert_eq!(problem::<Duration>(text), Problem::NoNumber, "{text:?}");
    }
    for text in [".5 s", "5. s", "1.2.3 s", "1_000 s", "1e3 s", "1E-3 s", "."] {
        assert_eq!(problem::<Duration>(text), Problem::Malformed, "{text:?}");
    }
    assert_eq!(problem::<Duration>("1,5 s"), Problem::Comma);
}

#[test]
fn what_does_not_fit_is_refused_not_rounded() {
    assert_eq!(problem::<Duration>("0.1 ps"), Problem::TooFine);
    assert_eq!(problem::<Duration>(&format!("0.{}1 s", "0".repeat(60))), Problem::TooFine);
    assert_eq!(problem::<Duration>(&format!("12345678901.{} s", "3".repeat(38))), Problem::TooFine);
    assert_eq!(problem::<ByteCount>("1.5 B"), Problem::TooFine);
    assert_eq!(problem::<CellCount>("0.5 cells"), Problem::TooFine);
    assert_eq!(problem::<BitRate>("0.0001 kbit/s"), Problem::TooFine);
    assert!("5124 h".parse::<Duration>().is_ok(), "213.5 days is the most");
    assert_eq!(problem::<Duration>("5125 h"), Problem::TooLarge);
    assert_eq!(problem::<ByteCount>("18446744073709551616 B"), Problem::TooLarge);
    assert_eq!(problem::<ByteCount>(&format!("{} B", "9".repeat(500))), Problem::TooLarge);
    assert_eq!(problem::<BitRate>("1.000000000001 Tbit/s"), Problem::TooLarge);
    assert_eq!(problem::<BitRate>("0 kbit/s"), Problem::Zero);
    assert_eq!(
        message::<BitRate>("0 Mbit/s"),
        "\"0 Mbit/s\" is zero; a bit rate is above zero, for example \"512 kbit/s\""
    );
}

#[test]
fn unknown_units_and_trailing_words_are_told_apart() {
    assert_eq!(
        message::<Duration>("20 msc"),
        "unknown unit \"msc\" in \"20 msc\"; a time is in ps, ns, us, ms, s, min or h, for example \"20 ms\""
    );
    assert_eq!(problem::<Duration>("20 MS"), Problem::UnknownUnit { unit: "MS".into() });
    assert_eq!(
        message::<Duration>("20 ms or so"),
        "\"20 ms or so\" goes on after its unit with \"or so\"; a time is written like \"20 ms\""
    );
    assert_eq!(problem::<BitRate>("512 kbit/s up"), Problem::Trailing { rest: "up".into() });
}

#[test]
fn an_error_is_one_short_line() {
    let text = format!("20 {}", "x\n".repeat(10_000));
    let message = message::<Duration>(&text);
    assert!(message.len() < 400 && !message.contains('\n'), "{message}");
}

/// Nearly valid text, which reaches deep branches: random text seldom begins with a number.
fn nearly() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "ms",
        "s",
        "m",
        "M",
        "kbit/s",
        "kbps",
        "KB/s",
        "kB",
        "KiB",
        "GiB",
        "%",
        "ppm",
        "cells",
        "wire bytes",
        "wire",
        "/s",
        "e9",
        "b",
        "packets x",
        "\u{b5}s",
        "",
    ]);
    ("[-+]?[0-9]{0,45}[.,_]{0,2}[0-9]{0,45}[ \u{a0}]{0,2}", unit).prop_map(|(number, unit)| number + unit)
}

proptest! {
    #[test]
    fn no_text_panics(text in prop_oneof![any::<String>(), nearly()]) {
        let _ = text.parse::<Duration>().map_err(|e| e.to_string());
        let _ = text.parse::<Instant>().map_err(|e| e.to_string());
        let _ = text.parse::<BitRate>().map_err(|e| e.to_string());
        let _ = text.parse::<ByteCount>().map_err(|e| e.to_string());
        let _ = text.parse::<WireBytes>().map_err(|e| e.to_string());
        let _ = text.parse::<CellCount>().map_err(|e| e.to_string());
        let _ = text.parse::<PacketCount>().map_err(|e| e.to_string());
        let _ = text.parse::<Ratio>().map_err(|e| e.to_string());
        let _ = text.parse::<Limit>().map_err(|e| e.to_string());
    }

    #[test]
    fn what_is_printed_parses_to_the_same(n in prop_oneof![any::<u64>(), 0..10_000_u64],
        parts in 0..=1_000_000_000_u32) {
        let (span, at) = (Duration::from_ps(n), Instant::from_ps(n));
        prop_assert_eq!(span.to_string().parse(), Ok(span));
        prop_assert_eq!(at.to_string().parse(), Ok(at));
        if let Some(rate) = BitRate::from_bps(n % 1_000_000_000_001) {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        prop_assert_eq!(ByteCount::new(n).to_string().parse(), Ok(ByteCount::new(n)));
        prop_assert_eq!(WireBytes::new(n).to_string().parse(), Ok(WireBytes::new(n)));
        prop_assert_eq!(CellCount::new(n).to_string().parse(), Ok(CellCount::new(n)));
        prop_assert_eq!(PacketCount::new(n).to_string().parse(), Ok(PacketCount::new(n)));
        for limit in [Limit::Bytes(ByteCount::new(n)), Limit::Cells(CellCount::new(n)),
            Limit::Packets(PacketCount::new(n))] {
            prop_assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        let share = Ratio::from_parts_per_billion(parts).expect("up to the whole");
        prop_assert_eq!(share.to_string().parse(), Ok(share));
    }

    /// A fraction of any length is exact or an error: the parsed value times the denominator is the
    /// numerator.
    #[test]
    fn fractions_are_exact(whole in 0..1_000_000_u64, places in 1..13_usize, digits in any::<u64>()) {
        let fraction = digits % 10_u64.pow(u32::try_from(places).expect("small"));
        let ps = u128::from(whole) * 1_000_000_000_000
            + u128::from(fraction) * 10_u128.pow(12 - u32::try_from(places).expect("small"));
        let text = format!("{whole}.{fraction:0places$} s");
        prop_assert_eq!(text.parse::<Duration>().map(|span| u128::from(span.as_ps())), Ok(ps));
    }
}
