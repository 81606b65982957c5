//! Network quality of service classes of ITU-T Y.1541 (12/2011), table 1 (classes 0 to 5) and
//! table 3 (6 and 7, provisional).
//!
//! A path meets a class if its mean one-way delay (IPTD), its delay variation (IPDV) and its loss ratio (IPLR) are at
//! or below the bounds. IPDV is the 99.9th percentile of the delay less the smallest, and in classes 6 and 7 the
//! 99.999th.
//! Brouer 2005, table 4.1, has the bounds of delay and variation. The error ratio (IPER) and the
//! reordering ratio (IPRR, classes 6 and 7) are ignored.

/// A class and its upper bounds; `None` for no bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Class {
    /// Number of the class.
    pub number: u8,
    /// Mean one-way delay (IPTD), in seconds.
    pub delay_s: Option<f64>,
    /// Delay variation (IPDV), in seconds.
    pub variation_s: Option<f64>,
    /// Loss ratio (IPLR).
    pub loss: Option<f64>,
    /// True for provisional bounds.
    pub provisional: bool,
}

const fn class(number: u8, delay_s: f64, variation_s: Option<f64>, loss: f64) -> Class {
    Class { number, delay_s: Some(delay_s), variation_s, loss: Some(loss), provisional: number > 5 }
}

/// All classes.
pub const CLASSES: [Class; 8] = [
    class(0, 0.1, Some(0.05), 1e-3),
    class(1, 0.4, Some(0.05), 1e-3),
    class(2, 0.1, None, 1e-3),
    class(3, 0.4, None, 1e-3),
    class(4, 1.0, None, 1e-3),
    Class { number: 5, delay_s: None, variation_s: None, loss: None, provisional: false },
    class(6, 0.1, Some(0.05), 1e-5),
    class(7, 0.4, Some(0.05), 1e-5),
];

/// Measurements of a path; `None` for unknown values.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measured {
    /// Mean one-way delay in seconds.
    pub delay_s: Option<f64>,
    /// 99.9th percentile of the delay less the smallest, in seconds.
    pub variation_s: Option<f64>,
    /// 99.999th percentile of the delay less the smallest, in seconds.
    pub tail_variation_s: Option<f64>,
    /// Share of packets lost.
    pub loss: Option<f64>,
}

impl Class {
    /// The fewest packets for a verdict: of these, one may lie above the percentile of the delay, and one lost packet
    /// is the bound of the loss ratio.
    fn enough_packets(&self) -> u64 {
        self.loss.map_or(1_000, |most| most.recip().round() as u64)
    }

    /// True if the path meets every bound. An unknown value meets no bound.
    #[must_use]
    pub fn is_met_by(&self, path: &Measured) -> bool {
        let within =
            |bound: Option<f64>, value: Option<f64>| bound.is_none_or(|most| value.is_some_and(|value| value <= most));
        let variation_s = if self.provisional { path.tail_variation_s } else { path.variation_s };
        within(self.delay_s, path.delay_s) && within(self.variation_s, variation_s) && within(self.loss, path.loss)
    }
}

/// Whether so many packets are enough for a verdict about the class with this number.
#[must_use]
pub fn is_judged(number: u8, packets: u64) -> bool {
    CLASSES.iter().all(|class| class.number != number || packets >= class.enough_packets())
}

/// The numbers of the classes that a path meets. Class 5 has no bounds: every path meets it.
pub fn met(path: &Measured) -> impl Iterator<Item = u8> {
    CLASSES.into_iter().filter(|class| class.is_met_by(path)).map(|class| class.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met_by(delay_ms: f64, variation_ms: f64, loss: f64) -> Vec<u8> {
        let (delay_s, variation_s) = (Some(delay_ms / 1e3), Some(variation_ms / 1e3));
        met(&Measured { delay_s, variation_s, tail_variation_s: variation_s, loss: Some(loss) }).collect()
    }

    /// Y.1541, table 1 and table 3, at the bounds and just above each.
    #[test]
    fn classes_are_met_up_to_their_bounds() {
        assert_eq!(met_by(100.0, 50.0, 1e-5), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(met_by(100.0, 50.0, 1e-3), [0, 1, 2, 3, 4, 5]);
        assert_eq!(met_by(100.0, 51.0, 1e-3), [2, 3, 4, 5]);
        assert_eq!(met_by(101.0, 50.0, 1e-3), [1, 3, 4, 5]);
        assert_eq!(met_by(401.0, 50.0, 1e-3), [4, 5]);
        assert_eq!(met_by(1001.0, 1.0, 0.0), [5]);
        assert_eq!(met_by(1.0, 1.0, 1.1e-3), [5]);
        assert_eq!(met(&Measured::default()).collect::<Vec<_>>(), [5], "nothing is known");
    }

    /// Of 200 000 packets 100 take 190 ms more than the others: the 99.999th percentile is among them, the 99.9th is
    /// not.
    #[test]
    fn table_3_bounds_the_99_999th_percentile() {
        let path =
            Measured { delay_s: Some(0.01), variation_s: Some(0.0), tail_variation_s: Some(0.19), loss: Some(0.0) };
        assert_eq!(met(&path).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }

    /// One lost packet in 1000 is a share of 1e-3, in 100 000 one of 1e-5.
    #[test]
    fn a_verdict_needs_packets_for_its_loss_bound() {
        let enough: Vec<u64> = CLASSES.iter().map(Class::enough_packets).collect();
        assert_eq!(enough, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 100_000, 100_000]);
        assert!(is_judged(4, 1_000) && !is_judged(4, 999) && is_judged(7, 100_000) && !is_judged(6, 99_999));
    }

    /// Brouer 2005, table 4.1, from the repository's data.
    #[test]
    fn delay_and_variation_are_those_of_brouer_2005_table_4_1() {
        let published = include_str!("../../published/data/brouer2005.toml");
        let table = published.split("[[table]]").find(|table| table.contains("\nid = \"4.1\"")).expect("table 4.1");
        let rows: Vec<&str> = table.split("[[table.row]]").skip(1).collect();
        assert_eq!(rows.len(), 6);
        for row in rows {
            let value = |key: &str| {
                let line = row.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
                Some(line.parse::<f64>().expect("a number"))
            };
            let number = value("service_class").expect("a class");
            let class = CLASSES.iter().find(|class| (f64::from(class.number) - number).abs() < 0.5).expect("the class");
            let ms = |seconds: Option<f64>| seconds.map(|s| s * 1e3);
            assert_eq!(
                (ms(class.delay_s), ms(class.variation_s)),
                (value("delay_ms"), value("delay_variation_ms")),
                "{number}"
            );
        }
    }
}
