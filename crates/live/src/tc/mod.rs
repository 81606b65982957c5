//! The kernel's own shapers for a policy: sets up what [`lastmile_kernel`] has worked out, by
//! running tc(8), ip(8) and nft(8).
//!
//! [`apply`] takes away what an earlier run made, then runs every step; a step that fails takes
//! everything away again. What the machine lacks shows before that, on a device of a namespace of
//! its own, so that an earlier set-up stays where a new one cannot be made. [`remove`] takes away
//! what was made here and nothing else: it is known by handle, preference, alias and table.
//! [`verify()`] reads back what the kernel holds. [`sizes`] floods a set-up of its own, between two
//! namespaces, and compares the rates of packets with what the line makes of them.
//!
//! Everything acts on the network namespace of the calling thread.

mod read;
pub mod sizes;
mod tools;
mod verify;

use lastmile_kernel::stab::Device;
use lastmile_kernel::{ALIAS, Configuration, MAJOR, Step, ingress, named, table_of};

use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::link;
use read::words;
pub use tools::Target;
pub(crate) use tools::run;
use tools::run_with;
pub use verify::{Finding, Verified, verify};

/// What [`apply`] could not do, in the words of the configuration.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Lacking {
    /// Features that the kernel lacks.
    pub features: Vec<String>,
    /// Remarks on objects that another one replaces.
    void: Vec<String>,
}

impl Lacking {
    /// The differences of a set-up from its policy, as this kernel has it.
    #[must_use]
    pub fn left_out<'a>(&self, configuration: &'a Configuration) -> Vec<&'a str> {
        let holds = |remark: &&String| !self.void.contains(remark);
        configuration.left_out.iter().filter(holds).map(String::as_str).collect()
    }

    /// Takes the remarks on what these steps would have set up as void.
    fn skip(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Heading(_) => {}
                Step::Run { command, .. } => self.void.extend_from_slice(&command.remarks),
                Step::Choice { first, then, otherwise, .. } => {
                    self.void.extend_from_slice(&first.remarks);
                    self.skip(then);
                    self.skip(otherwise);
                }
            }
        }
    }
}

/// The own name of a device that may be called by an alternative one: rules of nft compare that.
#[must_use]
pub fn name_of(device: &str) -> String {
    read::link_name(device).unwrap_or_else(|| device.to_owned())
}

/// The header of a device's frames in front of an IP packet.
///
/// # Errors
/// There is no such device, or it is of a kind whose frames are not known.
pub fn header_of(device: &str) -> Result<Device, Error> {
    match read::link_type(device)?.as_str() {
        "ether" => Ok(Device::Ethernet),
        "ppp" | "none" | "rawip" => Ok(Device::Ip),
        other => {
            let message = format!("it is of type {other:?}, whose frames are not known");
            Err(Error::Tool { command: format!("device {device}"), message })
        }
    }
}

/// Refuses a device whose frames the size table does not count: 14 bytes a packet would be wrong, silently.
fn check_frames(configuration: &Configuration, device: &str) -> Result<(), Error> {
    let Some(counted) = configuration.counts_for else { return Ok(()) };
    let is_ethernet = matches!(read::link_type(device)?.as_str(), "ether" | "loopback");
    if is_ethernet == (counted != Device::Ip) {
        return Ok(());
    }
    Err(Error::OtherFrames { device: device.to_owned(), counted })
}

/// Whether a session of PPPoE goes over this port. Its frames have 8 bytes more in front of the IP packet than a set-up
/// counts, and no rule sees into them: it belongs on the device of the session.
#[must_use]
pub fn carries_pppoe(device: &str) -> bool {
    // The kernel has no such file where it has no PPPoE.
    std::fs::read_to_string("/proc/thread-self/net/pppoe").is_ok_and(|sessions| is_port_of(&sessions, device))
}

/// The last word of a line is the port of a session.
fn is_port_of(sessions: &str, device: &str) -> bool {
    sessions.lines().skip(1).any(|line| line.split_whitespace().last() == Some(device))
}

/// Whether nft has a flowtable: packets of its flows pass no rules of a set-up, and with hardware offload no queue.
#[must_use]
pub fn has_flowtable() -> bool {
    // Without nft there is none.
    run(&words("nft list flowtables")).is_ok_and(|listed| names_flowtable(&listed))
}

/// nft(8) lists tables without a flowtable, too.
fn names_flowtable(listed: &str) -> bool {
    listed.lines().any(|line| line.trim_start().starts_with("flowtable "))
}

/// Sets up the configuration in place of what an earlier run made.
///
/// # Errors
/// A tool is missing or reports an error; the frames of the device are not those that are counted; it has a discipline
/// that lastmile did not set, or its intermediate device is that of another. An earlier set-up is then unchanged,
/// unless a step succeeded in the rehearsal and failed on this device: then nothing is set up.
pub fn apply(configuration: &Configuration, target: &Target) -> Result<Lacking, Error> {
    check_frames(configuration, &target.device)?;
    match read::root(&target.device)? {
        Some((kind, handle)) if handle != own_handle() && configuration.flood.is_some() => {
            return Err(Error::Taken { device: target.device.clone(), kind, handle });
        }
        _ if is_set_up(target)? => rehearse(configuration, target)?,
        _ => {}
    }
    let Target { device, ifb } = target;
    if configuration.has_ifb && read::link_alias(ifb).is_some_and(|alias| alias != own_alias(target)) {
        return Err(Error::IfbTaken { device: device.clone(), ifb: ifb.clone() });
    }
    remove(target)?;
    let makes_ingress = !has_handle(device, ingress::HANDLE)?;
    let mut lacking = Lacking::default();
    match steps(&configuration.steps, target, &mut lacking) {
        Ok(()) => Ok(lacking),
        Err(error) => {
            take_away(target, makes_ingress)?;
            Err(error)
        }
    }
}

/// Runs every step on the loopback device of a namespace that ends with this call. A kernel without namespaces
/// rehearses nothing.
fn rehearse(configuration: &Configuration, target: &Target) -> Result<(), Error> {
    let Ok(stage) = Namespace::unnamed("rehearsal") else { return Ok(()) };
    let on_stage = Target { device: STAGE.to_owned(), ifb: target.ifb.clone() };
    stage.run(|| steps(&configuration.steps, &on_stage, &mut Lacking::default()))?.map_err(|error| match error {
        Error::Tool { command, message } => Error::Tool {
            command: command.replace(&format!("dev {STAGE} "), &format!("dev {} ", target.device)),
            message: format!("{message} (tried elsewhere: the set-up of {} is as it was)", target.device),
        },
        other => other,
    })
}

/// The device of a rehearsal, which each namespace has.
const STAGE: &str = "lo";

fn steps(steps: &[Step], target: &Target, lacking: &mut Lacking) -> Result<(), Error> {
    for step in steps {
        match step {
            Step::Heading(_) => {}
            Step::Run { command, .. } => {
                run_with(command, target).inspect_err(|_| {
                    // The error of the command is the one to report.
                    let _ = command.undo().map(|undo| run_with(&undo, target));
                })?;
            }
            Step::Choice { first, then, lacking: what, otherwise, .. } => match run_with(first, target) {
                Ok(_) => {
                    lacking.skip(otherwise);
                    self::steps(then, target, lacking)?;
                }
                Err(_) => {
                    lacking.features.push(what.clone());
                    lacking.void.extend_from_slice(&first.remarks);
                    lacking.skip(then);
                    self::steps(otherwise, target, lacking)?;
                }
            },
        }
    }
    Ok(())
}

/// Takes away what [`apply`] made on these devices; false if nothing of it is there. The device itself may be gone.
///
/// # Errors
/// A tool is missing, or reports an error.
pub fn remove(target: &Target) -> Result<bool, Error> {
    take_away(target, false)
}

/// Whether [`take_away`] has anything to take away: a downstream alone has no root.
fn is_set_up(target: &Target) -> Result<bool, Error> {
    let device = &target.device;
    let has_table = |family| run(&words(&format!("nft list table {family} {}", table_of(device)))).is_ok();
    Ok(has_handle(device, &own_handle())?
        || has_own_ifb(target)
        || read::has_own_filter(device)?
        || FAMILIES.into_iter().any(has_table))
}

/// The families of the tables of nft that give packets their class.
const FAMILIES: [&str; 2] = ["inet", "netdev"];

/// Whether a discipline of the device has this handle.
fn has_handle(device: &str, handle: &str) -> Result<bool, Error> {
    Ok(read::handles(device)?.iter().any(|there| there == handle))
}

/// [`remove`], where an ingress discipline without filters is one of a set-up that did not come to its filter
/// (`own_ingress`), or goes with the filter of a set-up, or is that of somebody else.
fn take_away(target: &Target, own_ingress: bool) -> Result<bool, Error> {
    let mut found = false;
    let Target { device, ifb } = target;
    // A device that is gone, such as that of an ended PPPoE session, took its disciplines with it.
    let is_there = link::find(device).context(|| format!("asking for {device}"))?.is_some();
    if is_there && has_handle(device, &own_handle())? {
        run(&words(&format!("tc qdisc del dev {device} root handle {}", own_handle())))?;
        found = true;
    }
    if is_there && has_handle(device, ingress::HANDLE)? {
        // A preference that nobody uses cannot be taken away.
        let (parent, preference) = (ingress::PARENT, ingress::PREFERENCE);
        let had_filter = run(&words(&format!("tc filter del dev {device} parent {parent} pref {preference}"))).is_ok();
        found |= had_filter;
        if (had_filter || own_ingress) && read::has_idle_ingress(device)? {
            run(&words(&format!("tc qdisc del dev {device} ingress")))?;
        }
    }
    if has_own_ifb(target) {
        run(&words(&format!("ip link del dev {ifb}")))?;
        found = true;
    }
    for family in FAMILIES {
        // Without nft there is no table.
        found |= run(&words(&format!("nft delete table {family} {}", table_of(device)))).is_ok();
    }
    Ok(found)
}

/// The handle of the root of a set-up.
fn own_handle() -> String {
    format!("{MAJOR:x}:")
}

/// Whether the intermediate device is that of this device.
fn has_own_ifb(target: &Target) -> bool {
    read::link_alias(&target.ifb).is_some_and(|alias| alias == own_alias(target))
}

/// The alias of the intermediate device of a set-up.
fn own_alias(Target { device, ifb }: &Target) -> String {
    named(ALIAS, device, ifb)
}

#[cfg(test)]
mod tests {
    use lastmile_kernel::Command;

    use super::*;

    /// As pppoe_seq_show of the kernel's drivers/net/ppp/pppoe.c prints sessions.
    #[test]
    fn a_port_of_pppoe_is_found_among_sessions() {
        let sessions = "Id       Address              Device\n0000002A 00:00:5e:00:53:01     eth1\n";
        assert!(is_port_of(sessions, "eth1") && !is_port_of(sessions, "eth") && !is_port_of(sessions, "Device"));
        assert!(!carries_pppoe("lastmile-none"));
    }

    /// As nft 1.0.6 prints them.
    #[test]
    fn a_flowtable_is_found_among_tables() {
        let tables = "table inet flowtable {\n}\ntable inet fw4 {\n";
        let flowtable = "\tflowtable ft {\n\t\thook ingress priority filter\n\t\tdevices = { lan1, wan }\n\t}\n";
        assert!(names_flowtable(&[tables, flowtable, "}\n"].concat()));
        assert!(!names_flowtable(&[tables, "}\n"].concat()) && !names_flowtable(""));
    }

    /// `true` and `false` in the place of tc: the kernel lacks the second of three candidates, or has the first.
    #[test]
    fn remarks_on_what_another_queue_replaces_are_void() {
        let remarked = |words: &str, remark: &str| Command::new(words).remarking(vec![remark.to_owned()]);
        let left = |first: &str, second: &str| {
            let below = vec![Step::run("", remarked("true", "of the third"))];
            let (then, about) = (vec![], vec![]);
            let lacking = "the second".to_owned();
            let second = remarked(second, "of the second");
            let below = Step::Choice { about: vec![], first: second, then: vec![], lacking, otherwise: below };
            let (lacking, otherwise) = ("the first".to_owned(), vec![below]);
            let step = Step::Choice { about, first: remarked(first, "of the first"), then, lacking, otherwise };
            let target = Target { device: "none".to_owned(), ifb: "none".to_owned() };
            let mut lacking = Lacking::default();
            steps(&[step], &target, &mut lacking).unwrap();
            let all = ["of all", "of the first", "of the second", "of the third"].map(str::to_owned);
            let holds: Vec<String> = all.into_iter().filter(|remark| !lacking.void.contains(remark)).collect();
            (lacking.features, holds)
        };
        assert_eq!(left("true", "true"), (vec![], vec!["of all".to_owned(), "of the first".to_owned()]));
        let features = vec!["the first".to_owned(), "the second".to_owned()];
        assert_eq!(left("false", "false"), (features, vec!["of all".to_owned(), "of the third".to_owned()]));
    }
}
