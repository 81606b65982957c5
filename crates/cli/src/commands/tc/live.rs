//! Changes of the machine: applies, removes, verifies.

use lastmile_kernel::script::{self, ifb_of};
use lastmile_kernel::stab::Device;
use lastmile_live::Error;
use lastmile_live::stop::Stop;
use lastmile_live::tc::sizes::{Measured, Pair, worth_testing};
use lastmile_live::tc::{self, Finding, Target, Verified};
use lastmile_text::table::{Kind, Table};
use lastmile_units::Duration;
use serde_json::json;

use super::arguments::Arguments;
use super::plan::Plan;
use crate::commands::leftovers;
use crate::failure::{Exit, Result};
use crate::printer::Printer;

/// The deviation of a rate that `--verify` allows. The kernel's HTB is accurate to 1e-4; a busy machine is less so.
const ALLOWED: f64 = 1e-3;

/// Removes the set-up.
pub(super) fn remove(arguments: &Arguments, printer: &mut Printer) -> Result {
    let target = target(arguments);
    let words = if tc::remove(&target)? { "the set-up is removed" } else { "no set-up of lastmile is there" };
    printer.talk(&format!("{}: {words}", target.device));
    Ok(Exit::Done)
}

fn target(arguments: &Arguments) -> Target {
    // clap ensures that there is one.
    let device = tc::name_of(arguments.device.as_deref().unwrap_or_default());
    let ifb = arguments.ifb.clone().unwrap_or_else(|| ifb_of(&device));
    Target { device, ifb }
}

/// Applies or verifies.
pub(super) fn run(arguments: &Arguments, plan: &Plan, printer: &mut Printer) -> Result {
    let target = target(arguments);
    let header = match arguments.header {
        Some(header) => Device::from(header),
        None => tc::header_of(&target.device)?,
    };
    let configuration = plan.configuration(header);
    if arguments.apply {
        let lacking = tc::apply(&configuration, &target)?;
        if arguments.json {
            let left_out = lacking.left_out(&configuration);
            let applied = json!({ "device": target.device, "lacking": lacking.features, "left_out": left_out });
            printer.json(&applied)?;
        }
        for what in &lacking.features {
            printer.talk(&format!("this kernel lacks {what}"));
        }
        for what in lacking.left_out(&configuration) {
            printer.talk(&format!("not as in the policy: {what}"));
        }
        printer.talk(&format!("{}: {} is set up", target.device, configuration.name));
        if tc::carries_pppoe(&target.device) {
            printer.talk(&format!(
                "{} carries PPPoE, whose frames have 8 bytes more than are counted here, and no rule sees into them: \
                 set this up on the ppp device above it, such as --device ppp0",
                target.device
            ));
        }
        if tc::has_flowtable() {
            printer.talk(script::FLOWTABLE);
        }
        return Ok(Exit::Done);
    }
    let verified = tc::verify(&configuration, &target)?;
    // Before namespaces are created: from here on a signal ends the measurement, which removes
    // them.
    let stop = Stop::on_signals()?;
    let measured = measure(plan, arguments.each, &stop, printer);
    if let Some(signal) = stop.signal() {
        return Ok(Exit::Interrupted(u8::try_from(signal).unwrap_or(0)));
    }
    let measured = match measured {
        Ok(measured) => measured,
        // A feature that the kernel lacks does not prevent reading back.
        Err(error) => {
            printer.talk(&format!("sizes are not measured: {error}"));
            Vec::new()
        }
    };
    report(arguments, &verified, &measured, printer)?;
    match difference(&verified, &measured) {
        Some(words) => {
            printer.talk(&words);
            Ok(Exit::No)
        }
        None => Ok(Exit::Done),
    }
}

/// Whether a size is measured as it is wanted.
fn holds(measured: &Measured) -> bool {
    measured.deviation().abs() < ALLOWED
}

/// The number of differences in a line; `None` without any.
fn difference(verified: &Verified, measured: &[Measured]) -> Option<String> {
    let values = verified.findings.iter().filter(|finding| !finding.ok).count();
    let sizes = measured.iter().filter(|measured| !holds(measured)).count();
    let of_values = format!("{values} of {} values differ from the policy", verified.findings.len());
    let of_sizes = format!("{sizes} of {} sizes deviate by {} % or more", measured.len(), ALLOWED * 100.0);
    match (values, sizes) {
        (0, 0) => None,
        (_, 0) => Some(of_values),
        (0, _) => Some(of_sizes),
        _ => Some(format!("{of_values}; {of_sizes}")),
    }
}

/// Rates of packets of every informative size.
fn measure(
    plan: &Plan,
    each: Duration,
    stop: &Stop,
    printer: &mut Printer,
) -> std::result::Result<Vec<Measured>, Error> {
    if each == Duration::ZERO {
        return Ok(Vec::new());
    }
    let configuration = plan.configuration(Device::Ethernet);
    let Some(flood) = configuration.flood else {
        printer.talk("sizes are not measured: the upstream is not shaped");
        return Ok(Vec::new());
    };
    leftovers::remove(printer);
    let pair = Pair::new()?;
    for what in pair.apply(&configuration)?.features {
        printer.talk(&format!("this kernel lacks {what}"));
    }
    let sizes = worth_testing(flood.layer, flood.largest);
    printer.talk(&format!("measuring {} sizes, {each} each, between two network namespaces", sizes.len()));
    let lasting = std::time::Duration::from_nanos(each.as_ns());
    sizes.into_iter().map(|size| pair.flood(&flood, size, lasting, stop)).collect()
}

fn report(arguments: &Arguments, verified: &Verified, measured: &[Measured], printer: &mut Printer) -> Result<()> {
    let Verified { findings, fallbacks } = verified;
    if arguments.json {
        let found = findings.iter().map(|finding| {
            let Finding { name, key, wanted, found, ok } = finding;
            json!({ "name": name, "key": key, "wanted": wanted, "found": found, "ok": ok })
        });
        let sizes = measured.iter().map(|measured| {
            json!({
                "size_bytes": measured.size,
                "wire_bytes": measured.wire,
                "wanted_packets_per_s": measured.wanted,
                "measured_packets_per_s": measured.measured,
                "packets": measured.packets,
                "deviation": measured.deviation(),
            })
        });
        let (read_back, sizes) = (found.collect::<Vec<_>>(), sizes.collect::<Vec<_>>());
        printer.json(&json!({ "fallbacks": fallbacks, "read_back": read_back, "sizes": sizes }))?;
        return Ok(());
    }
    if !fallbacks.is_empty() {
        let mut text = "The policy is set up with fallbacks, and compared with them. This kernel lacks\n".to_owned();
        fallbacks.iter().for_each(|what| text.push_str(&format!("  {what}\n")));
        printer.data(&(text + "\n"))?;
    }
    let columns = ["what", "value", "wanted", "found", "ok"].map(|name| (name, Kind::Text));
    let mut table = Table::new(columns);
    for Finding { name, key, wanted, found, ok } in findings {
        let found = found.as_deref().unwrap_or("–");
        table.row([name.as_str(), key, wanted, found, if *ok { "yes" } else { "NO" }]);
    }
    printer.table(&table)?;
    if measured.is_empty() {
        return Ok(());
    }
    let names = ["size", "wire", "wanted/s", "measured/s", "deviation", "ok"];
    let mut table = Table::new(names.map(|name| (name, Kind::Number)));
    for one in measured {
        table.row([
            one.size.to_string(),
            one.wire.to_string(),
            format!("{:.4}", one.wanted),
            format!("{:.4}", one.measured),
            format!("{:+.1e}", one.deviation()),
            if holds(one) { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    printer.data(&format!("\n{}", table.render_within(printer.width())))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 packets a second are wanted: 1001 are a thousandth more, and 1000.9 are less than that.
    #[test]
    fn what_differs_is_counted_in_a_line() {
        let size = |measured| Measured { size: 100, wire: 138, wanted: 1000.0, measured, packets: 2500 };
        let finding = |ok| Finding {
            name: "class ack".to_owned(),
            key: "rate".to_owned(),
            wanted: "1".to_owned(),
            found: None,
            ok,
        };
        let verified =
            |oks: &[bool]| Verified { findings: oks.iter().map(|ok| finding(*ok)).collect(), fallbacks: Vec::new() };
        let told = |oks: &[bool], rates: &[f64]| {
            difference(&verified(oks), &rates.iter().map(|rate| size(*rate)).collect::<Vec<_>>())
        };
        assert_eq!(told(&[true, true], &[1000.9, 999.1]), None);
        assert_eq!(told(&[true], &[1000.9, 1001.1, 998.0]).unwrap(), "2 of 3 sizes deviate by 0.1 % or more");
        assert_eq!(told(&[false, true], &[]).unwrap(), "1 of 2 values differ from the policy");
        let both = "1 of 1 values differ from the policy; 1 of 1 sizes deviate by 0.1 % or more";
        assert_eq!(told(&[false], &[f64::NAN]).unwrap(), both);
    }
}
