//! A configuration as a shell script: complete, commented, and repeatable.
//!
//! Root runs the script, and names in it come from files. Every word therefore passes
//! [`shell::word`], and every comment [`shell::comment`].

use crate::stab::Device;
use lastmile_text::shell;
use sha2::{Digest as _, Sha256};

use crate::command::{ALIAS, Command, DEVICE, IFB, Step, TABLE, table_of};
use crate::configuration::{Configuration, MAJOR};
use crate::ingress::{HANDLE, PARENT, PREFERENCE};
use crate::lacking;

/// Ends the text that a command reads.
const END: &str = "END";
/// The width at which comments wrap.
const WIDTH: usize = 118;

/// The devices of a script. A missing one is read from the environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Devices<'a> {
    /// The device that faces the modem.
    pub device: Option<&'a str>,
    /// The intermediate device.
    pub ifb: Option<&'a str>,
}

/// The name of the intermediate device for `device`, of at most 15 characters: the first digits of its SHA-256 stand
/// for a name that is too long, so that names with a common beginning stay distinct.
#[must_use]
pub fn ifb_of(device: &str) -> String {
    if device.len() <= LONGEST_IN_IFB {
        return format!("ifb-{device}");
    }
    let digits: String = Sha256::digest(device).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("ifb-{}", &digits[..LONGEST_IN_IFB])
}

/// The characters of a name of 15 that remain after `ifb-`.
const LONGEST_IN_IFB: usize = 11;

/// Writes the script.
#[must_use]
pub fn write(configuration: &Configuration, devices: Devices<'_>) -> String {
    let mut script = Script { text: String::from("#!/bin/sh\n"), depth: 0 };
    script.head(configuration);
    script.devices(configuration, devices);
    script.text.push_str(HELPERS);
    script.removal();
    script.text.push_str(REMOVE_ALONE);
    script.text.push_str(OWN_NAME);
    if let Some(device) = configuration.counts_for {
        script.text.push_str(&frames(device));
    }
    script.text.push_str(PPPOE);
    script.text.push_str(&flowtables());
    if configuration.has_ifb {
        script.text.push_str(OTHERS_IFB);
    }
    script.text.push_str(START);
    script.steps(&configuration.steps);
    script.text.push_str("\ntrap - EXIT\n");
    script.text
}

const HELPERS: &str = "
# True if the kernel and its tools take it.
try() {
    \"$@\" 2>/dev/null
}

# What a kernel lacks is done otherwise.
lacking() {
    printf '%s\\n' \"this kernel lacks $1\" >&2
}

";

const REMOVE_ALONE: &str = "
case ${1-} in
remove)
    remove
    exit 0
    ;;
esac
";

/// Stops at an alternative name of a device (ip-link(8)), by which no rule would ever match.
const OWN_NAME: &str = "
# Rules compare the own name of the device.
link=$(ip link show dev \"$DEV\")
case $link in
*\": $DEV: \"*|*\": $DEV@\"*) ;;
*)
    printf '%s\\n' \"$DEV is an alternative name, which rules do not know; \\
the own one is at the start of: ip link show dev $DEV\" >&2
    exit 1
    ;;
esac
";

/// Stops on a device whose frames the size table does not count, before anything is changed: 14 bytes a packet of the
/// line's rate would be wrong, silently. By ip(8) and not by /sys, which may be that of another namespace.
fn frames(device: Device) -> String {
    let (counted, instead) = (device.frames(), device.instead());
    let ethernet = "*link/ether*|*link/loopback*";
    let (right, wrong) = if device == Device::Ip { ("*", ethernet) } else { (ethernet, "*") };
    // The first pattern that matches decides.
    let stop = format!(
        "{wrong})\n    printf '%s\\n' \"$DEV: this script is for a device whose frames have {counted}; \\\n\
         print it anew with: lastmile tc ... --header {instead}\" >&2\n    exit 1\n    ;;\n"
    );
    let go = format!("{right}) ;;\n");
    let cases = if wrong == "*" { go + &stop } else { stop + &go };
    format!(
        "# The size table counts frames with {counted}: stop on other devices.\n\
         case $link in\n{cases}esac\n"
    )
}

/// Linux lists the port of each PPPoE session there, where it carries any.
const PPPOE: &str = "
# Frames of PPPoE have 8 bytes more in front of the IP packet than are counted here, and no rule sees into them.
if grep -qs \" $DEV\\$\" /proc/net/pppoe; then
    printf '%s\\n' \"$DEV carries PPPoE: this belongs on the ppp device above it, such as DEV=ppp0\" >&2
fi
";

/// The warning where packets can pass no rule of a device.
pub const FLOWTABLE: &str = "nft has a flowtable: offloaded packets pass no rules here, and in hardware no queue; \
                             switch flow offloading off";

/// A flowtable sends the packets of its flows on from the ingress of a device, past the hook of the rules. It names
/// ports below the device, too, as that of PPPoE. Without a pipeline, whose programs run side by side.
fn flowtables() -> String {
    format!(
        "
# Packets of offloaded flows pass no rules.
case $(try nft list flowtables) in
*'flowtable '*'hook '*) printf '%s\\n' \"{FLOWTABLE}\" >&2 ;;
esac
"
    )
}

/// An earlier set-up stays where this one cannot be made.
const OTHERS_IFB: &str = "
# Another device may use it.
if try ip link show dev \"$IFB\" >/dev/null && ! has_own_ifb; then
    printf '%s\\n' \"$IFB exists, and is none of lastmile for $DEV; \\
print this anew with: lastmile tc ... --ifb NAME\" >&2
    exit 1
fi
";

const START: &str = "
remove
# An ingress discipline that is here now is none of this script.
case $(tc qdisc show dev \"$DEV\") in
*' ffff: '*) ingress= ;;
*) ingress=own ;;
esac
# What fails leaves nothing behind.
finish() {
    status=$?
    [ \"$status\" = 0 ] || remove
}
trap finish EXIT
";

struct Script {
    text: String,
    depth: usize,
}

impl Script {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"    ".repeat(self.depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a comment, wrapped; lines after the first are indented by `hang`.
    fn comment(&mut self, text: &str, hang: &str) {
        let text = shell::comment(text);
        let mut line = String::new();
        let mut first = true;
        for word in text.split(' ') {
            let width = WIDTH.saturating_sub(4 * self.depth + 2 + hang.len());
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                let full = core::mem::take(&mut line);
                self.line(&format!("# {}{full}", if first { "" } else { hang }));
                first = false;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&format!("# {}{line}", if first { "" } else { hang }));
    }

    fn head(&mut self, configuration: &Configuration) {
        self.comment(&format!("{}: the nearest set-up with the kernel's own tools.", configuration.name), "");
        self.line("#");
        for line in configuration.about.iter().flat_map(|about| about.lines()) {
            self.comment(line, "");
        }
        self.line("#");
        self.comment("sh SCRIPT replaces an earlier set-up; sh SCRIPT remove removes it.", "");
        let segments = if configuration.joins_segments {
            "Large segments are counted as one packet, with one overhead. For forwarded ones, ethtool -K IN gro off on \
             the devices that receive them; for this machine's own TCP, ip link set DEV gso_max_segs 1 (it joins \
             segments with gso off, too)."
        } else {
            "CAKE splits large segments (GSO, GRO) into their packets: split-gso."
        };
        self.comment(segments, "");
        self.line("#");
        if configuration.left_out.is_empty() {
            self.comment("Nothing of the policy is left out.", "");
        } else {
            self.comment("Differences from the policy, with the reason or the substitute:", "");
            for remark in &configuration.left_out {
                self.comment(&format!("- {remark}"), "  ");
            }
        }
        self.line("set -eu");
    }

    fn devices(&mut self, configuration: &Configuration, devices: Devices<'_>) {
        self.line("");
        self.line("# The device that faces the modem.");
        match devices.device {
            Some(device) => self.line(&format!("DEV={}", shell::word(device))),
            None => self.line(": \"${DEV:?the device that faces the modem, such as DEV=eth0}\""),
        }
        let why =
            if configuration.has_ifb { "" } else { "; this policy needs none, but an earlier one may have created it" };
        self.comment(&format!("The intermediate device for received packets{why}."), "");
        match (devices.ifb, devices.device) {
            (Some(ifb), _) => self.line(&format!("IFB={}", shell::word(ifb))),
            (None, Some(device)) => self.line(&format!("IFB={}", shell::word(&ifb_of(device)))),
            (None, None) => {
                self.line("# A name has at most 15 characters: a hash stands for a longer one.");
                self.line(&format!(
                    "[ \"${{#DEV}}\" -le {LONGEST_IN_IFB} ] || \
                     : \"${{IFB:=ifb-$(printf %.{LONGEST_IN_IFB}s \"$(printf %s \"$DEV\" | sha256sum)\")}}\""
                ));
                self.line(": \"${IFB:=ifb-$DEV}\"");
            }
        }
        self.line("# The table of nft that gives packets their class.");
        match devices.device {
            Some(device) => self.line(&format!("TABLE={}", shell::word(&table_of(device)))),
            None => self.line("TABLE=lastmile-$(printf %s \"$DEV\" | tr -c 'A-Za-z0-9.-' _)"),
        }
    }

    /// Writes the removal of this program's objects, identified by handle, preference, alias and
    /// table.
    fn removal(&mut self) {
        let lines = [
            "# True if the intermediate device is that of this device.".to_owned(),
            "has_own_ifb() {".to_owned(),
            "    case $(try ip link show dev \"$IFB\") in".to_owned(),
            format!("    *\"    alias {ALIAS}\") ;;"),
            "    *) return 1 ;;".to_owned(),
            "    esac".to_owned(),
            "}".to_owned(),
            String::new(),
            "# Removes only objects of this script, identified by handle, preference, alias and table.".to_owned(),
            "# The ingress discipline goes with the last filter, if that is of this script.".to_owned(),
            "ingress=".to_owned(),
            "remove() {".to_owned(),
            format!("    try tc qdisc del dev \"$DEV\" root handle {MAJOR:x}: || :"),
            format!("    if try tc filter del dev \"$DEV\" parent {PARENT} pref {PREFERENCE}; then ingress=own; fi"),
            "    case $ingress:$(try tc qdisc show dev \"$DEV\") in".to_owned(),
            format!("    own:*'qdisc ingress {HANDLE}'*)"),
            format!(
                "        [ -n \"$(tc filter show dev \"$DEV\" parent {PARENT})\" ] || tc qdisc del dev \"$DEV\" ingress"
            ),
            "        ;;".to_owned(),
            "    esac".to_owned(),
            "    if has_own_ifb; then ip link del dev \"$IFB\"; fi".to_owned(),
            format!("    try nft delete table inet \"{TABLE}\" || :"),
            format!("    try nft delete table netdev \"{TABLE}\" || :"),
            "}".to_owned(),
        ];
        for line in lines {
            self.line(&line);
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Heading(text) => {
                    self.line("");
                    self.comment(&format!("{text}."), "");
                }
                Step::Run { about, command } => {
                    self.about(about);
                    self.run(command);
                }
                Step::Choice { about, first, then, lacking, otherwise } => {
                    self.about(about);
                    self.choice(first, then, lacking, otherwise);
                }
            }
        }
    }

    fn about(&mut self, about: &[String]) {
        for line in about {
            self.comment(line, "  ");
        }
    }

    /// The text that a command reads: a here-document, in which the shell replaces the names of devices.
    fn input(&mut self, command: &Command) {
        if let Some(text) = command.as_input() {
            self.text.push_str(text);
            self.text.push_str(END);
            self.text.push('\n');
        }
    }

    fn run(&mut self, command: &Command) {
        let words = written(command);
        let kind = lacking::discipline_of(&words).filter(|_| words.starts_with("tc qdisc add "));
        match (kind, command.undo()) {
            (None, None) => {
                self.line(&words);
                self.input(command);
            }
            (None, Some(undo)) => {
                self.line(&format!("{words} || {{ {}; exit 1; }}", written(&undo)));
                self.input(command);
            }
            (Some(kind), _) => {
                self.line(&format!("{words} || {{"));
                let hint = shell::word(&format!("if {}", lacking::by_kernel(kind)));
                self.line(&format!("    printf '%s\\n' {hint} >&2"));
                self.line("    exit 1");
                self.line("}");
            }
        }
    }

    fn choice(&mut self, first: &Command, then: &[Step], lacking: &str, otherwise: &[Step]) {
        let tried = format!("try {}", written(first));
        if then.is_empty() {
            self.line(&format!("{tried} || {{"));
            self.input(first);
        } else {
            self.line(&format!("if {tried}; then"));
            self.input(first);
            self.depth += 1;
            self.steps(then);
            self.depth -= 1;
            self.line("else");
        }
        self.depth += 1;
        self.line(&format!("lacking {}", shell::word(lacking)));
        self.steps(otherwise);
        self.depth -= 1;
        self.line(if then.is_empty() { "}" } else { "fi" });
    }
}

/// A command in the shell's syntax.
fn written(command: &Command) -> String {
    let word = |word: &String| match word.as_str() {
        DEVICE | IFB | TABLE | ALIAS => format!("\"{word}\""),
        _ => shell::word(word),
    };
    let words = command.as_words().iter().map(word).collect::<Vec<_>>().join(" ");
    if command.as_input().is_some() { format!("{words} <<{END}") } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_devices_as_variables_and_other_words_quoted() {
        assert_eq!(
            written(&Command::new("ip link set dev $IFB alias").word("a b")),
            "ip link set dev \"$IFB\" alias 'a b'"
        );
        assert_eq!(written(&Command::new("alias").word(ALIAS)), "alias \"lastmile tc $DEV\"");
    }

    #[test]
    fn a_discipline_that_a_kernel_may_lack_has_a_hint() {
        let mut script = Script { text: String::new(), depth: 0 };
        script.run(&Command::new("tc qdisc add dev $DEV root handle 1a57: cake bandwidth 1mbit"));
        script.run(&Command::new("tc class add dev $DEV parent 1a57: classid 1a57:1 htb rate 1mbit"));
        let hint = "if this kernel has no cake: CONFIG_NET_SCH_CAKE, or `modprobe sch_cake`; or the policy \
                    fq-codel-sqm, which needs HTB and FQ-CoDel, or `lastmile shape`, which needs neither";
        let command = "tc qdisc add dev \"$DEV\" root handle 1a57: cake bandwidth 1mbit";
        let cake = format!("{command} || {{\n    printf '%s\\n' '{hint}' >&2\n    exit 1\n}}\n");
        assert_eq!(script.text, cake + "tc class add dev \"$DEV\" parent 1a57: classid 1a57:1 htb rate 1mbit\n");
    }

    #[test]
    fn a_text_for_a_command_follows_its_line() {
        let first = Command::new("nft -f -").reading("table inet $TABLE {\n}\n");
        let mut script = Script { text: String::new(), depth: 0 };
        let then = [Step::run("", Command::new("tc then"))];
        script.choice(&first, &[], "nft", &[]);
        script.choice(&first, &then, "nft", &[]);
        let text = "table inet $TABLE {\n}\nEND\n";
        let without = format!("try nft -f - <<END || {{\n{text}    lacking nft\n}}\n");
        let with = format!("if try nft -f - <<END; then\n{text}    tc then\nelse\n    lacking nft\nfi\n");
        assert_eq!(script.text, without + &with);
    }

    /// Root runs the script: nothing but the steps is a command in it, whatever a file calls its
    /// policy and its classes.
    #[test]
    fn no_text_of_a_file_becomes_a_command() {
        let hostile = "x\nreboot\r\nreboot '`reboot`$(reboot)\u{1b}[2J\u{2028}reboot\\\n";
        let texts = || vec![hostile.to_owned()];
        let run = |command: &str| Step::Run { about: texts(), command: Command::new(command).word(hostile) };
        let configuration = Configuration {
            name: hostile.to_owned(),
            about: texts(),
            left_out: texts(),
            steps: vec![
                Step::Heading(hostile.to_owned()),
                Step::Choice {
                    about: texts(),
                    first: Command::new("tc first $DEV"),
                    then: vec![run("tc then $DEV")],
                    lacking: hostile.to_owned(),
                    otherwise: vec![run("tc otherwise $IFB")],
                },
            ],
            has_ifb: true,
            counts_for: Some(Device::Ethernet),
            joins_segments: true,
            flood: None,
        };
        let script = write(&configuration, Devices { device: Some(hostile), ifb: Some(hostile) });
        // Words are in single quotes, including line breaks, except for the name of the table, whose
        // characters need none. The rest contains text of the file only in comments.
        let quoted = shell::word(hostile);
        assert_eq!(script.matches(&quoted).count(), 5, "{script}");
        let named = script.replace(&quoted, "WORD").replace(&format!("TABLE={}\n", table_of(hostile)), "TABLE=NAME\n");
        for line in named.lines().filter(|line| line.contains("reboot")) {
            assert!(line.trim_start().starts_with('#'), "{line:?}");
            assert!(!line.contains(lastmile_text::escape::is_hidden), "{line:?}");
        }
    }

    /// 14 bytes of Ethernet are in front of the IP packet on eth0, and none on ppp0.
    #[test]
    fn a_script_with_a_size_table_stops_on_a_device_of_another_kind() {
        let ethernet = frames(Device::Ethernet);
        assert!(ethernet.contains("in\n*link/ether*|*link/loopback*) ;;\n*)\n"), "{ethernet}");
        assert!(
            ethernet.contains("have an Ethernet header; \\\nprint it anew with: lastmile tc ... --header ip\" >&2\n")
        );
        let ip = frames(Device::Ip);
        assert!(ip.contains("in\n*link/ether*|*link/loopback*)\n    printf"), "{ip}");
        assert!(ip.contains("--header ethernet\" >&2\n    exit 1\n    ;;\n*) ;;\nesac\n"), "{ip}");
    }

    /// `printf %s enp0s31f6.10 | sha256sum` begins with 2a869f29b75, and that of enp0s31f6.11 with 6387fdb6cc6.
    #[test]
    fn names_of_devices_are_no_longer_than_they_may_be_and_stay_distinct() {
        assert_eq!(ifb_of("eth0"), "ifb-eth0");
        assert_eq!(ifb_of("enp0s31f6.7"), "ifb-enp0s31f6.7");
        assert_eq!(ifb_of("enp0s31f6.10"), "ifb-2a869f29b75");
        assert_eq!(ifb_of("enp0s31f6.11"), "ifb-6387fdb6cc6");
    }
}
