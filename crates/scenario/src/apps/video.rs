//! `kind = "video"`: a viewer of a video that is streamed in segments.

use std::sync::Arc;

use lastmile_model::{Rule, Source, Transport, Video};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::quic;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::tcp;

/// The rates of H.264 in Apple's HLS Authoring Specification for devices, 16:9.
const LADDER: [u64; 9] = [145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800];
/// Most steps of a ladder.
const MOST_STEPS: usize = 64;

const RULES: [(&str, Rule); 3] = [("throughput", Rule::Throughput), ("bola", Rule::Bola), ("bba", Rule::Bba)];

pub(crate) static VIDEO: Section = Section {
    heading: "`kind = \"video\"`",
    about: "A viewer of a video that is streamed in segments over one connection, in bit rates that the player adapts; \
            `count` is the number of viewers. The direction is `down` unless said otherwise. Results have the time to \
            the first picture, stalls, bit rates and switches. [The page of the model](../mechanisms/video.md) has \
            sources and limits.",
    keys: &[
        Key::with_default("segment", Kind::Time, "4 s", "Playing time of a segment.")
            .at_least("100 ms")
            .at_most("60 s"),
        Key::optional(
            "ladder",
            Kind::Other("list of rates, such as `[\"1 Mbit/s\", \"3 Mbit/s\"]`", &[Kind::Several(&[Kind::Rate])]),
            "145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800 kbit/s (Apple's HLS Authoring Specification, H.264)",
            "Bit rates in which each segment exists, ascending.",
        ),
        Key::with_default(
            "rule",
            Kind::Choice(&["throughput", "bola", "bba"]),
            "throughput",
            "Choice of the next segment's bit rate: by measured throughput, as hls.js does, or by the buffer, as \
             BOLA-BASIC (Spiteri and others 2016) or BBA-0 (Huang and others 2014) do.",
        ),
        Key::optional(
            "startup",
            Kind::Time,
            "`segment`",
            "Media that playback needs to start, and to continue after a stall.",
        )
        .at_least("100 ms")
        .at_most("1 h"),
        Key::with_default(
            "buffer",
            Kind::Time,
            "30 s",
            "The most media that the player holds; at least `startup` and a `segment`. The default is the least \
             that hls.js fills, which holds up to 60 MB or 600 s. BBA was published for 240 s.",
        )
        .at_most("1 h"),
        Key::optional(
            "length",
            Kind::Time,
            "longer than the run",
            "Playing time of the video, in whole segments: the last one may end later.",
        )
        .at_least("100 ms")
        .at_most("720 h"),
        Key::with_default("request", Kind::Bytes, "350 B", "Bytes of a request for a segment.")
            .at_least("1 B")
            .at_most("64 KiB"),
        quic::TRANSPORT,
        tcp::SETTINGS,
        quic::SETTINGS,
    ],
};

pub(crate) fn read(table: &Table<'_>, transport: Option<Transport>) -> Option<Source> {
    let segment: Option<Duration> = table.get("segment");
    let startup = if table.has("startup") { table.optional("startup") } else { segment };
    let (buffer, request) = (table.get::<Duration>("buffer"), table.get::<ByteCount>("request"));
    let length = if table.has("length") { Some(table.optional::<Duration>("length")?) } else { None };
    let (rule, ladder) = (table.choice("rule", &RULES), ladder(table));
    let (segment, startup, buffer) = (segment?, startup?, buffer?);
    if buffer < startup + segment {
        let message = format!(
            "{}: {buffer} do not hold the {startup} that playback needs and the next segment of {segment}",
            table.path("buffer")
        );
        table.error("buffer", message, Some(format!("at least {}", startup + segment)));
        return None;
    }
    Some(Source::Video(Arc::new(Video {
        transport: transport?,
        segment,
        ladder: ladder?,
        rule: rule?,
        startup,
        buffer,
        length,
        request: u32::try_from(request?.as_u64()).ok()?,
    })))
}

fn ladder(table: &Table<'_>) -> Option<Vec<BitRate>> {
    if !table.has("ladder") {
        return Some(LADDER.map(BitRate::from_kbit_per_s).into());
    }
    let steps = table.each::<BitRate>("ladder");
    if steps.is_empty() || steps.len() > MOST_STEPS {
        let message =
            format!("{}: {} bit rates, where 1 to {MOST_STEPS} are expected", table.path("ladder"), steps.len());
        table.error("ladder", message, Some("such as [\"1 Mbit/s\", \"3 Mbit/s\"]".into()));
        return None;
    }
    for pair in steps.windows(2) {
        let ((_, lower), (place, higher)) = (&pair[0], &pair[1]);
        if lower >= higher {
            table.error_at(place.clone(), "ladder", format!("{higher} after {lower}; bit rates ascend"));
            return None;
        }
    }
    Some(steps.into_iter().map(|(_, rate)| rate).collect())
}
