//! The parameters of the controller, with the names and defaults of cake-autorate.

use lastmile_units::{BitRate, Duration, Instant, Ratio, WireBytes};

use super::MILLION;

/// Parameters of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rates of the shapers: down, up.
    pub rates: [Rates; 2],
    /// The pings.
    pub pings: Pings,
    /// What is a delay.
    pub thresholds: Thresholds,
    /// What is bufferbloat.
    pub detection: Detection,
    /// How baselines follow delays.
    pub baseline: Baseline,
    /// How much rates change.
    pub adjust: Adjust,
    /// What is a high load, and an active connection.
    pub load: Load,
    /// Sleep and stall.
    pub idle: Idle,
    /// Which reflectors are replaced.
    pub health: Health,
}

/// The rates of a shaper, in whole kbit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// `min_dl_shaper_rate_kbps`: the rate never falls below.
    pub min: BitRate,
    /// `base_dl_shaper_rate_kbps`: the rate without load, and at first.
    pub base: BitRate,
    /// `max_dl_shaper_rate_kbps`: the rate never exceeds this.
    pub max: BitRate,
    /// The largest packet on the wire. Its transmission time is added to thresholds.
    pub largest: WireBytes,
}

/// `pinger_method`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Echo requests: half of the round-trip time counts for each direction.
    #[default]
    Fping,
    /// Timestamps: each direction has its own delay.
    FpingTs,
}

/// The pings: one each `reflector_ping_interval` to each of `no_pingers` reflectors, in turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pings {
    /// What is measured.
    pub pinger_method: Method,
    /// The number of reflectors.
    pub no_pingers: u32,
    /// The time between pings to one reflector.
    pub reflector_ping_interval: Duration,
}

impl Pings {
    /// IP bytes of a ping and its answer: 56 bytes of data, as fping(8) sends.
    pub const IP_BYTES: u64 = 84;

    /// The time between two pings of any reflectors.
    #[must_use]
    pub fn response_interval(&self) -> Duration {
        Duration::from_us(self.reflector_ping_interval.as_us() / u64::from(self.no_pingers.max(1)))
    }

    /// The time of the ping of this number, counted from 0, of a reflector. The first ping of all is at `start`.
    #[must_use]
    pub fn turn(&self, start: Instant, reflector: u32, number: u64) -> Instant {
        let offset = self.response_interval().saturating_mul(reflector.into());
        start.saturating_add(offset).saturating_add(self.reflector_ping_interval.saturating_mul(number))
    }
}

impl Default for Pings {
    fn default() -> Self {
        Self { pinger_method: Method::Fping, no_pingers: 6, reflector_ping_interval: Duration::from_ms(300) }
    }
}

/// Excess over the baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Mean excess up to which a rate rises by the most.
    pub avg_owd_delta_max_adjust_up_thr: Duration,
    /// Excess above which a reply is delayed.
    pub owd_delta_delay_thr: Duration,
    /// Mean excess from which on a rate falls by the most.
    pub avg_owd_delta_max_adjust_down_thr: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            avg_owd_delta_max_adjust_up_thr: Duration::from_ms(10),
            owd_delta_delay_thr: Duration::from_ms(30),
            avg_owd_delta_max_adjust_down_thr: Duration::from_ms(60),
        }
    }
}

/// Detection of bufferbloat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detection {
    /// The number of replies in the window.
    pub bufferbloat_detection_window: u32,
    /// The number of delayed ones among them that is bufferbloat.
    pub bufferbloat_detection_thr: u32,
    /// Time after a reduction without another change by load or bufferbloat.
    pub bufferbloat_refractory_period: Duration,
}

impl Default for Detection {
    fn default() -> Self {
        Self {
            bufferbloat_detection_window: 6,
            bufferbloat_detection_thr: 3,
            bufferbloat_refractory_period: Duration::from_ms(300),
        }
    }
}

/// Weights of a delay in the baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// Of a delay above the baseline.
    pub alpha_baseline_increase: Ratio,
    /// Of a delay below it.
    pub alpha_baseline_decrease: Ratio,
}

impl Default for Baseline {
    fn default() -> Self {
        Self {
            alpha_baseline_increase: Ratio::from_ppm(1_000).expect("a share"),
            alpha_baseline_decrease: Ratio::from_percent(90).expect("a share"),
        }
    }
}

impl Baseline {
    /// The baseline after a delay, both in microseconds.
    pub(super) fn moved(&self, baseline: i64, delay: i64) -> i64 {
        let alpha = if delay >= baseline { self.alpha_baseline_increase } else { self.alpha_baseline_decrease };
        moved(alpha, baseline, delay)
    }
}

/// A moving average after a value of this weight, in whole microseconds.
pub(super) fn moved(weight: Ratio, average: i64, value: i64) -> i64 {
    let weight = i64::from(weight.as_parts_per_billion() / 1000);
    (weight * value + (MILLION - weight) * average) / MILLION
}

/// Factors of rates in thousandths, without the prefix `shaper_rate_`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adjust {
    /// Upon bufferbloat, where the mean excess is at the delay threshold.
    pub min_adjust_down_bufferbloat: u32,
    /// Upon bufferbloat, where the mean excess is at `avg_owd_delta_max_adjust_down_thr` or above.
    pub max_adjust_down_bufferbloat: u32,
    /// Upon high load, where the mean excess is at the delay threshold.
    pub min_adjust_up_load_high: u32,
    /// Upon high load, where the mean excess is at `avg_owd_delta_max_adjust_up_thr` or below.
    pub max_adjust_up_load_high: u32,
    /// Down to the base rate upon low load.
    pub adjust_down_load_low: u32,
    /// Up to the base rate upon low load.
    pub adjust_up_load_low: u32,
    /// Time between two changes upon low load.
    pub decay_refractory_period: Duration,
}

impl Default for Adjust {
    fn default() -> Self {
        Self {
            min_adjust_down_bufferbloat: 990,
            max_adjust_down_bufferbloat: 750,
            min_adjust_up_load_high: 1000,
            max_adjust_up_load_high: 1040,
            adjust_down_load_low: 990,
            adjust_up_load_low: 1010,
            decay_refractory_period: Duration::from_s(1),
        }
    }
}

/// The load of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Share of the shaper's rate above which the load is high, in whole percent.
    pub high_load_thr: Ratio,
    /// Time over which loads are measured.
    pub monitor_achieved_rates_interval: Duration,
    /// A direction with less is idle.
    pub connection_active_thr: BitRate,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            high_load_thr: Ratio::from_percent(75).expect("a share"),
            monitor_achieved_rates_interval: Duration::from_ms(200),
            connection_active_thr: BitRate::from_mbit_per_s(2),
        }
    }
}

/// Sleep and stall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Time without load after which the pings sleep. `None`: never (`enable_sleep_function=0`).
    pub sustained_idle_sleep_thr: Option<Duration>,
    /// The connection has stalled without replies for as many times as they are apart, if a direction has at most
    /// `connection_stall_thr`.
    pub stall_detection_thr: u32,
    /// See `stall_detection_thr`.
    pub connection_stall_thr: BitRate,
    /// Time without any reply after which all reflectors are given up.
    pub global_ping_response_timeout: Duration,
    /// The rates fall to their minimum when the pings sleep, and when all reflectors are given up.
    pub min_shaper_rates_enforcement: bool,
}

impl Default for Idle {
    fn default() -> Self {
        Self {
            sustained_idle_sleep_thr: Some(Duration::from_s(60)),
            stall_detection_thr: 5,
            connection_stall_thr: BitRate::from_kbit_per_s(10),
            global_ping_response_timeout: Duration::from_s(10),
            min_shaper_rates_enforcement: false,
        }
    }
}

/// Replacement of reflectors by spare ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    /// Time between two checks.
    pub reflector_health_check_interval: Duration,
    /// Time without a reply that is an offence at a check.
    pub reflector_response_deadline: Duration,
    /// The number of checks in the window.
    pub reflector_misbehaving_detection_window: u32,
    /// The number of offences among them at which a reflector is replaced.
    pub reflector_misbehaving_detection_thr: u32,
    /// Time after which a reflector is replaced in any case.
    pub reflector_replacement_interval: Duration,
    /// Time between two comparisons of the reflectors.
    pub reflector_comparison_interval: Duration,
    /// The most that the sum of both baselines of a reflector may exceed the least.
    pub reflector_sum_owd_baselines_delta_thr: Duration,
    /// The most that the mean excess of a reflector may exceed the least, in each direction.
    pub reflector_owd_delta_ewma_delta_thr: Duration,
    /// Weight of an excess in its mean.
    pub alpha_delta_ewma: Ratio,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            reflector_health_check_interval: Duration::from_s(1),
            reflector_response_deadline: Duration::from_s(1),
            reflector_misbehaving_detection_window: 60,
            reflector_misbehaving_detection_thr: 3,
            reflector_replacement_interval: Duration::from_s(3600),
            reflector_comparison_interval: Duration::from_s(60),
            reflector_sum_owd_baselines_delta_thr: Duration::from_ms(20),
            reflector_owd_delta_ewma_delta_thr: Duration::from_ms(10),
            alpha_delta_ewma: Ratio::from_ppm(95_000).expect("a share"),
        }
    }
}

/// A configuration that no controller can follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// Rates out of order.
    #[error(
        "a minimum of {min} and a maximum of {max} around a base rate of {base}; rates are 1 kbit/s or more, in order"
    )]
    Rates {
        /// The minimum.
        min: BitRate,
        /// The base rate.
        base: BitRate,
        /// The maximum.
        max: BitRate,
    },
    /// A window that never holds enough delayed replies, or always.
    #[error("{thr} delayed replies out of {window}; it is 1 or more, and at most the window")]
    Window {
        /// The configured threshold.
        thr: u32,
        /// The configured window.
        window: u32,
    },
    /// A window that never holds enough offences, or always.
    #[error("{thr} offences out of {window}; it is 1 or more, and at most the window")]
    Offences {
        /// The configured threshold.
        thr: u32,
        /// The configured window.
        window: u32,
    },
    /// No pings.
    #[error("no pings: the number of reflectors and the time between pings are above zero")]
    NoPings,
}

impl Config {
    /// The defaults of cake-autorate for shapers of these rates: down, up.
    #[must_use]
    pub fn new(rates: [Rates; 2]) -> Self {
        Self {
            rates,
            pings: Pings::default(),
            thresholds: Thresholds::default(),
            detection: Detection::default(),
            baseline: Baseline::default(),
            adjust: Adjust::default(),
            load: Load::default(),
            idle: Idle::default(),
            health: Health::default(),
        }
    }

    /// Refuses what no controller can follow.
    ///
    /// # Errors
    /// Rates out of order, a window without effect, no pings.
    pub fn check(&self) -> Result<(), ConfigError> {
        for Rates { min, base, max, .. } in self.rates {
            if min.as_bps() < 1000 || base < min || max < base {
                return Err(ConfigError::Rates { min, base, max });
            }
        }
        let Detection { bufferbloat_detection_window: window, bufferbloat_detection_thr: thr, .. } = self.detection;
        if thr == 0 || thr > window {
            return Err(ConfigError::Window { thr, window });
        }
        let Health { reflector_misbehaving_detection_window: window, reflector_misbehaving_detection_thr: thr, .. } =
            self.health;
        if thr == 0 || thr > window {
            return Err(ConfigError::Offences { thr, window });
        }
        if self.pings.response_interval().is_zero() || self.pings.no_pingers == 0 {
            return Err(ConfigError::NoPings);
        }
        Ok(())
    }

    /// Time without replies after which the connection may have stalled.
    pub(super) fn stall_detection_timeout(&self) -> Duration {
        self.pings.response_interval().saturating_mul(self.idle.stall_detection_thr.into())
    }
}
