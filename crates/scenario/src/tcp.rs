//! The `tcp` tables: a TCP endpoint. Each key overrides the file's `[tcp]`, which overrides the defaults of its era.

mod keys;

use lastmile_model::IpFields;
use lastmile_tcp::{
    AckConfig, ByteCounting, Config, CongestionConfig, Ecn, InitialWindow, LossDetection, Recovery, RepairConfig, Rto,
    SlowStart, TimerConfig, Variant, WindowScale,
};
use lastmile_units::{ByteCount, Duration};

use crate::reader::{Table, Unopened};
use crate::value::Scalar;
pub(crate) use keys::{SETTINGS, TCP};

const VARIANTS: &[(&str, Variant)] = &[
    ("tahoe", Variant::Tahoe),
    ("reno", Variant::Reno),
    ("newreno", Variant::NewReno),
    ("sack", Variant::Sack),
    ("cubic", Variant::Cubic),
    ("bbr", Variant::Bbr),
    ("bbr3", Variant::Bbr3),
    ("dctcp", Variant::Dctcp),
    ("prague", Variant::Prague),
    ("ledbat++", Variant::Ledbat),
];

const RTOS: &[(&str, Rto)] = &[("rfc6298", Rto::Rfc6298), ("linux", Rto::Linux)];

const LOSS_DETECTIONS: &[(&str, LossDetection)] = &[("rfc6675", LossDetection::Rfc6675), ("rack", LossDetection::Rack)];

const SLOW_STARTS: &[(&str, SlowStart)] =
    &[("standard", SlowStart::Standard), ("hystart", SlowStart::HyStart), ("hystart++", SlowStart::HyStartPlusPlus)];

const RECOVERIES: &[(&str, Recovery)] = &[("rfc6675", Recovery::Rfc6675), ("prr", Recovery::Prr)];

/// TCP as a file has it: the payload of a full segment follows from the path where the file does not give it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    config: Config,
    mss: Option<u16>,
}

/// IP packets of hosts are no larger, whatever a link may carry: their interfaces are Ethernet.
const HOST_MTU: u16 = 1500;

impl Settings {
    /// A current Linux: CUBIC, SACK, timestamps, RACK, HyStart, PRR, buffers that grow to 6 MiB of memory.
    pub(crate) fn today() -> Self {
        let config = Config {
            variant: Variant::Cubic,
            receive_window: ByteCount::new(15 << 18),
            autotune: true,
            timestamps: true,
            acks: AckConfig {
                delayed_ack: Duration::from_ms(200),
                quick_acks: true,
                read_delay: Duration::from_us(40),
                ..AckConfig::default()
            },
            congestion: CongestionConfig {
                byte_counting: ByteCounting::Abc { limit: u8::MAX },
                tso_deferral: true,
                ..CongestionConfig::default()
            },
            ..Config::default()
        };
        Self { config, mss: None }
    }

    /// Reno as RFC 2001 and RFC 2988 have it, without any of the extensions of RFC 1323, 2018 and later.
    fn of_1999() -> Self {
        let config = Config {
            variant: Variant::Reno,
            receive_window: ByteCount::new(65_535),
            autotune: false,
            window_scale: WindowScale::Off,
            sack: false,
            timestamps: false,
            acks: AckConfig {
                delayed_ack: Duration::from_ms(200),
                quick_acks: false,
                read_delay: Duration::ZERO,
                dsack: false,
                ..AckConfig::default()
            },
            congestion: CongestionConfig {
                initial_window: InitialWindow::Segments(1),
                byte_counting: ByteCounting::PerAck,
                slow_start: SlowStart::Standard,
                limited_transmit: false,
                tso_deferral: false,
                ..CongestionConfig::default()
            },
            repair: RepairConfig {
                loss_detection: LossDetection::Rfc6675,
                recovery: Recovery::Rfc6675,
                tail_loss_probe: false,
                undo: false,
                frto: false,
            },
            timers: TimerConfig {
                rto: Rto::Rfc6298,
                min_rto: Duration::from_s(1),
                initial_rto: Duration::from_s(3),
                ..TimerConfig::default()
            },
            ..Config::default()
        };
        Self { config, mss: None }
    }

    /// The endpoint with these IP headers on a path of this MTU. The error says what is wrong with the `mss` of the
    /// file.
    pub(crate) fn on(&self, mtu: Mtu<'_>, ip: IpFields) -> Result<Config, String> {
        let config = Config { ipv6: ip.ipv6, dscp: ip.dscp, ..self.config.clone() };
        let headers = if config.ipv6 { 60 } else { 40 } + if config.timestamps { 12 } else { 0 };
        let Some(mss) = self.mss else {
            let largest = mtu.bytes.map_or(HOST_MTU, |mtu| mtu.min(HOST_MTU));
            return Ok(Config { mss: largest.saturating_sub(headers).max(1), ..config });
        };
        match mtu.bytes {
            Some(bytes) if u32::from(mss) + u32::from(headers) > u32::from(bytes) => Err(format!(
                "segments of {mss} B make packets of {} B, and link {:?} carries packets up to {bytes} B (its MTU)",
                u32::from(mss) + u32::from(headers),
                mtu.link
            )),
            _ => Ok(Config { mss, ..config }),
        }
    }
}

/// The MTU of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mtu<'a> {
    /// `None`: no link of the path sets one.
    pub(crate) bytes: Option<u16>,
    /// The link that sets it.
    pub(crate) link: &'a str,
}

/// Opens a table of TCP's settings. The hint for the removed key `ipv6` names what says the same.
fn open(table: Unopened<'_>) -> Table<'_> {
    let hint = "ipv6 = true is a key of a [[traffic]], and for all traffic of the file itself";
    table.open_with_hints(&TCP, |key| (key == "ipv6").then(|| hint.to_owned()))
}

/// The table `tcp` of `table`; a text in its place is taken for a `variant`.
pub(crate) fn own<'d>(table: &Table<'d>) -> Option<Table<'d>> {
    if let Some(text) = table.text_at(&["tcp"]) {
        let path = table.path("tcp");
        let hint = format!("did you mean {path}.variant = {text:?}?");
        table.error("tcp", format!("{path} is a text, where a table is expected"), Some(hint));
        return None;
    }
    table.table("tcp").map(open)
}

/// `base` with the keys of `table`.
pub(crate) fn read(table: &Table<'_>, base: &Settings) -> Settings {
    let base = era(table).unwrap_or_else(|| base.clone());
    let mss = table.optional("mss").and_then(small).or(base.mss);
    let base = &base.config;
    let config = Config {
        variant: table.optional_choice("variant", VARIANTS).unwrap_or(base.variant),
        mss: mss.unwrap_or(base.mss),
        receive_window: table.optional("receive_window").unwrap_or(base.receive_window),
        send_buffer: table.optional("send_buffer").or(base.send_buffer),
        autotune: table.optional("autotune").unwrap_or(base.autotune && !table.has("receive_window")),
        window_scale: window_scale(table).unwrap_or(base.window_scale),
        sack: table.optional("sack").unwrap_or(base.sack),
        timestamps: table.optional("timestamps").unwrap_or(base.timestamps),
        ecn: ecn(table).unwrap_or(base.ecn),
        ipv6: base.ipv6,
        dscp: base.dscp,
        acks: acks(table, &base.acks),
        congestion: congestion(table, &base.congestion),
        repair: repair(table, &base.repair),
        timers: timers(table, &base.timers),
    };
    check(table, &config);
    Settings { config, mss }
}

fn acks(table: &Table<'_>, base: &AckConfig) -> AckConfig {
    let every = table.optional::<u64>("ack_every").and_then(|n| u8::try_from(n).ok());
    AckConfig {
        delayed_ack: table.optional("delayed_ack").unwrap_or(base.delayed_ack),
        ack_every: every.unwrap_or(base.ack_every),
        quick_acks: table.optional("quick_acks").unwrap_or(base.quick_acks),
        read_delay: table.optional("read_delay").unwrap_or(base.read_delay),
        gro: table.optional("gro").unwrap_or(base.gro),
        dsack: table.optional("dsack").unwrap_or(base.dsack),
    }
}

fn congestion(table: &Table<'_>, base: &CongestionConfig) -> CongestionConfig {
    CongestionConfig {
        initial_window: initial_window(table).unwrap_or(base.initial_window),
        initial_ssthresh: table.optional("initial_ssthresh").or(base.initial_ssthresh),
        byte_counting: byte_counting(table).unwrap_or(base.byte_counting),
        slow_start: table.optional_choice("slow_start", SLOW_STARTS).unwrap_or(base.slow_start),
        limited_transmit: table.optional("limited_transmit").unwrap_or(base.limited_transmit),
        idle_restart: table.optional("idle_restart").unwrap_or(base.idle_restart),
        tso_deferral: table.optional("tso_deferral").unwrap_or(base.tso_deferral),
        pacing: table.optional("pacing").unwrap_or(base.pacing),
        control: base.control.clone(),
    }
}

fn repair(table: &Table<'_>, base: &RepairConfig) -> RepairConfig {
    RepairConfig {
        loss_detection: table.optional_choice("loss_detection", LOSS_DETECTIONS).unwrap_or(base.loss_detection),
        recovery: table.optional_choice("recovery", RECOVERIES).unwrap_or(base.recovery),
        tail_loss_probe: table.optional("tail_loss_probe").unwrap_or(base.tail_loss_probe),
        undo: table.optional("undo").unwrap_or(base.undo),
        frto: table.optional("frto").unwrap_or(base.frto),
    }
}

fn timers(table: &Table<'_>, base: &TimerConfig) -> TimerConfig {
    TimerConfig {
        rto: table.optional_choice("rto", RTOS).unwrap_or(base.rto),
        min_rto: table.optional("min_rto").unwrap_or(base.min_rto),
        max_rto: table.optional("max_rto").unwrap_or(base.max_rto),
        initial_rto: table.optional("initial_rto").unwrap_or(base.initial_rto),
        clock_granularity: table.optional("clock_granularity").unwrap_or(base.clock_granularity),
        ..base.clone()
    }
}

/// The stack of the era that the table names; a year may stand without quotes.
fn era(table: &Table<'_>) -> Option<Settings> {
    match table.optional("era")? {
        Scalar::Text(word) if word == "today" => Some(Settings::today()),
        Scalar::Text(word) if word == "1999" => Some(Settings::of_1999()),
        Scalar::Number(1999) => Some(Settings::of_1999()),
        other => table.refuse("era", &other, "\"today\" or \"1999\""),
    }
}

fn small(bytes: ByteCount) -> Option<u16> {
    u16::try_from(bytes.as_u64()).ok()
}

fn initial_window(table: &Table<'_>) -> Option<InitialWindow> {
    let key = "initial_window";
    match table.optional(key)? {
        Scalar::Number(n @ 1..=65_535) => u16::try_from(n).ok().map(InitialWindow::Segments),
        Scalar::Text(word) if word == "rfc3390" => Some(InitialWindow::Rfc3390),
        other => table.refuse(key, &other, "a number of segments from 1 to 65535, or \"rfc3390\""),
    }
}

fn window_scale(table: &Table<'_>) -> Option<WindowScale> {
    let key = "window_scale";
    match table.optional(key)? {
        Scalar::Flag(true) => Some(WindowScale::Auto),
        Scalar::Flag(false) => Some(WindowScale::Off),
        Scalar::Number(n @ 0..=14) => u8::try_from(n).ok().map(WindowScale::Shift),
        other => table.refuse(key, &other, "true, false, or a shift from 0 to 14"),
    }
}

fn ecn(table: &Table<'_>) -> Option<Ecn> {
    let key = "ecn";
    match table.optional(key)? {
        Scalar::Flag(false) => Some(Ecn::Off),
        Scalar::Flag(true) => Some(Ecn::Classic),
        Scalar::Text(word) if word == "off" => Some(Ecn::Off),
        Scalar::Text(word) if word == "classic" => Some(Ecn::Classic),
        Scalar::Text(word) if word == "accecn" => Some(Ecn::Accurate),
        other => table.refuse(key, &other, "\"off\", \"classic\", \"accecn\", true or false"),
    }
}

fn byte_counting(table: &Table<'_>) -> Option<ByteCounting> {
    let key = "byte_counting";
    match table.optional(key)? {
        Scalar::Flag(true) => Some(ByteCounting::Abc { limit: 2 }),
        Scalar::Flag(false) => Some(ByteCounting::PerAck),
        Scalar::Number(n @ 1..=255) => u8::try_from(n).ok().map(|limit| ByteCounting::Abc { limit }),
        other => table.refuse(key, &other, "true, false, or the limit L of RFC 3465 from 1 to 255"),
    }
}

/// Checks of keys against each other.
fn check(table: &Table<'_>, config: &Config) {
    if let Err(error) = config.check() {
        table.error(error.field, format!("{}: {error}", table.path(error.field)), None);
    }
    if config.variant == Variant::Sack && !config.sack {
        table.warning("sack", "variant \"sack\" without sack behaves as \"newreno\"", None);
    }
    if config.receive_window.as_u64() > 65_535 && config.window_scale == WindowScale::Off {
        let hint = "set window_scale = true, or receive_window to 65535 B or less";
        table.warning(
            "receive_window",
            "without window_scale no window above 65535 bytes can be advertised",
            Some(hint.into()),
        );
    }
}
