//! The kernel's own shapers for a policy: sets up what [`lastmile_kernel`] has worked out, by
//! running tc(8), ip(8) and nft(8).
//!
//! [`apply`] takes away what an earlier run made, then runs every step; a step that fails takes
//! everything away again. [`remove`] takes away what was made here and nothing else: it is known by
//! handle, preference, alias and table. [`verify()`] reads back what the kernel holds. [`sizes`]
//! floods a set-up of its own, between two namespaces, and compares the rates of packets with what
//! the line makes of them.
//!
//! Everything acts on the network namespace of the calling thread.

mod read;
pub mod sizes;
mod tools;
mod verify;

use lastmile_kernel::{Configuration, MAJOR, Step, ingress, table_of};
use lastmile_linklayer::stab::Device;

use crate::error::Error;
pub use tools::Target;
pub(crate) use tools::run;
use tools::run_with;
pub use verify::{Finding, verify};

/// Features that the kernel lacks, in the words of the configuration.
pub type Lacking = Vec<String>;

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

/// Sets up the configuration in place of what an earlier run made.
///
/// # Errors
/// A tool that is missing, or said no; a device with a discipline of somebody else. Nothing is left then.
pub fn apply(configuration: &Configuration, target: &Target) -> Result<Lacking, Error> {
    remove(target)?;
    if let Some((kind, handle)) = read::root(&target.device)? {
        return Err(Error::Taken { device: target.device.clone(), kind, handle });
    }
    let mut lacking = Vec::new();
    match steps(&configuration.steps, target, &mut lacking) {
        Ok(()) => Ok(lacking),
        Err(error) => {
            remove(target)?;
            Err(error)
        }
    }
}

fn steps(steps: &[Step], target: &Target, lacking: &mut Lacking) -> Result<(), Error> {
    for step in steps {
        match step {
            Step::Heading(_) => {}
            Step::Run { command, .. } => {
                run_with(command, target)?;
            }
            Step::Choice { first, then, lacking: what, otherwise, .. } => match run_with(first, target) {
                Ok(_) => self::steps(then, target, lacking)?,
                Err(_) => {
                    lacking.push(what.clone());
                    self::steps(otherwise, target, lacking)?;
                }
            },
        }
    }
    Ok(())
}

/// Takes away what [`apply`] made on these devices, if it is there.
///
/// # Errors
/// A tool that is missing, or a device.
pub fn remove(target: &Target) -> Result<(), Error> {
    let Target { device, ifb } = target;
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let handles = read::handles(device)?;
    if handles.iter().any(|handle| *handle == format!("{MAJOR:x}:")) {
        run(&words(&format!("tc qdisc del dev {device} root handle {MAJOR:x}:")))?;
    }
    if handles.iter().any(|handle| handle == "ffff:") {
        // A preference that nobody uses cannot be taken away.
        let _ = run(&words(&format!("tc filter del dev {device} parent ffff: pref {}", ingress::PREFERENCE)));
        if read::has_idle_ingress(device)? {
            run(&words(&format!("tc qdisc del dev {device} ingress")))?;
        }
    }
    if read::link_alias(ifb).as_deref() == Some(ingress::ALIAS) {
        run(&words(&format!("ip link del dev {ifb}")))?;
    }
    for family in ["inet", "netdev"] {
        // Without nft there is no table.
        let _ = run(&words(&format!("nft delete table {family} {}", table_of(device))));
    }
    Ok(())
}
