//! `[autorate]`: a controller that moves the rates of both shapers.

use core::fmt::{self, Display};

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::autorate::{
    Adjust, Baseline, Config, ConfigError, Detection, Health, Idle, Load, Pings, Rates, Thresholds,
};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{BitRate, ByteCount, Ratio};

use super::form::Form;
use super::model::{Down, Line, Position};
use super::schema;
use crate::document::Value;
use crate::reader::Table;
use crate::value::{FromNode, bounded};

/// A shaper of one direction.
pub(super) struct Shaper {
    /// The rate that its `share` leaves: the base rate.
    pub(super) rate: BitRate,
    pub(super) layer: LinkLayer,
    pub(super) largest: ByteCount,
    /// Its classes have rates that would not follow.
    pub(super) has_rates: bool,
}

impl Shaper {
    /// That of the downstream; `None` where nothing shapes it, or where a drain has its rate.
    pub(super) fn of_down(down: Option<&Down>, line: &Line) -> Option<Self> {
        let down = down.filter(|down| down.drain.is_none())?;
        let has_rates = !down.classes.is_empty() && down.scheduler == Form::Cbq.name();
        Some(Self { rate: down.rate?, layer: line.down_layer, largest: down.largest, has_rates })
    }
}

/// A factor, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Factor(u32);

impl Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1e3)
    }
}

impl FromNode for Factor {
    fn from_value(value: &Value) -> Result<Self, String> {
        let (Value::Integer(text) | Value::Float(text) | Value::String(text)) = value else {
            return Err(format!("{}, where a number is expected, for example 0.99", value.name()));
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let number = (part.len() <= 3).then(|| format!("{whole}{part:0<3}").parse().ok()).flatten();
        number.map(Self).ok_or_else(|| format!("{text} is no number with at most three decimals, such as 0.99"))
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::Float(text.into())).expect("the schema's defaults parse")
    }

    fn out_of_range(&self, min: Option<&'static str>, max: Option<&'static str>) -> Option<String> {
        bounded(self, min, max)
    }
}

impl Factor {
    fn share(self) -> Option<Ratio> {
        Ratio::from_ppm(self.0.checked_mul(1000)?)
    }
}

/// The controller of the policy's shapers, up and down.
pub(super) fn read(
    root: &Table<'_>,
    line: &Line,
    place: Position,
    up: Option<&Shaper>,
    down: Option<&Down>,
) -> Option<Config> {
    let table = &root.table("autorate")?.open(&schema::AUTORATE);
    let refuse = |message: &str, hint: &str| {
        root.error("autorate", format!("autorate: {message}"), Some(hint.to_owned()));
        None
    };
    let (Some(up), Some(up_best), Some(down_best)) = (up, line.up_best, line.down_best) else {
        return refuse("a direction is not shaped", "the rates of both directions");
    };
    if place == Position::Modem {
        return refuse("a queue in the modem has no shaper", "place = \"middlebox\" in [scheduler]");
    }
    let Some(down) = Shaper::of_down(down, line) else {
        return refuse("no shaper of the downstream whose rate may change", "share in [down], without drain");
    };
    if up.has_rates || down.has_rates {
        return refuse("the rates of classes of \"cbq\" do not follow that of the line", "kind = \"htb\" or \"hfsc\"");
    }
    let (least, most): (Option<Ratio>, Option<Ratio>) = (table.get("min_shaper_rate"), table.get("max_shaper_rate"));
    let (least, most) = (least?, most?);
    // A controller has whole kbit/s, and at least one.
    let whole = |rate: Option<BitRate>| BitRate::from_kbit_per_s(rate.map_or(1, |rate| rate.as_bps() / 1000).max(1));
    let rates = |shaper: &Shaper, best: BitRate| Rates {
        min: whole(least.of_rate(shaper.rate)),
        base: whole(Some(shaper.rate)),
        max: whole(most.of_rate(best)),
        largest: shaper.layer.on_wire(shaper.largest),
    };
    let config = Config {
        pings: pings(table)?,
        thresholds: Thresholds {
            avg_owd_delta_max_adjust_up_thr: table.get("avg_owd_delta_max_adjust_up_thr")?,
            owd_delta_delay_thr: table.get("owd_delta_delay_thr")?,
            avg_owd_delta_max_adjust_down_thr: table.get("avg_owd_delta_max_adjust_down_thr")?,
        },
        detection: Detection {
            bufferbloat_detection_window: count(table, "bufferbloat_detection_window")?,
            bufferbloat_detection_thr: count(table, "bufferbloat_detection_thr")?,
            bufferbloat_refractory_period: table.get("bufferbloat_refractory_period")?,
        },
        baseline: Baseline {
            alpha_baseline_increase: table.get::<Factor>("alpha_baseline_increase")?.share()?,
            alpha_baseline_decrease: table.get::<Factor>("alpha_baseline_decrease")?.share()?,
        },
        adjust: adjust(table)?,
        load: Load {
            high_load_thr: table.get::<Factor>("high_load_thr")?.share()?,
            monitor_achieved_rates_interval: table.get("monitor_achieved_rates_interval")?,
            connection_active_thr: table.get("connection_active_thr")?,
        },
        idle: idle(table)?,
        health: health(table)?,
        ..Config::new([rates(&down, down_best), rates(up, up_best)])
    };
    match config.check() {
        Ok(()) => Some(config),
        Err(error) => {
            let key = match error {
                ConfigError::Rates { base, max, .. } if max < base => "max_shaper_rate",
                ConfigError::Rates { .. } => "min_shaper_rate",
                ConfigError::Window { .. } => "bufferbloat_detection_thr",
                ConfigError::Offences { .. } => "reflector_misbehaving_detection_thr",
                ConfigError::NoPings => "reflector_ping_interval",
            };
            table.error(key, format!("{}: {error}", table.path(key)), None);
            None
        }
    }
}

/// `queue` with its shaper at `rate`: the spec of a queue whose rate a controller moves has the largest.
pub(crate) fn at_most(queue: &Spec, rate: BitRate) -> Spec {
    let mut queue = queue.clone();
    raise(&mut queue, rate);
    queue
}

fn raise(queue: &mut Spec, rate: BitRate) {
    match queue {
        Spec::Drain(Over { config, queue }) => {
            (config.line, config.share) = (rate, Ratio::ONE);
            raise(queue, rate);
        }
        Spec::Tbf(Over { config, queue }) => {
            config.rate = rate;
            raise(queue, rate);
        }
        // Policies have one class on the line, above all others.
        Spec::Htb(config) => {
            config.set_rate(rate);
        }
        Spec::Hfsc(config) => {
            config.set_rate(rate);
        }
        Spec::Cake(config) => config.bandwidth = Some(rate),
        Spec::Rules(rules) => raise(&mut rules.queue, rate),
        Spec::Witness(Over { queue, .. }) => raise(queue, rate),
        Spec::WindowClamp(Over { queue, .. }) => raise(queue, rate),
        Spec::AckPacing(Over { queue, .. }) => raise(queue, rate),
        Spec::Policer(Over { queue, .. }) => raise(queue, rate),
        _ => {}
    }
}

fn count(table: &Table<'_>, key: &'static str) -> Option<u32> {
    u32::try_from(table.get::<u64>(key)?).ok()
}

fn pings(table: &Table<'_>) -> Option<Pings> {
    Some(Pings {
        pinger_method: table.choice("pinger_method", &schema::METHODS)?,
        no_pingers: count(table, "no_pingers")?,
        reflector_ping_interval: table.get("reflector_ping_interval")?,
    })
}

fn adjust(table: &Table<'_>) -> Option<Adjust> {
    let factor = |key| Some(table.get::<Factor>(key)?.0);
    Some(Adjust {
        min_adjust_down_bufferbloat: factor("shaper_rate_min_adjust_down_bufferbloat")?,
        max_adjust_down_bufferbloat: factor("shaper_rate_max_adjust_down_bufferbloat")?,
        min_adjust_up_load_high: factor("shaper_rate_min_adjust_up_load_high")?,
        max_adjust_up_load_high: factor("shaper_rate_max_adjust_up_load_high")?,
        adjust_down_load_low: factor("shaper_rate_adjust_down_load_low")?,
        adjust_up_load_low: factor("shaper_rate_adjust_up_load_low")?,
        decay_refractory_period: table.get("decay_refractory_period")?,
    })
}

fn idle(table: &Table<'_>) -> Option<Idle> {
    let (sleeps, after): (bool, _) = (table.get("enable_sleep_function")?, table.get("sustained_idle_sleep_thr")?);
    Some(Idle {
        sustained_idle_sleep_thr: sleeps.then_some(after),
        stall_detection_thr: count(table, "stall_detection_thr")?,
        connection_stall_thr: table.get("connection_stall_thr")?,
        global_ping_response_timeout: table.get("global_ping_response_timeout")?,
        min_shaper_rates_enforcement: table.get("min_shaper_rates_enforcement")?,
    })
}

fn health(table: &Table<'_>) -> Option<Health> {
    Some(Health {
        reflector_health_check_interval: table.get("reflector_health_check_interval")?,
        reflector_response_deadline: table.get("reflector_response_deadline")?,
        reflector_misbehaving_detection_window: count(table, "reflector_misbehaving_detection_window")?,
        reflector_misbehaving_detection_thr: count(table, "reflector_misbehaving_detection_thr")?,
        reflector_replacement_interval: table.get("reflector_replacement_interval")?,
        reflector_comparison_interval: table.get("reflector_comparison_interval")?,
        reflector_sum_owd_baselines_delta_thr: table.get("reflector_sum_owd_baselines_delta_thr")?,
        reflector_owd_delta_ewma_delta_thr: table.get("reflector_owd_delta_ewma_delta_thr")?,
        alpha_delta_ewma: table.get::<Factor>("alpha_delta_ewma")?.share()?,
    })
}
