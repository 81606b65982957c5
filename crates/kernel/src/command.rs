//! Commands of the kernel's tools as plain data: the command, its purpose, the objects to read
//! back, and the alternative for kernels that lack a feature.

use core::fmt;

use lastmile_units::BitRate;

/// Placeholder for the device that faces the modem.
pub const DEVICE: &str = "$DEV";
/// Placeholder for the intermediate functional block that incoming packets are redirected to.
pub const IFB: &str = "$IFB";
/// Placeholder for the name of the table of nft that belongs to the device.
pub const TABLE: &str = "$TABLE";

/// Placeholder for the alias that identifies the intermediate device that belongs to the device.
pub const ALIAS: &str = "lastmile tc $DEV";

/// A word for these devices: placeholders are replaced.
#[must_use]
pub fn named(word: &str, device: &str, ifb: &str) -> String {
    match word {
        DEVICE => device.to_owned(),
        IFB => ifb.to_owned(),
        TABLE => table_of(device),
        ALIAS => ALIAS.replace(DEVICE, device),
        _ => word.to_owned(),
    }
}

/// The table of nft that belongs to a device. nft takes letters, digits, dots and hyphens.
#[must_use]
pub fn table_of(device: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    format!("lastmile-{}", device.chars().map(allowed).collect::<String>())
}

/// A command, and the object it creates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    words: Vec<String>,
    /// The text that it reads from its standard input.
    input: Option<String>,
    /// The object that exists after the command.
    pub leaves: Option<Expected>,
    /// Differences from the policy that the object of this command has: where it fails, they are none.
    pub remarks: Vec<String>,
    /// A command that takes away the object of an earlier one, where this one fails.
    undo: Option<String>,
}

impl Command {
    /// The command of these words, separated by blanks.
    #[must_use]
    pub fn new(words: &str) -> Self {
        Self {
            words: words.split_whitespace().map(str::to_owned).collect(),
            input: None,
            leaves: None,
            remarks: vec![],
            undo: None,
        }
    }

    /// Adds one word, which may contain blanks.
    #[must_use]
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds these words.
    #[must_use]
    pub fn words(mut self, words: &str) -> Self {
        self.words.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// The command with a text on its standard input. The text is of nft, with [`DEVICE`], [`IFB`]
    /// and [`TABLE`] as they are.
    #[must_use]
    pub fn reading(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the differences from the policy that the object of the command has.
    #[must_use]
    pub fn remarking(mut self, remarks: Vec<String>) -> Self {
        self.remarks = remarks;
        self
    }

    /// Sets the command that takes away the object of an earlier one, where this one fails.
    #[must_use]
    pub fn or_undo(mut self, words: &str) -> Self {
        self.undo = Some(words.to_owned());
        self
    }

    /// Sets the object that exists after the command.
    #[must_use]
    pub fn leaving(mut self, expected: Expected) -> Self {
        self.leaves = Some(expected);
        self
    }

    /// The words, with the placeholders [`DEVICE`], [`IFB`], [`TABLE`] and [`ALIAS`].
    #[must_use]
    pub fn as_words(&self) -> &[String] {
        &self.words
    }

    /// The command for its failure, if there is one.
    #[must_use]
    pub fn undo(&self) -> Option<Self> {
        self.undo.as_deref().map(Self::new)
    }

    /// The text on its standard input, with [`DEVICE`], [`IFB`] and [`TABLE`] for names.
    #[must_use]
    pub fn as_input(&self) -> Option<&str> {
        self.input.as_deref()
    }

    /// Program and arguments for these devices.
    #[must_use]
    pub fn on(&self, device: &str, ifb: &str) -> Vec<String> {
        self.words.iter().map(|word| named(word, device, ifb)).collect()
    }

    /// The text on its standard input for these devices.
    #[must_use]
    pub fn input_on(&self, device: &str, ifb: &str) -> Option<String> {
        let named = |text: &String| text.replace(TABLE, &table_of(device)).replace(DEVICE, device).replace(IFB, ifb);
        self.input.as_ref().map(named)
    }
}

/// One step of a set-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A heading for the following steps.
    Heading(String),
    /// A command with its purpose.
    Run {
        /// The purpose, one line per element.
        about: Vec<String>,
        /// The command.
        command: Command,
    },
    /// A choice by the kernel's features.
    Choice {
        /// The purpose, one line per element.
        about: Vec<String>,
        /// The command to try.
        first: Command,
        /// The steps if it succeeds.
        then: Vec<Step>,
        /// The missing feature if it fails.
        lacking: String,
        /// The steps if it fails.
        otherwise: Vec<Step>,
    },
}

impl Step {
    /// A command with its purpose.
    #[must_use]
    pub fn run(about: impl Into<String>, command: Command) -> Self {
        let about = about.into();
        Self::Run { about: if about.is_empty() { vec![] } else { vec![about] }, command }
    }
}

/// An object that can be read back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Object {
    /// The queueing discipline at a position of a device: `root`, `ingress`, a class.
    Qdisc {
        /// [`DEVICE`] or [`IFB`].
        device: &'static str,
        /// The position.
        parent: String,
    },
    /// A class.
    Class {
        /// [`DEVICE`] or [`IFB`].
        device: &'static str,
        /// The handle.
        id: String,
    },
    /// The filter of this preference, which no other filter has.
    Filter {
        /// [`DEVICE`] or [`IFB`].
        device: &'static str,
        /// The discipline that consults it.
        parent: String,
        /// The position in the order of filters.
        preference: u32,
    },
    /// The table of nft that gives packets of a device their class.
    Rules {
        /// [`DEVICE`] or [`IFB`].
        device: &'static str,
    },
    /// A device.
    Link {
        /// [`DEVICE`] or [`IFB`].
        device: &'static str,
    },
}

/// The expected properties of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The object.
    pub object: Object,
    /// The name in reports: `class ack`.
    pub name: String,
    /// The values, by the keys of `tc -j`.
    pub values: Vec<(&'static str, Value)>,
}

/// A tick of a kernel of 100 Hz.
const LONGEST_TICK_US: u64 = 10_000;

/// An expected value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// This text.
    Text(String),
    /// This number.
    Number(i64),
    /// This rate, in the precision that tc prints.
    Rate(BitRate),
    /// A burst. tc converts the bytes into transmission time at this rate, in whole microseconds,
    /// and back, so the value read back may be slightly lower.
    Burst {
        /// Size of the burst.
        bytes: u64,
        /// Rate for the conversion.
        rate: BitRate,
    },
    /// This size in bytes, in the precision that tc prints.
    Size(u64),
    /// This time in microseconds. The kernel's CoDel stores times in units of 1024 ns, so the value
    /// read back may be up to two lower.
    Time(u64),
    /// This time in microseconds. The kernel's PIE rounds it up to a tick, of 1 to 10 ms by the kernel's `HZ`.
    Ticks(u64),
}

impl Value {
    /// True if `found`, as tc prints it, is this value.
    #[must_use]
    pub fn is(&self, found: &str) -> bool {
        match self {
            Self::Text(text) => text == found,
            Self::Number(number) => parse_number(found) == Some(*number),
            Self::Rate(rate) => {
                parse_rate(found).is_some_and(|(from, step)| (from..from + step).contains(&rate.as_bps()))
            }
            Self::Burst { bytes, rate } => {
                // Two microseconds, and a partial byte.
                let less = 1 + rate.as_bps() / 8 * 2 / 1_000_000;
                parse_bytes(found).is_some_and(|(found, off)| found <= *bytes + off && found + off + less >= *bytes)
            }
            Self::Size(bytes) => parse_bytes(found).is_some_and(|(found, off)| found.abs_diff(*bytes) <= off),
            Self::Time(us) => {
                let least = i64::try_from(us.saturating_sub(2)).unwrap_or(i64::MAX);
                let most = i64::try_from(*us).unwrap_or(i64::MAX);
                parse_number(found).is_some_and(|found| (least..=most).contains(&found))
            }
            Self::Ticks(us) => found.parse::<u64>().is_ok_and(|found| (*us..us + LONGEST_TICK_US).contains(&found)),
        }
    }
}

/// The form in reports.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Rate(rate) => write!(f, "{}bit", rate.as_bps()),
            Self::Burst { bytes, .. } | Self::Size(bytes) => write!(f, "{bytes}b"),
            Self::Time(us) | Self::Ticks(us) => write!(f, "{us}"),
        }
    }
}

fn parse_number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Bits a second of `83328bit`, `512Kbit`, `1Mbit`, and the step to the next value that tc prints.
fn parse_rate(text: &str) -> Option<(u64, u64)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let step = match unit {
        "bit" => 8,
        "Kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        _ => return None,
    };
    let scale = if unit == "bit" { 1 } else { step };
    Some((number.parse::<u64>().ok()?.checked_mul(scale)?, step))
}

/// Bytes of `5087b`, `5087b/1`, `5Kb`, and by how many tc may have rounded them: it prints a size that is less than 16
/// bytes from a whole KiB, or less than a KiB from a whole MiB, as that (`print_size` of iproute2).
fn parse_bytes(text: &str) -> Option<(u64, u64)> {
    let text = text.split('/').next()?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (scale, off) = match unit {
        "" | "b" => (1, 0),
        "Kb" => (1024, 15),
        "Mb" => (1024 * 1024, 1023),
        _ => return None,
    };
    Some((number.parse::<u64>().ok()?.checked_mul(scale)?, off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_take_the_place_of_their_words() {
        let command = Command::new("tc filter add dev $DEV action mirred egress redirect dev $IFB").word("a b");
        assert_eq!(command.on("eth0", "ifb0")[4], "eth0");
        assert_eq!(command.on("eth0", "ifb0")[10..], ["ifb0".to_owned(), "a b".to_owned()]);
        assert_eq!(Command::new("alias").word(ALIAS).on("eth0", "ifb0")[1], "lastmile tc eth0");
    }

    #[test]
    fn a_table_is_named_after_its_device_in_letters_that_nft_takes() {
        let command = Command::new("nft delete table inet $TABLE").reading("table inet $TABLE { \"$DEV\" \"$IFB\" }");
        assert_eq!(command.on("ppp0", "")[4], "lastmile-ppp0");
        let text = "table inet lastmile-eth0.7_2 { \"eth0.7:2\" \"ifb0\" }";
        assert_eq!(command.input_on("eth0.7:2", "ifb0").as_deref(), Some(text));
    }

    /// As iproute2 6.1 prints what HTB holds: whole kbit/s where they are whole or from a Mbit/s on.
    #[test]
    fn rates_are_compared_to_the_digits_that_are_printed() {
        let rate = |bps| Value::Rate(BitRate::from_bps(bps).unwrap());
        assert!(rate(83_328).is("83328bit"));
        assert!(!rate(83_336).is("83328bit"));
        assert!(rate(512_000).is("512Kbit"));
        assert!(rate(7_219_664).is("7219Kbit"));
        assert!(!rate(7_219_664).is("7220Kbit"));
        assert!(!rate(512_000).is("512 kbit/s"));
    }

    /// iproute2 6.1 prints 5088 bytes as 5087 at 512 kbit/s, and as 5085 at 16 Mbit/s, where a
    /// microsecond has two bytes.
    #[test]
    fn a_burst_may_lose_a_microsecond() {
        let burst = Value::Burst { bytes: 5088, rate: BitRate::from_kbit_per_s(512) };
        assert!(burst.is("5088b/1") && burst.is("5087b/1") && !burst.is("5086b/1") && !burst.is("5089b"));
        assert!(!burst.is("1696b"));
        let burst = Value::Burst { bytes: 5088, rate: BitRate::from_mbit_per_s(16) };
        assert!(burst.is("5085b/1") && !burst.is("5082b/1"));
    }

    /// iproute2 6.1 prints 1522 and 2031 bytes as they are, and 2040 and 2060 as 2 KiB.
    #[test]
    fn a_size_near_a_whole_kib_is_printed_as_that() {
        assert!(Value::Size(1522).is("1522b") && !Value::Size(1522).is("1500b") && !Value::Size(2031).is("2Kb"));
        assert!(Value::Size(2040).is("2Kb") && Value::Size(2060).is("2Kb") && !Value::Size(2064).is("2Kb"));
        let burst = Value::Burst { bytes: 2060, rate: BitRate::from_kbit_per_s(512) };
        assert!(burst.is("2Kb") && !burst.is("3Kb"));
    }

    /// 5 ms are 4882 units of 1024 ns, which are 4999.168 us; 134750 us are 131591, or 134749.184.
    #[test]
    fn a_time_of_codel_may_lose_a_unit() {
        assert!(Value::Time(5000).is("4999") && Value::Time(134_750).is("134749") && Value::Time(5000).is("5000"));
        assert!(!Value::Time(5000).is("4997") && !Value::Time(5000).is("5001"));
    }

    /// 15 ms are 15 ticks of 1000 Hz, 4 of 250 Hz, 5 of 300 Hz (16.67 ms) and 2 of 100 Hz.
    #[test]
    fn a_time_in_ticks_may_be_rounded_up() {
        let period = Value::Ticks(15_000);
        assert!(["15000", "16000", "16666", "20000"].iter().all(|found| period.is(found)));
        assert!(!["14999", "25000", "", "30000"].iter().any(|found| period.is(found)));
    }

    #[test]
    fn numbers_are_compared_whatever_their_base() {
        assert!(Value::Number(0x20).is("0x20") && Value::Number(32).is("32") && !Value::Number(32).is("0x32"));
    }
}
