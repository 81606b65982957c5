//! Quality of a call from one-way delay and packet loss: the E-model of ITU-T G.107 (06/2015).
//!
//! R = Ro - Is - Id - Ie,eff + A (clause 7). Every parameter that the network does not set has the
//! default of table 3 (loudness ratings, side tone, room noise, one quantizing distortion unit; an
//! echo path of TELR 65 dB; no advantage factor A). With all defaults R is 93.2 (clause 7.7) and
//! the mean opinion score 4.41. The delay sensitivity is the class *default* of table 1. The
//! network sets three: the one-way delay from mouth to ear (T and Ta; Tr is twice that), the share
//! of packets that are not played, and their burst ratio.
//!
//! Codecs have the equipment impairment Ie and the packet-loss robustness Bpl of ITU-T G.113
//! (11/2007), appendix I, table I.4.
//!
//! Two choices of this program: a burst ratio above 2 counts as 2, because the formula was fitted
//! to short bursts. The formula is also used above 20 % loss, the upper end of its range in
//! table 3.

/// The parameters of a voice codec in the E-model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Codec {
    /// Name, such as `g711`.
    pub name: &'static str,
    /// Equipment impairment factor without loss, 0 to 40.
    pub ie: f64,
    /// Packet-loss robustness factor, 1 to 40.
    pub bpl: f64,
    /// Speech that the coder needs after a frame before it can code the frame, in seconds.
    pub look_ahead_s: f64,
}

impl Codec {
    /// G.711 with packet-loss concealment (G.711, appendix I).
    pub const G711: Self = Self { name: "g711", ie: 0.0, bpl: 25.1, look_ahead_s: 0.0 };
    /// The codecs of G.113, appendix I, table I.4: packets of 10 ms for G.711, 20 ms for G.729A and
    /// GSM-EFR, 30 ms for G.723.1 at 6.3 kbit/s; G.729A and G.723.1 with voice activity detection.
    /// Look-ahead is that of ITU-T G.729 (5 ms) and G.723.1 (7.5 ms).
    pub const ALL: [Self; 5] = [
        Self::G711,
        Self { name: "g711-no-plc", ie: 0.0, bpl: 4.3, look_ahead_s: 0.0 },
        Self { name: "g729a", ie: 11.0, bpl: 19.0, look_ahead_s: 0.005 },
        Self { name: "g723.1", ie: 15.0, bpl: 16.1, look_ahead_s: 0.0075 },
        Self { name: "gsm-efr", ie: 5.0, bpl: 10.0, look_ahead_s: 0.0 },
    ];

    /// The codec of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name == name)
    }
}

/// The impairments of a call by the network.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// One-way delay from mouth to ear in seconds: packetisation, look-ahead, network, play-out buffer.
    pub delay_s: f64,
    /// Share of the packets that are not played: lost, or too late for the play-out buffer.
    pub loss: f64,
    /// Mean length of runs of packets that are not played, over the mean length at random loss of
    /// this share; 1 for random loss.
    pub burst_ratio: f64,
}

/// The transmission rating factor R, from 0 to 100.
#[must_use]
pub fn r_factor(codec: &Codec, path: &Path) -> f64 {
    let noise = Noise::of_defaults();
    let ms = path.delay_s * 1e3;
    let r = noise.ro() - simultaneous(&noise, ms) - delay(&noise, ms) - equipment(codec, path);
    r.clamp(0.0, 100.0)
}

/// The mean opinion score for `r` (G.107, annex B, equation B-4): 1 to 4.5.
#[must_use]
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        // The polynomial falls below 1 for small R.
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// The users' opinion of a call with `r` (G.107, annex B, table B.1; G.109).
#[must_use]
pub fn satisfaction(r: f64) -> &'static str {
    match r {
        r if r >= 90.0 => "users very satisfied",
        r if r >= 80.0 => "users satisfied",
        r if r >= 70.0 => "some users dissatisfied",
        r if r >= 60.0 => "many users dissatisfied",
        r if r >= 50.0 => "nearly all users dissatisfied",
        _ => "not recommended",
    }
}

/// Ie,eff (G.107, clause 7.5, equation 7-29).
fn equipment(codec: &Codec, path: &Path) -> f64 {
    let percent = path.loss.clamp(0.0, 1.0) * 100.0;
    let burst_ratio = path.burst_ratio.clamp(1.0, 2.0);
    if percent > 0.0 { codec.ie + (95.0 - codec.ie) * percent / (percent / burst_ratio + codec.bpl) } else { codec.ie }
}

/// Send, receive and overall loudness rating, in dB. This and the following constants are the
/// defaults of G.107, table 3.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const OLR: f64 = SLR + RLR;
/// Sidetone masking rating, and listener sidetone rating.
const STMR: f64 = 15.0;
const LSTR: f64 = 18.0;
/// D-value of the telephone at the send side.
const DS: f64 = 3.0;
/// Talker echo loudness rating, and weighted echo path loss.
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Circuit noise and noise floor at the receive side, dBm0p; room noise at either side, dB(A).
const NC: f64 = -70.0;
const NFOR: f64 = -64.0;
const ROOM: f64 = 35.0;

/// Noise referred to the 0 dBr point.
struct Noise {
    no: f64,
}

impl Noise {
    /// G.107, clause 7.2, equations 7-3 to 7-7.
    fn of_defaults() -> Self {
        let send = ROOM - SLR - DS - 100.0 + 0.004 * square(ROOM - OLR - DS - 14.0);
        let receiving = ROOM + 10.0 * libm::log10(1.0 + decibels(10.0 - LSTR));
        let receive = RLR - 121.0 + receiving + 0.008 * square(receiving - 35.0);
        let floor = NFOR + RLR;
        let sum: f64 = [NC, send, receive, floor].into_iter().map(decibels).sum();
        Self { no: 10.0 * libm::log10(sum) }
    }

    fn ro(&self) -> f64 {
        15.0 - 1.5 * (SLR + self.no)
    }
}

/// Is: loudness, sidetone and quantizing (G.107, clause 7.3, equations 7-8 to 7-17), with one
/// quantizing distortion unit (qdu = 1).
fn simultaneous(noise: &Noise, ms: f64) -> f64 {
    let xolr = OLR + 0.2 * (64.0 + noise.no - RLR);
    let loudness = 20.0 * (root_of_powers(xolr / 8.0, 8.0) - xolr / 8.0);
    let masked = -10.0 * libm::log10(decibels(-STMR) + libm::exp(-ms / 4.0) * decibels(-TELR));
    let sidetone = 12.0 * root_of_powers((masked - 13.0) / 6.0, 8.0)
        - 28.0 * root_of_powers((masked + 1.0) / 19.4, 35.0)
        - 13.0 * root_of_powers((masked - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0;
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (noise.ro() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    loudness + sidetone + 15.0 * libm::log10(1.0 + libm::pow(10.0, y) + libm::pow(10.0, z))
}

/// Id: talker echo, listener echo, and delay itself (G.107, clause 7.4, equations 7-18 to 7-28),
/// for a one-way delay in milliseconds. Talker echo of less than 1 ms counts as sidetone.
fn delay(noise: &Noise, ms: f64) -> f64 {
    let terv = TELR - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0)) + 6.0 * libm::exp(-0.3 * ms * ms);
    let talker = half_and_root(-1.5 * (noise.no - RLR) - (80.0 + 2.5 * (terv - 14.0)), 100.0) - 1.0;
    let listener = half_and_root(noise.ro() - 10.5 * (WEPL + 7.0) * libm::pow(2.0 * ms + 1.0, -0.25), 169.0);
    let absolute = if ms <= 100.0 {
        0.0
    } else {
        let x = libm::log10(ms / 100.0) / libm::log10(2.0);
        25.0 * (root_of_powers(x, 6.0) - 3.0 * root_of_powers(x / 3.0, 6.0) + 2.0)
    };
    let talker = if ms < 1.0 { 0.0 } else { talker * (1.0 - libm::exp(-ms)) };
    talker + listener + absolute
}

/// d/2 + sqrt(d^2/4 + `inside`).
fn half_and_root(difference: f64, inside: f64) -> f64 {
    difference / 2.0 + libm::sqrt(square(difference) / 4.0 + inside)
}

/// (1 + x^n)^(1/n).
fn root_of_powers(x: f64, n: f64) -> f64 {
    libm::pow(1.0 + libm::pow(x, n), 1.0 / n)
}

fn decibels(value: f64) -> f64 {
    libm::pow(10.0, value / 10.0)
}

fn square(value: f64) -> f64 {
    value * value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lossy(percent: f64) -> Path {
        Path { loss: percent / 100.0, burst_ratio: 1.0, ..Path::default() }
    }

    /// G.107 (06/2015), clause 7.7 and annex B: with all defaults R is 93.2, and Ro 94.77.
    #[test]
    fn the_defaults_give_r_of_93_2_and_mos_of_4_41() {
        let r = r_factor(&Codec::G711, &lossy(0.0));
        assert!((r - 93.2).abs() < 0.05, "{r}");
        assert!((mos(r) - 4.41).abs() < 0.005, "{}", mos(r));
        assert!((Noise::of_defaults().ro() - 94.7688).abs() < 0.0001);
    }

    /// G.107, annex B, table B.1: lower limits of R and their scores, one of which the table rounds
    /// up (4.03 for 4.024).
    #[test]
    fn scores_and_satisfaction_are_those_of_table_b_1() {
        let table = [
            (90.0, 4.34, "users very satisfied"),
            (80.0, 4.03, "users satisfied"),
            (70.0, 3.60, "some users dissatisfied"),
            (60.0, 3.10, "many users dissatisfied"),
            (50.0, 2.58, "nearly all users dissatisfied"),
        ];
        for (r, score, words) in table {
            assert!((mos(r) - score).abs() < 0.007, "{r}: {}", mos(r));
            assert_eq!(satisfaction(r), words);
        }
        assert_eq!((mos(0.0), mos(100.0), satisfaction(49.9)), (1.0, 4.5, "not recommended"));
        assert!((mos(3.0) - 1.0).abs() < f64::EPSILON, "not below the worst score");
    }

    /// Equations 7-1 to 7-29 of G.107 (06/2015), computed separately with the defaults of table 3
    /// and Tr = 2 T.
    #[test]
    fn r_is_that_of_the_equations() {
        let r = |codec: &str, ms: f64, percent: f64, burst_ratio: f64| {
            r_factor(&Codec::named(codec).unwrap(), &Path { delay_s: ms / 1e3, loss: percent / 100.0, burst_ratio })
        };
        let delays = [
            (0.0, 93.206),
            (20.0, 92.531),
            (50.0, 91.756),
            (100.0, 90.664),
            (150.0, 89.539),
            (200.0, 85.805),
            (300.0, 72.666),
            (400.0, 62.247),
        ];
        for (ms, expected) in delays {
            assert!((r("g711", ms, 0.0, 1.0) - expected).abs() < 0.001, "{ms} ms: {}", r("g711", ms, 0.0, 1.0));
        }
        assert!((r("g729a", 150.0, 2.0, 1.0) - 70.539).abs() < 0.001);
        assert!((r("g723.1", 100.0, 1.0, 2.0) - 70.844).abs() < 0.001);
    }

    /// G.107, clause 7.4: no talker echo below 1 ms. At 1 ms equations 7-19 to 7-22 give -0.11 with
    /// TELR 65 dB.
    #[test]
    fn echo_of_less_than_a_millisecond_is_sidetone() {
        let noise = Noise::of_defaults();
        let talker = delay(&noise, 1.0) - delay(&noise, 0.999_999);
        assert!((talker + 0.11).abs() < 0.005, "{talker}");
    }

    /// Cole and Rosenbluth (2001) fitted Id of the model with its defaults by 0.024 d + 0.11 (d -
    /// 177.3) H(d - 177.3), d in ms, below 400 ms.
    #[test]
    fn delay_costs_what_the_published_fit_says() {
        let noise = Noise::of_defaults();
        for ms in (0..=32).map(|n| f64::from(n) * 10.0) {
            let fit = 0.024 * ms + if ms > 177.3 { 0.11 * (ms - 177.3) } else { 0.0 };
            let id = delay(&noise, ms);
            assert!((id - fit).abs() < 1.0, "{ms} ms: {id} for {fit}");
        }
        assert!(delay(&noise, 100.0) < delay(&noise, 100.1), "continuous and growing at 100 ms");
        assert!(delay(&noise, 100.1) - delay(&noise, 100.0) < 0.01);
    }

    /// G.113 (02/2001), appendix I, table I.2: Ie of G.729A with VAD and of G.723.1 at 6.3 kbit/s,
    /// as whole numbers, for random loss in percent. The formula with Bpl was fitted to these
    /// values.
    #[test]
    fn loss_costs_what_the_table_of_g_113_says() {
        let g729a = [(0.0, 11), (0.5, 13), (1.0, 15), (1.5, 17), (2.0, 19), (3.0, 23), (4.0, 26), (8.0, 36)];
        let g723 = [(0.0, 15), (0.5, 17), (1.0, 19), (1.5, 22), (2.0, 24), (3.0, 27), (4.0, 32), (8.0, 41)];
        for (name, table) in [("g729a", g729a), ("g723.1", g723)] {
            let codec = Codec::named(name).unwrap();
            for (percent, ie) in table {
                let effective = equipment(&codec, &lossy(percent));
                assert!((effective - f64::from(ie)).abs() < 1.2, "{name} at {percent} %: {effective} for {ie}");
            }
        }
    }

    #[test]
    fn bursts_cost_more_than_random_loss_and_no_more_than_a_ratio_of_two() {
        let at = |burst_ratio| equipment(&Codec::G711, &Path { burst_ratio, ..lossy(2.0) });
        // 95 * 2 / (2 / 2 + 25.1)
        assert!((at(2.0) - 190.0 / 26.1).abs() < 1e-9 && at(1.0) < at(1.5) && at(1.5) < at(2.0));
        assert!((at(5.0) - at(2.0)).abs() < 1e-12 && (at(0.3) - at(1.0)).abs() < 1e-12);
    }
}
