//! `kind = "conference"`: audio and video whose rate follows the line.

use std::sync::Arc;

use lastmile_model::{Audio, Conference, IpFields, Rates, Source};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::listener;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(crate) static CONFERENCE: Section = Section {
    heading: "`kind = \"conference\"`",
    about: "A video conference over RTP: frames of a camera and audio over one flow of UDP, whose rate Google \
            Congestion Control adapts to delay and losses. Two traffics, `NAME-down` and `NAME-up`, unless \
            `direction` asks for one of them. Results have bit rates, frame delays, late and lost frames, freezes, \
            and the quality of the audio. [The page of the model](../mechanisms/conference.md) has sources and limits.",
    keys: &[
        Key::with_default("frame_rate", Kind::Count, "30", "Frames a second.").at_least("1").at_most("240"),
        Key::with_default(
            "rate_start",
            Kind::Rate,
            "300 kbit/s",
            "First rate of audio and video together, headers included; the default is that of libwebrtc.",
        ),
        Key::with_default("rate_least", Kind::Rate, "100 kbit/s", "Lowest rate of audio and video together."),
        Key::with_default(
            "rate_most",
            Kind::Rate,
            "2500 kbit/s",
            "Highest rate of audio and video together; the default is that of 720p in libwebrtc.",
        ),
        Key::with_default(
            "packet",
            Kind::Bytes,
            "1150 B",
            "Payload of a full packet of video; 58 B of headers come on top.",
        )
        .at_least("100 B")
        .at_most("9000 B"),
        Key::with_default("audio_interval", Kind::Time, "20 ms", "Time between packets of audio.")
            .at_least("1 ms")
            .at_most("1 s"),
        Key::with_default("audio_size", Kind::Bytes, "80 B", "Payload of a packet of audio: Opus at 32 kbit/s.")
            .at_least("1 B")
            .at_most("1200 B"),
        Key::with_default(
            "feedback",
            Kind::Time,
            "100 ms",
            "Time from the first packet that a report covers to the report; libwebrtc has 50 to 250 ms.",
        )
        .at_least("1 ms")
        .at_most("5 s"),
        listener::PLAYOUT,
        listener::CODEC,
        listener::IE,
        listener::BPL,
    ],
};

pub(crate) fn read(table: &Table<'_>, ip: IpFields) -> Option<Source> {
    let (start, least, most) =
        (table.get::<BitRate>("rate_start"), table.get::<BitRate>("rate_least"), table.get::<BitRate>("rate_most"));
    let (frame_rate, packet) = (table.get::<u64>("frame_rate"), table.get::<ByteCount>("packet"));
    let (interval, payload) = (table.get::<Duration>("audio_interval"), table.get::<ByteCount>("audio_size"));
    let feedback = table.get("feedback");
    let rates = Rates { least: least?, start: start?, most: most? };
    if rates.least > rates.start || rates.start > rates.most {
        let (key, wrong) =
            if rates.start > rates.most { ("rate_most", rates.most) } else { ("rate_least", rates.least) };
        let message = format!("{}: {wrong} with a rate_start of {}", table.path(key), rates.start);
        table.error(key, message, Some("rate_least, rate_start and rate_most ascend".into()));
        return None;
    }
    let conference = Conference {
        rates,
        frame_rate: u32::try_from(frame_rate?).ok()?,
        packet: packet?,
        audio: Audio { interval: interval?, payload: payload? },
        feedback: feedback?,
    };
    let audio_bps = conference.audio_bps(ip);
    if audio_bps >= rates.least.as_bps() as f64 {
        let message = format!("{}: the audio alone has {:.1} kbit/s", table.path("rate_least"), audio_bps / 1e3);
        table.error("rate_least", message, Some("a higher rate_least, or less audio".into()));
        return None;
    }
    Some(Source::Conference(Arc::new(conference)))
}
