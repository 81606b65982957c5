//! The command line of `lastmile tc`.

use clap::{Args, ValueEnum};
use lastmile_kernel::stab::Device;
use lastmile_units::Duration;

use crate::commands::device;
use crate::commands::policy::OnLine;

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
    pub(super) on_line: OnLine,

    /// The device that faces the modem [default: for a script, the variable DEV when it runs]
    #[arg(long, value_name = "DEV", value_parser = device::name)]
    pub(super) device: Option<String>,

    /// The intermediate device for received packets [default: ifb-DEV]
    #[arg(long, value_name = "DEV", value_parser = device::name)]
    pub(super) ifb: Option<String>,

    /// Header in front of the IP packet on the device [default: by the kind of the device; for a
    /// script, ethernet]
    #[arg(long, value_name = "HEADER")]
    pub(super) header: Option<Header>,

    /// Apply it, and replace an earlier set-up
    #[arg(long, requires = "device", conflicts_with_all = ["remove", "verify"])]
    pub(super) apply: bool,

    /// Remove a set-up of any policy, and nothing else
    #[arg(long, requires = "device", conflicts_with = "verify")]
    pub(super) remove: bool,

    /// Read back the set-up, and measure rates of packets between two network namespaces; exits with 1
    /// where a value differs, or where the rate of a size deviates by 0.1 % or more
    #[arg(long, requires = "device")]
    pub(super) verify: bool,

    /// With --verify, the measuring time for each size of packets; 0 s for no measurement
    #[arg(long, value_name = "TIME", default_value = "2.5 s", requires = "verify")]
    pub(super) each: Duration,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The header in front of the IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Header {
    /// An Ethernet header: 14 bytes
    Ethernet,
    /// An Ethernet header with an 802.1Q tag inside: 18 bytes. Not eth0.7 or its parent, whose queues see no tag
    InlineVlan,
    /// None: ppp0, tun0
    Ip,
}

impl From<Header> for Device {
    fn from(header: Header) -> Self {
        match header {
            Header::Ethernet => Self::Ethernet,
            Header::InlineVlan => Self::TaggedEthernet,
            Header::Ip => Self::Ip,
        }
    }
}
