//! Traces written in each format.

use serde_json::{Value, json};

use super::write::{Written, write};
use super::*;

/// `text` in a format, with intervals of a second.
fn convert(text: &str, repeat: Option<Duration>, format: Format, length: Option<Duration>) -> Result<Written, String> {
    let Content { trace, has, .. } = file::read(text, BASE, repeat, None).expect("a trace");
    write(&trace, has, format, Duration::from_s(1), length)
}

/// The list of one trace of each kind that lastmile reads.
fn listed(Written { text, beside, .. }: Written) -> String {
    let texts: Vec<_> = std::iter::once(text).chain(beside.into_iter().map(|(_, text)| text)).collect();
    format!("[{}]", texts.join(","))
}

/// CSV to Rattan and back is the same trace; steps to mahimahi keep the bytes: 8 and 4 Mbit/s for 3 s each are 4.5 MB.
#[test]
fn formats_convert_into_each_other() {
    let text = "at,rate,delay,loss\n0 s,8 Mbit/s,10 ms,0 %\n3 s,4 Mbit/s,20 ms,1 %\n";
    let period = Some(Duration::from_s(6));
    let Content { trace, .. } = file::read(text, BASE, period, None).unwrap();
    let to = |format| convert(text, period, format, None).unwrap();
    assert_eq!(read(&listed(to(Format::Rattan))).unwrap(), (Format::Rattan, trace));
    assert_eq!(to(Format::Csv).text, format!("# repeat = \"6 s\"\n{text}"));
    let mahimahi = to(Format::Mahimahi).text;
    let (format, opportunities) = read(&mahimahi).unwrap();
    assert_eq!((format, mahimahi.lines().count()), (Format::Mahimahi, 4_500_000 / 1504));
    // 1504 bytes at 8 Mbit/s are 1.504 ms; at 4 Mbit/s twice that.
    assert!(mahimahi.starts_with("2\n4\n5\n7\n8\n"), "{}", &mahimahi[..20]);
    let back = write(&opportunities, Has::default(), Format::Csv, Duration::from_s(3), None).unwrap().text;
    let (steps, _) = steps_of(&read(&back).unwrap().1);
    let rates: Vec<f64> = steps.iter().map(|step| step.rate.unwrap().as_bps() as f64 / 1e6).collect();
    assert!(rates.len() == 2 && (rates[0] - 8.0).abs() < 0.02 && (rates[1] - 4.0).abs() < 0.02, "{rates:?}");
}

/// An opportunity stands for what was carried by its time: one at the end of an interval is of that interval, one at
/// 0 of the first. 1504 bytes in 1 ms are 12.032 Mbit/s, in 100 ms 120.32 kbit/s.
#[test]
fn equal_opportunities_are_one_step() {
    let csv = |at: &mut dyn Iterator<Item = u64>, interval| {
        let text = at.map(|ms| format!("{ms}\n")).collect::<String>();
        let trace = file::read(&text, BASE, None, Some(TimeUnit::Milliseconds)).unwrap().trace;
        write(&trace, Has::default(), Format::Csv, Duration::from_ms(interval), None).unwrap().text
    };
    assert_eq!(csv(&mut (1..=1000), 1), "# repeat = \"1 s\"\nat,rate\n0 s,12.032 Mbit/s\n");
    let each_100 = "# repeat = \"1 s\"\nat,rate\n0 s,120.32 kbit/s\n";
    assert_eq!(csv(&mut (1..=10).map(|number| number * 100), 100), each_100);
    assert_eq!(csv(&mut (0..=1).map(|number| number * 1000), 1000), "# repeat = \"1 s\"\nat,rate\n0 s,24.064 kbit/s\n");
    // The last interval is half as long, and so has twice the rate.
    let cut = "# repeat = \"150 ms\"\nat,rate\n0 s,120.32 kbit/s\n100 ms,240.64 kbit/s\n";
    assert_eq!(csv(&mut [100, 150].into_iter(), 100), cut);
}

/// Columns that the source leaves out are left out, so that the direction's own delay and loss hold.
#[test]
fn a_conversion_adds_no_delay_and_no_loss() {
    let plain = "# repeat = \"2 s\"\nat,rate\n0 s,8 Mbit/s\n1 s,0\n";
    let lossy = "# repeat = \"2 s\"\nat,rate,loss\n0 s,8 Mbit/s,1 %\n1 s,0,0 %\n";
    for text in [plain, lossy] {
        let rattan = listed(convert(text, None, Format::Rattan, None).unwrap());
        assert_eq!(convert(text, None, Format::Csv, None).unwrap().text, text);
        assert_eq!(convert(&rattan, None, Format::Csv, None).unwrap().text, text, "{rattan}");
        assert!(!rattan.contains("Delay"), "{rattan}");
    }
    let csv = convert("500\n1000\n", None, Format::Csv, None).unwrap().text;
    assert_eq!(csv, "# repeat = \"1 s\"\nat,rate\n0 s,24.064 kbit/s\n");
}

/// The form that netem-trace 0.4 reads with its feature `human`, as in Rattan: one object at the top, texts with units.
#[test]
fn each_file_of_rattan_is_one_object_of_texts() {
    let text = "at,rate,delay,loss\n0 s,100 kbit/s,10 ms,0 %\n1 s,0,20.5 ms,1 %\n3 s,2.5 Gbit/s,0 s,0 %\n";
    let Written { text, beside, notes } = convert(text, None, Format::Rattan, None).unwrap();
    let config = |kind: &str, key: &str, values: [Value; 3]| {
        let spans = values.into_iter().zip(["1000000000ns", "2000000000ns", "1000000000ns"]);
        let entries =
            spans.map(|(value, span)| json!({ format!("Static{kind}Config"): { key: value, "duration": span } }));
        let pattern = entries.collect::<Vec<_>>();
        json!({ format!("Repeated{kind}PatternConfig"): { "pattern": pattern, "count": 1 } })
    };
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let rates = ["100000bps", "0bps", "2500000000bps"].map(Value::from);
    assert_eq!(value(&text), config("Bw", "bw", rates));
    let [(delay, delays), (loss, losses)] = &beside[..] else { panic!("{beside:?}") };
    assert_eq!((*delay, *loss), ("delay", "loss"));
    assert_eq!(value(delays), config("Delay", "delay", ["10000000ns", "20500000ns", "0ns"].map(Value::from)));
    assert_eq!(value(losses), config("Loss", "loss", [0.0, 0.01, 0.0].map(|share| json!([share]))));
    assert!(notes.is_empty());
    // The literal text of a trace of rates that repeats.
    let Written { text, beside, .. } =
        convert("# repeat = \"1.5 s\"\nat,rate\n0 s,12 Mbit/s\n1 s,24 Mbit/s\n", None, Format::Rattan, None).unwrap();
    assert!(beside.is_empty());
    assert_eq!(
        text,
        r#"{
  "RepeatedBwPatternConfig": {
    "count": 0,
    "pattern": [
      {
        "StaticBwConfig": {
          "bw": "12000000bps",
          "duration": "1000000000ns"
        }
      },
      {
        "StaticBwConfig": {
          "bw": "24000000bps",
          "duration": "500000000ns"
        }
      }
    ]
  }
}
"#
    );
}

const AT_ONCE: &str = "mahimahi starts again after its last line: 1504 bytes may be sent as the outage at the end ends";
const A_PART: &str =
    "mahimahi starts again after its last line: 1504 bytes may be sent there, of which the table has a part";
const ROUNDED: &str = "mahimahi has whole milliseconds: other times of sending and of the period are rounded up";

/// 12.032 Mbit/s are a block in each millisecond. The outage from 3 to 10 ms is of the period, which the last line is.
#[test]
fn an_outage_at_the_end_is_of_the_period_of_mahimahi() {
    let convert = |text: &str| {
        let written = convert(text, None, Format::Mahimahi, Some(Duration::from_ms(8))).unwrap();
        (written.text, written.notes)
    };
    let (text, notes) = convert("# repeat = \"10 ms\"\nat,rate\n0 s,12.032 Mbit/s\n3 ms,0\n");
    assert_eq!((&*text, &notes[..]), ("1\n2\n3\n10\n", &[AT_ONCE.to_owned()][..]));
    assert_eq!(read(&text).unwrap().1.period(), Some(Duration::from_ms(10)));
    // Nothing is added where the last block is complete as the period ends; a part of a block becomes one.
    assert_eq!(convert("# repeat = \"3 ms\"\nat,rate\n0 s,12.032 Mbit/s\n"), ("1\n2\n3\n".to_owned(), vec![]));
    let (text, notes) = convert("# repeat = \"5.5 ms\"\nat,rate\n0 s,6.016 Mbit/s\n");
    assert_eq!((&*text, &notes[..]), ("2\n4\n6\n", &[A_PART, ROUNDED].map(str::to_owned)[..]));
    let (text, notes) = convert("at,rate,delay\n0 s,3.008 Mbit/s,5 ms\n");
    assert_eq!(text, "4\n8\n", "played once, for the length that is asked for");
    let again = "mahimahi starts again after 8 ms, where the table holds its last step";
    assert_eq!(notes, ["mahimahi has rates alone: delays and losses are left out", again]);
}

/// 120.32 kbit/s are a block in 100 ms. A table that is played once lasts until a second after its last step, and at
/// least ten minutes; a length that ends before leaves steps out.
#[test]
fn a_table_that_is_played_once_is_written_to_its_last_step() {
    let written = |last: u64, length| {
        let text = format!("at,rate\n0 s,120.32 kbit/s\n10 s,240.64 kbit/s\n{last} s,120.32 kbit/s\n");
        let Written { text, notes, .. } = convert(&text, None, Format::Mahimahi, length).unwrap();
        (text.lines().last().unwrap().to_owned(), text.lines().count(), notes)
    };
    let held = |end: &str| vec![format!("mahimahi starts again after {end}, where the table holds its last step")];
    assert_eq!(written(20, None), ("600000".to_owned(), 100 + 200 + 5800, held("600 s")));
    assert_eq!(written(3600, None), ("3601000".to_owned(), 100 + 2 * 35_900 + 10, held("3601 s")));
    assert_eq!(written(20, Some(Duration::from_s(21))), ("21000".to_owned(), 100 + 200 + 10, held("21 s")));
    let cut = |end: &str, steps: u32| {
        vec![format!("mahimahi starts again after {end}; later steps that are left out: {steps}")]
    };
    assert_eq!(written(20, Some(Duration::from_s(20))), ("20000".to_owned(), 100 + 200, cut("20 s", 1)));
    assert_eq!(written(20, Some(Duration::from_s(5))), ("5000".to_owned(), 50, cut("5 s", 2)));
    let (_, _, notes) = written(20, Some(Duration::from_ms(5_050)));
    assert_eq!(notes, [&cut("5.05 s", 2)[0], A_PART]);
}

/// Opportunities each 0.3 ms until 0.9 ms come at the end of their millisecond, and so does the period. One that ends
/// before its period has a line more.
#[test]
fn a_packet_delivery_trace_becomes_whole_milliseconds() {
    let convert = |text: &str, repeat| {
        let Content { trace, has, .. } = file::read(text, BASE, repeat, Some(TimeUnit::Microseconds)).unwrap();
        let written = write(&trace, has, Format::Mahimahi, Duration::from_s(1), None).unwrap();
        (written.text, written.notes)
    };
    let rounded = || vec![ROUNDED.to_owned()];
    let (text, notes) = convert("300\n600\n900\n", None);
    assert_eq!((&*text, notes), ("1\n1\n1\n", rounded()));
    assert_eq!(read(&text).unwrap().1.period(), Some(Duration::from_ms(1)));
    assert_eq!(convert("1000\n2000\n", None), ("1\n2\n".to_owned(), vec![]));
    assert_eq!(convert("1000\n2001\n", None), ("1\n3\n".to_owned(), rounded()));
    let (text, notes) = convert("1000\n", Some(Duration::from_us(2_500)));
    assert_eq!((&*text, &notes[..]), ("1\n3\n", &[AT_ONCE, ROUNDED].map(str::to_owned)[..]));
}
