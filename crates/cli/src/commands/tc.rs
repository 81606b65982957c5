//! `lastmile tc`: the nearest set-up of the kernel's own tools for a policy: printed, applied,
//! removed, verified.

#[cfg(target_os = "linux")]
mod live;
mod plan;

use clap::{Args, ValueEnum};
use lastmile_kernel::script::{self, Devices};
use lastmile_linklayer::stab::Device;
use lastmile_scenario::file::Reading;
use lastmile_units::Duration;

use self::plan::Plan;
use super::device;
use super::policy::OnLine;
use crate::failure::{Exit, Result};
use crate::printer::Printer;

/// Set up the kernel's own shapers for a policy
///
/// Prints a shell script for tc(8), ip(8) and nft(8) that is as close to the policy as the kernel's
/// tools allow, and lists at its top the parts that they do not support. HTB counts bytes on the
/// wire by a size table, CAKE by itself; pure ACKs are recognised by their missing payload, at any
/// size. --apply runs the script, --remove removes its objects, --verify reads back the kernel's
/// settings, and floods a set-up of its own with packets on both sides of cell boundaries. Linux;
/// everything but printing as root.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    on_line: OnLine,

    /// The device that faces the modem [default: for a script, the variable DEV when it runs]
    #[arg(long, value_name = "DEV", value_parser = device::name)]
    device: Option<String>,

    /// The intermediate device for received packets [default: ifb-DEV]
    #[arg(long, value_name = "DEV", value_parser = device::name)]
    ifb: Option<String>,

    /// Header in front of the IP packet on the device [default: ethernet, or by the kind of the
    /// device]
    #[arg(long, value_name = "HEADER")]
    header: Option<Header>,

    /// Apply it, and replace an earlier set-up
    #[arg(long, requires = "device", conflicts_with_all = ["remove", "verify"])]
    apply: bool,

    /// Remove a set-up of any policy, and nothing else
    #[arg(long, requires = "device", conflicts_with = "verify")]
    remove: bool,

    /// Read back the set-up, and measure rates of packets between two network namespaces
    #[arg(long, requires = "device")]
    verify: bool,

    /// With --verify, the measuring time for each size of packets; 0 s for no measurement
    #[arg(long, value_name = "TIME", default_value = "2.5 s", requires = "verify")]
    each: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The header in front of the IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Header {
    /// An Ethernet header: 14 bytes
    Ethernet,
    /// An Ethernet header with an 802.1Q tag: 18 bytes
    Vlan,
    /// None: ppp0, tun0
    Ip,
}

impl From<Header> for Device {
    fn from(header: Header) -> Self {
        match header {
            Header::Ethernet => Self::Ethernet,
            Header::Vlan => Self::TaggedEthernet,
            Header::Ip => Self::Ip,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    // The set-up is identified without the policy, whose file may be missing or invalid.
    #[cfg(target_os = "linux")]
    if arguments.remove {
        return live::remove(arguments, printer);
    }
    let plan = Plan::new(arguments.on_line.load_for_a_line(Reading::Once)?);
    printer.warnings(plan.warnings());
    if arguments.apply || arguments.remove || arguments.verify {
        #[cfg(target_os = "linux")]
        return live::run(arguments, &plan, printer);
        #[cfg(not(target_os = "linux"))]
        return Err(crate::failure::Failure::new("only Linux has tc"));
    }
    let configuration = plan.configuration(arguments.header.map_or(Device::Ethernet, Device::from));
    if arguments.json {
        printer.json(&plan::json(&configuration))?;
    } else {
        let devices = Devices { device: arguments.device.as_deref(), ifb: arguments.ifb.as_deref() };
        printer.data(&script::write(&configuration, devices))?;
    }
    Ok(Exit::Done)
}
