//! Encapsulation, gross rates, buffers and shapers of a line, inferred from trains and echoes.
//!
//! | step, each way | module |
//! | --- | --- |
//! | the rate that stays under overload, and a burst before it | `rate` |
//! | queue, shaper or policer: an overload from an idle line | `buffer` |
//! | time per packet against size, until one class of laws is left | `framing`, `posterior`, `hypothesis` |
//! | overloads with a second size: what the buffer counts | `buffer` |
//! | a light train and a heavy one: loss on the wire, traffic of others | `disturbance` |
//! | a slight overload with echoes of another flow: FIFO, CoDel, PIE, fair turns | `discipline` |
//!
//! [`idle`] needs no server at the other end: it reads cells off the round-trip times of echoes, as
//! the ATM overhead detector does. [`scenario`] writes what was found as a scenario file.
//! The example `detect-table` has the test bench.
//!
//! Sources: ITU-T I.363.5 and I.361 (cells), IEEE 802.3 61.3.3 and ITU-T G.992.3 Annex N (64/65),
//! Brouer 2005, 3.5 (buffers by overload), Birge 1932 (scatter between and within).

use lastmile_units::{ByteCount, Duration};

use crate::error::Error;
use crate::report::Estimate;
use crate::train::{Departure, Path, Way};

mod buffer;
mod discipline;
mod disturbance;
mod estimate;
mod examination;
mod found;
mod framing;
mod hypothesis;
pub mod idle;
mod losses;
mod options;
mod posterior;
mod rate;
pub mod scenario;
mod train;

pub use buffer::{Buffer, Limiter, Unit};
pub use discipline::{Discipline, Kind};

pub use found::{Blocks, Candidate, Detection, Encapsulation, Side, Verdict};
pub use options::Options;

use examination::Examination;
use train::ECHO_BYTES;

/// Length of packets where no echo shows the MTU: each path carries it (RFC 791).
const SAFE_BYTES: u16 = 576;

/// Detects what the line of `path` is. `tell` gets a sentence at each step. An error after the first steps ends the
/// detection, and what was found stays: it is not complete then.
///
/// # Errors
/// The path cannot carry trains: [`idle::detect`] needs only echoes.
pub fn detect(path: &mut dyn Path, options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Detection, Error> {
    let start = path.elapsed().as_secs_f64();
    let allowance = options.allowance.as_secs_f64();
    let mut warnings = Vec::new();
    let mtu_bytes = path.mtu()?.map(|mtu| u16::try_from(mtu.as_u64()).unwrap_or(u16::MAX).min(9_000));
    let mtu = mtu_bytes.unwrap_or(SAFE_BYTES);
    let idle_rtt_s = match idle_rtt(path) {
        Ok(rtt) => rtt,
        Err(error @ Error::Unsupported(_)) => {
            warnings.push(format!("the idle round-trip time is not known: {error}"));
            None
        }
        Err(error) => return Err(error),
    };
    if mtu_bytes.is_none() {
        warnings.push(format!("the MTU is not known, since no echo showed it: trains have {mtu} bytes"));
    }
    let mut sides = [None, None];
    for (number, way) in [Way::Down, Way::Up].into_iter().enumerate() {
        let name = if way == Way::Down { "down" } else { "up" };
        let elapsed = path.elapsed().as_secs_f64() - start;
        // The second way has the time that the first leaves.
        let share = if number == 0 { (allowance - elapsed) / 2.0 } else { allowance - elapsed };
        let until_s = start + elapsed + share;
        let side = Examination { path, way, name, mtu, options, until_s, warnings: &mut warnings, tell }.run();
        match side {
            Ok(side) => sides[number] = Some(side),
            Err(error @ Error::Unsupported(_)) if number == 0 => return Err(error),
            Err(error) => {
                warnings.push(format!("the detection ended in the examination of `{name}`: {error}"));
                break;
            }
        }
    }
    let [down, up] = sides;
    let (took_s, not_seen) = (path.elapsed().as_secs_f64() - start, vec![found::GRANTS.to_owned()]);
    let complete = up.is_some();
    Ok(Detection { mtu_bytes, idle_rtt_s, down, up, took_s, warnings, not_seen, complete })
}

/// The smallest of 60 round-trip times; its interval reaches to the next ones.
fn idle_rtt(path: &mut dyn Path) -> Result<Option<Estimate>, Error> {
    let request = |i: u64| Departure { at: Duration::from_ms(25 * i), ip_len: ByteCount::new(ECHO_BYTES) };
    let requests: Vec<Departure> = (0..60).map(request).collect();
    let answers = path.echoes(&requests)?;
    let mut times: Vec<f64> = answers.iter().filter_map(|echo| Some(echo.round_trip?.as_secs_f64())).collect();
    times.sort_by(f64::total_cmp);
    let low = times.first().copied();
    // The gap to the third: as much may be missing below the smallest.
    Ok(low.map(|value| {
        let step = times.get(2).copied().unwrap_or(value) - value;
        Estimate { value, low: (value - step).max(0.0), high: value + step }
    }))
}
