//! The keys of `[autorate]`, with the names and defaults of cake-autorate.

use lastmile_queueing::autorate::Method;

use crate::schema::{Key, Kind, NUMBER, Section, names};

/// The words of `pinger_method`.
pub(in crate::policy) const METHODS: [(&str, Method); 2] = [("fping", Method::Fping), ("fping-ts", Method::FpingTs)];

/// A factor of a rate, or a weight.
const FACTOR: Kind = Kind::Other("number with at most three decimals", &[Kind::Number, Kind::Matching(NUMBER)]);

const fn fall(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key::with_default(name, FACTOR, default, doc).at_least("0.001").at_most("1")
}

const fn rise(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key::with_default(name, FACTOR, default, doc).at_least("1").at_most("10")
}

pub(in crate::policy) static AUTORATE: Section = Section {
    heading: "`[autorate]`",
    about: "The controller of [cake-autorate](../mechanisms/cake-autorate.md): pings move the rates of both shapers \
            between a minimum and a maximum. It needs `place = \"middlebox\"` and a `share` in `[down]`; what these \
            leave of the line are the base rates. Rates of classes of `htb` and `hfsc` follow in proportion. \
            Keys have the names and defaults of the script; one key holds \
            for both directions.",
    keys: &[
        Key::with_default("min_shaper_rate", Kind::Share, "25 %", "The least rate, as a share of the base rate."),
        Key::with_default(
            "max_shaper_rate",
            Kind::Share,
            "100 %",
            "The largest rate, as a share of the best rate of the line: on a line that changes, that of its trace.",
        ),
        Key::with_default(
            "pinger_method",
            Kind::Choice(&names(&METHODS)),
            "fping",
            "`fping`: round-trip times, of which each direction has half; `fping-ts`: the delay of each direction.",
        ),
        Key::with_default("no_pingers", Kind::Count, "6", "Number of reflectors.").at_least("1").at_most("64"),
        Key::with_default("reflector_ping_interval", Kind::Time, "300 ms", "Time between two pings of a reflector.")
            .at_least("10 ms")
            .at_most("60 s"),
        Key::with_default(
            "avg_owd_delta_max_adjust_up_thr",
            Kind::Time,
            "10 ms",
            "Mean excess of delays over their baseline up to which rises are the largest.",
        )
        .at_most("60 s"),
        Key::with_default("owd_delta_delay_thr", Kind::Time, "30 ms", "Excess above which a reply is delayed.")
            .at_most("60 s"),
        Key::with_default(
            "avg_owd_delta_max_adjust_down_thr",
            Kind::Time,
            "60 ms",
            "Mean excess from which on reductions are the largest.",
        )
        .at_most("60 s"),
        Key::with_default("bufferbloat_detection_window", Kind::Count, "6", "Replies in the window.")
            .at_least("1")
            .at_most("1000"),
        Key::with_default(
            "bufferbloat_detection_thr",
            Kind::Count,
            "3",
            "Delayed replies of the window that are bufferbloat.",
        )
        .at_least("1")
        .at_most("1000"),
        fall("alpha_baseline_increase", "0.001", "Weight of a delay above the baseline.").at_least("0"),
        fall("alpha_baseline_decrease", "0.9", "Weight of a delay below the baseline.").at_least("0"),
        fall("shaper_rate_min_adjust_down_bufferbloat", "0.99", "Factor of the least reduction upon bufferbloat."),
        fall("shaper_rate_max_adjust_down_bufferbloat", "0.75", "Factor of the largest reduction upon bufferbloat."),
        rise("shaper_rate_min_adjust_up_load_high", "1", "Factor of the least rise upon high load."),
        rise("shaper_rate_max_adjust_up_load_high", "1.04", "Factor of the largest rise upon high load."),
        fall("shaper_rate_adjust_down_load_low", "0.99", "Factor towards the base rate from above, upon low load."),
        rise("shaper_rate_adjust_up_load_low", "1.01", "Factor towards the base rate from below, upon low load."),
        fall("high_load_thr", "0.75", "Load above which it is high, as a share of the shaper's rate."),
        Key::with_default(
            "bufferbloat_refractory_period",
            Kind::Time,
            "300 ms",
            "Time after a reduction without a further one, and without a rise.",
        )
        .at_most("60 s"),
        Key::with_default("decay_refractory_period", Kind::Time, "1 s", "Time between two changes upon low load.")
            .at_most("60 s"),
        Key::with_default(
            "monitor_achieved_rates_interval",
            Kind::Time,
            "200 ms",
            "Time over which loads are measured.",
        )
        .at_least("10 ms")
        .at_most("60 s"),
        Key::with_default("connection_active_thr", Kind::Rate, "2 Mbit/s", "A direction with less is idle."),
        Key::with_default(
            "enable_sleep_function",
            Kind::Flag,
            "true",
            "The pings sleep while both directions are idle.",
        ),
        Key::with_default("sustained_idle_sleep_thr", Kind::Time, "60 s", "Idle time after which they sleep.")
            .at_most("1 h"),
        Key::with_default(
            "stall_detection_thr",
            Kind::Count,
            "5",
            "The connection may have stalled when no reply came for so many times the time between replies.",
        )
        .at_least("1")
        .at_most("1000"),
        Key::with_default(
            "connection_stall_thr",
            Kind::Rate,
            "10 kbit/s",
            "It has stalled if a direction then has no more than this.",
        ),
        Key::with_default("global_ping_response_timeout", Kind::Time, "10 s", "Time without any reply that ends hope.")
            .at_most("1 h"),
        Key::with_default(
            "min_shaper_rates_enforcement",
            Kind::Flag,
            "false",
            "The rates fall to their minimum when the pings sleep, and after `global_ping_response_timeout`.",
        ),
        Key::with_default(
            "reflector_health_check_interval",
            Kind::Time,
            "1 s",
            "Time between two checks of the reflectors. A simulation has no spare ones, so that none is replaced.",
        )
        .at_least("10 ms")
        .at_most("1 h"),
        Key::with_default(
            "reflector_response_deadline",
            Kind::Time,
            "1 s",
            "A reflector without a reply for longer commits an offence at a check.",
        )
        .at_most("1 h"),
        Key::with_default("reflector_misbehaving_detection_window", Kind::Count, "60", "Checks in the window.")
            .at_least("1")
            .at_most("1000"),
        Key::with_default(
            "reflector_misbehaving_detection_thr",
            Kind::Count,
            "3",
            "Offences of the window at which a spare reflector takes over.",
        )
        .at_least("1")
        .at_most("1000"),
        Key::with_default(
            "reflector_replacement_interval",
            Kind::Time,
            "1 h",
            "Time after which a reflector is replaced in any case, the pingers in turns.",
        )
        .at_most("1000 h"),
        Key::with_default(
            "reflector_comparison_interval",
            Kind::Time,
            "60 s",
            "Time between two comparisons of the reflectors, each of which replaces one at most.",
        )
        .at_most("1000 h"),
        Key::with_default(
            "reflector_sum_owd_baselines_delta_thr",
            Kind::Time,
            "20 ms",
            "A reflector is replaced if the sum of its baselines exceeds the least of all by more.",
        )
        .at_most("60 s"),
        Key::with_default(
            "reflector_owd_delta_ewma_delta_thr",
            Kind::Time,
            "10 ms",
            "A reflector is replaced if its mean excess in a direction exceeds the least of all by more.",
        )
        .at_most("60 s"),
        fall("alpha_delta_ewma", "0.095", "Weight of an excess in this mean; without high load only.").at_least("0"),
    ],
};
