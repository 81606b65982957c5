//! A data file of flent: it is refused with a short reason, or can be written, and read again with equal phases.

use lastmile_measure::flent;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    match flent::read("file", input) {
        Ok(measured) => {
            let again = flent::read("again", &flent::write(&measured)).expect("written by lastmile");
            assert_eq!(again.phases.len(), measured.phases.len(), "written and read again");
            let loads = |measured: &lastmile_measure::report::Measurement| -> Vec<_> {
                measured.phases.iter().map(|phase| phase.load).collect()
            };
            assert_eq!(loads(&again), loads(&measured));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() <= 500 + 8 * input.len(), "{} bytes for {}", text.len(), input.len());
        }
    }
}
