//! The published side: figures, authors, settings, and contradictions of each publication.
//!
//! A table's `scenario` holds what all its rows share, a row's `params` what it varies. `published`
//! are the reported figures, `theory` the publication's own closed form recomputed without
//! rounding, `theory_printed` the figure as printed. `unstated` lists facts that a publication
//! leaves open; `inferred` holds values deduced here, with the basis.

use serde::Deserialize;

use crate::value::Values;

/// The files, by the key of their publication.
const FILES: [(&str, &str); 12] = [
    ("ano2002", include_str!("../data/ano2002.toml")),
    ("brouer2005", include_str!("../data/brouer2005.toml")),
    ("kalyanaraman1999", include_str!("../data/kalyanaraman1999.toml")),
    ("phanse2000", include_str!("../data/phanse2000.toml")),
    ("sun1998", include_str!("../data/sun1998.toml")),
    ("ced2006", include_str!("../data/ced2006.toml")),
    ("custura2020", include_str!("../data/custura2020.toml")),
    ("deschepper2016", include_str!("../data/deschepper2016.toml")),
    ("hock2017", include_str!("../data/hock2017.toml")),
    ("starlink2025", include_str!("../data/starlink2025.toml")),
    ("ware2019", include_str!("../data/ware2019.toml")),
    ("white2019", include_str!("../data/white2019.toml")),
];

/// A publication and its tables.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Its key: first author and year, `phanse2000`.
    pub key: String,
    /// Authors, as on the title page.
    pub authors: String,
    /// Year of publication.
    pub year: u16,
    /// Thesis, journal paper, conference paper.
    pub kind: String,
    /// The subject.
    pub topic: String,
    /// The simulator that it used, for simulations.
    pub simulator: Option<String>,
    /// The machines and lines it measured on, for measurements.
    pub measured_on: Option<String>,
    /// Its formulas, in words.
    pub formulas: Vec<String>,
    /// Facts that the whole publication leaves open.
    pub general_unstated: Vec<String>,
    /// Its tables, figures and worked examples.
    pub tables: Vec<Table>,
}

/// A table, figure or worked example of a publication.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its number in the publication: `5.1`, `fig-5.9`, `text-3.4`.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// Where its figures come from.
    pub kind: Kind,
    /// `reference` or `configuration`, for tables that are no results.
    pub nature: Option<String>,
    /// Section or figure.
    #[serde(rename = "where")]
    pub place: String,
    /// The claim that a reproduction must show.
    pub claim: String,
    /// How hard it is to reproduce: `closed-form`, `easy`, `medium`, `hard`.
    pub difficulty: String,
    /// Facts that it leaves open.
    pub unstated: Vec<String>,
    /// Where it disagrees with itself.
    pub contradictions: Vec<String>,
    /// Settings that all rows share.
    pub scenario: Values,
    /// Values deduced here, with the basis.
    #[serde(default)]
    pub inferred: Values,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// The setting of a table that is simulated with another TCP than that of the publication.
pub(crate) const TCP_OF: &str = "tcp_of";
pub(crate) const TODAY: &str = "today";

impl Table {
    /// The table as if the publication's hosts had the TCP of a current Linux. Keys that an experiment sets, such as
    /// the windows of one upload, hold as before.
    #[must_use]
    pub fn with_todays_tcp(&self) -> Self {
        let mut today = self.clone();
        today.title += ", with the TCP of today";
        today.scenario.set(TCP_OF, TODAY);
        today
    }

    pub(crate) fn has_todays_tcp(&self) -> bool {
        self.scenario.text(TCP_OF) == Some(TODAY)
    }
}

/// Where a table's figures come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A closed form.
    Theory,
    /// A simulator.
    Simulated,
    /// A testbed or a real line.
    Measured,
}

impl Kind {
    /// The word for it in the data files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Theory => "theory",
            Self::Simulated => "simulated",
            Self::Measured => "measured",
        }
    }
}

/// A row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The parameters that it varies.
    pub params: Values,
    /// The figures reported.
    pub published: Values,
    /// The publication's closed form, without rounding.
    pub theory: Values,
    /// The closed form as printed.
    #[serde(default)]
    pub theory_printed: Values,
    /// Figures computed here from the published ones, to check them against each other.
    #[serde(default)]
    pub check: Values,
    /// A remark.
    pub note: Option<String>,
}

/// A data file that cannot be read. The shipped ones can: a test reads them all.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Not TOML, or not of this shape.
    #[error("published data of {publication}: {source}")]
    Malformed {
        /// The file's publication.
        publication: String,
        /// Where, and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A file of experiments that is not TOML, or not of its shape.
    #[error("{file}: {source}")]
    Experiments {
        /// The file.
        file: String,
        /// Line, key, and the expected form.
        source: Box<toml::de::Error>,
    },
    /// A name in a file of experiments that refers to nothing.
    #[error("{file}, line {line}: {message}")]
    Reference {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The key, the name, and the names that there are.
        message: String,
    },
    /// The file's key is not the one it is shipped under.
    #[error("published data of {expected} call themselves {found}")]
    WrongKey {
        /// The key it is shipped under.
        expected: String,
        /// The key inside.
        found: String,
    },
    /// Two tables of one publication with the same id.
    #[error("published data of {publication} have two tables {id}")]
    DuplicateTable {
        /// The publication.
        publication: String,
        /// The id used twice.
        id: String,
    },
}

/// The shape of a file, before the two halves are joined.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    publication: Head,
    #[serde(rename = "table")]
    tables: Vec<Table>,
}

/// The `[publication]` table of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    key: String,
    authors: String,
    year: u16,
    kind: String,
    topic: String,
    simulator: Option<String>,
    measured_on: Option<String>,
    formulas: Vec<String>,
    general_unstated: Vec<String>,
}

/// Every publication that ships with the program, in the order of its key.
///
/// # Errors
///
/// When a data file does not have the shape described in [`data`](self).
pub fn publications() -> Result<Vec<Publication>, DataError> {
    FILES.iter().map(|(key, text)| Publication::parse(key, text)).collect()
}

impl Publication {
    /// Reads a data file that is known under `key`.
    ///
    /// # Errors
    ///
    /// When the text is not of the shape described in [`data`](self), names another publication, or
    /// holds a table twice.
    pub fn parse(key: &str, text: &str) -> Result<Self, DataError> {
        let File { publication: head, tables } = toml::from_str(text)
            .map_err(|source| DataError::Malformed { publication: key.to_owned(), source: Box::new(source) })?;
        if head.key != key {
            return Err(DataError::WrongKey { expected: key.to_owned(), found: head.key });
        }
        for (index, table) in tables.iter().enumerate() {
            if tables[..index].iter().any(|earlier| earlier.id == table.id) {
                return Err(DataError::DuplicateTable { publication: key.to_owned(), id: table.id.clone() });
            }
        }
        Ok(Self {
            key: head.key,
            authors: head.authors,
            year: head.year,
            kind: head.kind,
            topic: head.topic,
            simulator: head.simulator,
            measured_on: head.measured_on,
            formulas: head.formulas,
            general_unstated: head.general_unstated,
            tables,
        })
    }

    /// The table with this id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}

impl Table {
    /// All settings of a row: the table's, with those that the row varies on top.
    #[must_use]
    pub fn settings(&self, row: &Row) -> Values {
        self.scenario.overlaid(&row.params)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_theory::{Fraction, grants};
    use lastmile_units::{ByteCount, Duration};

    use super::*;

    const SMALL: &str = r#"
        [publication]
        key = "someone1999"
        authors = "A. Someone"
        year = 1999
        kind = "paper"
        topic = "lines"
        formulas = []
        general_unstated = ["all"]

        [[table]]
        id = "1"
        title = "One"
        kind = "simulated"
        where = "section 1"
        claim = "It works."
        difficulty = "easy"
        unstated = []
        contradictions = []

        [table.scenario]
        down_bps = 8000000
        up_bps = 64000

        [[table.row]]

        [table.row.params]
        up_bps = 16000

        [table.row.published]
        utilisation_pct = 39.6

        [table.row.theory]
    "#;

    #[test]
    fn a_small_file_is_read_whole() {
        let publication = Publication::parse("someone1999", SMALL).unwrap();
        assert_eq!((publication.year, publication.simulator), (1999, None));
        let table = &publication.tables[0];
        assert_eq!(table.kind, Kind::Simulated);
        assert!(table.inferred.is_empty());
        let settings = table.settings(&table.rows[0]);
        assert_eq!((settings.integer("down_bps"), settings.integer("up_bps")), (Some(8_000_000), Some(16_000)));
        assert_eq!(table.rows[0].published.number("utilisation_pct"), Some(39.6));
    }

    #[test]
    fn what_has_another_shape_is_refused_with_its_place() {
        let error = Publication::parse("someone1999", &SMALL.replace("claim =", "clam =")).unwrap_err().to_string();
        assert!(error.starts_with("published data of someone1999: TOML parse error at line "), "{error}");
        assert!(error.contains("unknown field `clam`"), "{error}");
        let error = Publication::parse("another2000", SMALL).unwrap_err();
        assert!(matches!(error, DataError::WrongKey { .. }), "{error}");
        let table = &SMALL[SMALL.find("[[table]]").unwrap()..];
        let error = Publication::parse("someone1999", &format!("{SMALL}\n{table}")).unwrap_err();
        assert!(matches!(error, DataError::DuplicateTable { ref id, .. } if id == "1"), "{error}");
    }

    #[test]
    fn every_shipped_file_is_read() {
        let publications = publications().unwrap();
        let index: Vec<_> = publications
            .iter()
            .map(|p| (p.key.as_str(), p.tables.len(), p.tables.iter().map(|t| t.rows.len()).sum::<usize>()))
            .collect();
        assert_eq!(
            index,
            [
                ("ano2002", 9, 16),
                ("brouer2005", 46, 187),
                ("kalyanaraman1999", 9, 27),
                ("phanse2000", 22, 69),
                ("sun1998", 13, 76),
                ("ced2006", 1, 4),
                ("custura2020", 3, 8),
                ("deschepper2016", 3, 27),
                ("hock2017", 4, 8),
                ("starlink2025", 3, 8),
                ("ware2019", 5, 29),
                ("white2019", 1, 4),
            ]
        );
    }

    /// phanse2000 table 5.1, third row: 16 kbit/s upstream, k = 2.506, 39.6 % of the downstream used.
    #[test]
    fn figures_arrive_as_printed() {
        let publications = publications().unwrap();
        let phanse = publications.iter().find(|p| p.key == "phanse2000").unwrap();
        let table = phanse.table("5.1").unwrap();
        let row = &table.rows[2];
        assert_eq!(row.params.integer("up_bps"), Some(16_000));
        assert_eq!(row.published.number("downstream_utilisation_pct"), Some(39.6));
        assert_eq!(row.published.number("download_time_s"), Some(144.5));
        assert_eq!(row.theory.number("k"), Some(2.506));
        assert_eq!(row.theory_printed.number("k"), Some(2.5));
        assert_eq!(table.settings(row).integer("down_bps"), Some(1_544_000));
    }

    /// The closed form of CED, December 2006, is that of `lastmile model grants`.
    #[test]
    fn the_limits_by_grants_are_those_of_the_closed_form() {
        let publications = publications().unwrap();
        let table = publications.iter().find(|p| p.key == "ced2006").and_then(|ced| ced.table("rgt")).unwrap();
        for row in &table.rows {
            let setting = |name| table.settings(row).integer(name).unwrap();
            let time = Duration::from_ms(setting("request_grant_ms"));
            let packets = Fraction::whole(setting("packets_per_ack"));
            let limit = grants::download_bps(time, 1, packets, ByteCount::new(setting("packet_bytes"))).unwrap();
            let bursts = grants::bursts_per_s(time).unwrap().as_f64();
            let near = |name, expected: f64| (row.theory.number(name).unwrap() - expected).abs() < 1e-9;
            assert!(near("downstream_throughput_mbps", limit.as_f64() / 1e6) && near("acks_per_s", bursts), "{row:?}");
        }
    }

    #[test]
    fn every_table_says_what_a_reproduction_must_show_and_has_rows() {
        for publication in publications().unwrap() {
            for table in &publication.tables {
                assert!(!table.claim.is_empty() && !table.rows.is_empty(), "{}/{}", publication.key, table.id);
                let figures = table
                    .rows
                    .iter()
                    .any(|row| !row.published.is_empty() || !row.theory.is_empty() || !row.theory_printed.is_empty());
                assert!(figures, "{}/{} holds no figure", publication.key, table.id);
            }
        }
    }
}
