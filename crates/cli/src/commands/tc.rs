//! `lastmile tc`: the nearest set-up of the kernel's own tools for a policy: printed, applied,
//! removed, verified.

mod arguments;
#[cfg(target_os = "linux")]
mod live;
mod plan;

use lastmile_kernel::script::{self, Devices};
use lastmile_kernel::stab::Device;
use lastmile_scenario::file::Reading;

pub(crate) use self::arguments::Arguments;
use self::plan::Plan;
use crate::failure::{Exit, Result};
use crate::printer::Printer;

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
