//! From the policy to the kernel's configuration.

use lastmile_kernel::stab::Device;
use lastmile_kernel::{Configuration, Direction, Expected, Request, Step, nearest};
use lastmile_queueing::Spec;
use lastmile_queueing::autorate::{self, Rates};
use lastmile_scenario::{Policy, Report};
use lastmile_units::BitRate;
use serde_json::{Value, json};

use crate::commands::policy::ack_rate;

/// A policy on its line.
pub(super) struct Plan {
    policy: Policy,
    classes: Vec<String>,
}

impl Plan {
    pub(super) fn new(policy: Policy) -> Self {
        let classes = policy.classes.iter().map(|class| class.name.clone()).collect();
        Self { policy, classes }
    }

    pub(super) fn warnings(&self) -> &Report {
        &self.policy.warnings
    }

    /// The configuration on a device with `header` in front of each IP packet.
    pub(super) fn configuration(&self, header: Device) -> Configuration {
        let Policy { name, about, line, rate, up, down, ack, largest, .. } = &self.policy;
        let autorate = self.policy.autorate();
        let mut left_out = Vec::new();
        let up = rate.map(|rate| {
            let (queue, remarks) = nearest(up, &line.up_layer);
            left_out.extend(remarks);
            (rate, queue)
        });
        if let Some((rate, queue)) = up.as_ref().filter(|(rate, _)| line.up.is_some_and(|line| *rate >= line))
            && !matches!(queue, Spec::Cake(_))
        {
            left_out.push(burst(&self.policy, *rate));
        }
        let down = down.as_ref().zip(line.down).map(|(down, line_down)| {
            let (queue, remarks) = nearest(&down.queue, &line.down_layer);
            left_out.extend(remarks.into_iter().map(|remark| format!("downstream: {remark}")));
            (down.rate.unwrap_or(line_down), queue)
        });
        if autorate.is_some() {
            let are_cake = [&up, &down].iter().all(|of| matches!(of, Some((_, Spec::Cake(_)))));
            let remark = if are_cake {
                "the script cake-autorate moves them, beside this set-up with dl_if=$IFB, ul_if=$DEV and the values \
                 above"
            } else {
                "the script cake-autorate moves the bandwidth of CAKE alone"
            };
            left_out.push(format!("[autorate]: rates stay at the base; {remark}"));
        }
        let mut configuration = Configuration::new(&Request {
            name,
            about,
            notes: ack.iter().map(ack_rate).chain(autorate.into_iter().flat_map(cake_autorate)).collect(),
            up: up.as_ref().map(|(rate, queue)| Direction { rate: *rate, layer: line.up_layer, queue }),
            down: down.as_ref().map(|(rate, queue)| Direction { rate: *rate, layer: line.down_layer, queue }),
            classes: &self.classes,
            header,
            largest: *largest,
        });
        configuration.left_out.splice(0..0, left_out);
        configuration
    }
}

/// The values of cake-autorate's config file for this policy.
fn cake_autorate(controller: &autorate::Config) -> impl Iterator<Item = String> {
    let kbit = |rate: BitRate| rate.as_bps() / 1000;
    ["dl", "ul"].into_iter().zip(controller.rates).map(move |(direction, Rates { min, base, max, .. })| {
        let (min, base, max) = (kbit(min), kbit(base), kbit(max));
        format!(
            "For cake-autorate: min_{direction}_shaper_rate_kbps={min} base_{direction}_shaper_rate_kbps={base} \
             max_{direction}_shaper_rate_kbps={max}"
        )
    })
}

/// A remark on a policy at the full rate of the line: bursts then queue in the modem, because it is
/// not faster.
fn burst(policy: &Policy, rate: BitRate) -> String {
    let bytes = BURST_PACKETS * policy.line.up_layer.on_wire(policy.largest).as_u64();
    let ms = bytes * 8000 / rate.as_bps();
    format!(
        "one packet at a time at the rate of the line: HTB sends up to {bytes} bytes at once, \
         and while the line is full {ms} ms of \
         waiting stay in the modem for good; `place = \"middlebox\"` and `share = \"97 %\"` in [scheduler] drain them"
    )
}

/// The fewest of the largest packets in the burst of a class.
const BURST_PACKETS: u64 = 3;

/// The configuration for programs: commands and their input, with `$DEV`, `$IFB` and `$TABLE` as
/// placeholders for devices and the table of nft.
pub(super) fn json(configuration: &Configuration) -> Value {
    json!({
        "name": configuration.name,
        "about": configuration.about,
        "left_out": configuration.left_out,
        "steps": steps(&configuration.steps),
    })
}

fn steps(list: &[Step]) -> Vec<Value> {
    let leaves = |expected: &Option<Expected>| {
        expected.as_ref().map(|expected| {
            let values = expected.values.iter().map(|(key, value)| ((*key).to_owned(), value.to_string().into()));
            json!({ "name": expected.name, "values": values.collect::<serde_json::Map<_, _>>() })
        })
    };
    let step = |step: &Step| match step {
        Step::Heading(text) => json!({ "heading": text }),
        Step::Run { about, command } => {
            json!({
                "about": about,
                "run": command.as_words(),
                "input": command.as_input(),
                "leaves": leaves(&command.leaves),
            })
        }
        Step::Choice { about, first, then, lacking, otherwise } => json!({
            "about": about,
            "try": first.as_words(),
            "input": first.as_input(),
            "leaves": leaves(&first.leaves),
            "then": steps(then),
            "lacking": lacking,
            "otherwise": steps(otherwise),
        }),
    };
    list.iter().map(step).collect()
}
