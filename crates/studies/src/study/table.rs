//! The table of a study: a row for each run, with the point, the seed and every measure.
//!
//! As a file, it is Parquet with one column for each; a measure that a run does not have is null.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::measured::unknown;
use super::space::{Space, meaning};
use super::statistics::{Estimate, paired};
use super::store::Measures;
use crate::error::Error;

/// A run of a study.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Number of its point.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
    /// Its results.
    pub measures: Measures,
}

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// The values of a key.
    Words(Vec<String>),
    /// Seeds.
    Seeds(Vec<u64>),
    /// A measure.
    Numbers(Vec<Option<f64>>),
}

/// The point, the seed and the value of a run.
type Sample<'a> = (Vec<&'a str>, u64, f64);

/// A row for each run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Columns, by name: keys in the order of the space, `seed`, measures by name.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// The table of runs.
    #[must_use]
    pub fn new(space: &Space, entries: &[Entry]) -> Self {
        let words = |number: usize| {
            entries.iter().map(|entry| space.points[entry.point][number].clone()).collect::<Vec<String>>()
        };
        let keys = space.keys.iter().enumerate().map(|(number, key)| (key.clone(), Column::Words(words(number))));
        let seeds = ("seed".to_owned(), Column::Seeds(entries.iter().map(|entry| entry.seed).collect()));
        let names: BTreeSet<&String> = entries.iter().flat_map(|entry| entry.measures.keys()).collect();
        let measure = |name: &String| {
            let values = entries.iter().map(|entry| entry.measures.get(name).copied()).collect();
            (name.clone(), Column::Numbers(values))
        };
        let measures: Vec<_> = names.into_iter().map(measure).collect();
        Self { columns: keys.filter(|(key, _)| key != "seed").chain([seeds]).chain(measures).collect() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| match column {
            Column::Words(values) => values.len(),
            Column::Seeds(values) => values.len(),
            Column::Numbers(values) => values.len(),
        })
    }

    /// Names of the keys.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let is_key = |(_, column): &&(String, Column)| matches!(column, Column::Words(_));
        self.columns.iter().filter(is_key).map(|(name, _)| name.as_str()).collect()
    }

    /// Names of the measures.
    #[must_use]
    pub fn measures(&self) -> Vec<&str> {
        let is_measure = |(_, column): &&(String, Column)| matches!(column, Column::Numbers(_));
        self.columns.iter().filter(is_measure).map(|(name, _)| name.as_str()).collect()
    }

    /// True if a run has the measure.
    #[must_use]
    pub fn has(&self, measure: &str) -> bool {
        self.measures().contains(&measure)
    }

    /// The values of the keys of each point, in the order of the rows, and its number of rows.
    #[must_use]
    pub fn points(&self) -> Vec<(Vec<String>, usize)> {
        let words = |(_, column): &(String, Column)| match column {
            Column::Words(values) => Some(values.clone()),
            _ => None,
        };
        let keys: Vec<Vec<String>> = self.columns.iter().filter_map(words).collect();
        let mut points: Vec<(Vec<String>, usize)> = Vec::new();
        for row in 0..self.rows() {
            let point: Vec<String> = keys.iter().map(|values| values[row].clone()).collect();
            match points.last_mut() {
                Some((last, count)) if *last == point => *count += 1,
                _ => points.push((point, 1)),
            }
        }
        points
    }

    /// The values of a measure: point, seed and value of each run that has it, in the order of the rows.
    fn samples(&self, measure: &str) -> Result<Vec<Sample<'_>>, Error> {
        let numbers = self.columns.iter().find_map(|(name, column)| match column {
            Column::Numbers(numbers) if name == measure => Some(numbers),
            _ => None,
        });
        let Some(numbers) = numbers else {
            let known = self.columns.iter().filter(|(_, column)| matches!(column, Column::Numbers(_)));
            let message = format_args!("no run has the measure {measure:?}");
            return Err(unknown(message, measure, known.map(|(name, _)| name.as_str())));
        };
        let mut words: Vec<&Vec<String>> = Vec::new();
        let mut seeds: &[u64] = &[];
        for (_, column) in &self.columns {
            match column {
                Column::Words(values) => words.push(values),
                Column::Seeds(values) => seeds = values,
                Column::Numbers(_) => {}
            }
        }
        let row = |(row, value): (usize, &Option<f64>)| {
            Some((words.iter().map(|values| values[row].as_str()).collect(), seeds[row], (*value)?))
        };
        Ok(numbers.iter().enumerate().filter_map(row).collect())
    }

    /// The mean of a measure at each point, with its interval.
    ///
    /// # Errors
    /// No run has the measure.
    pub fn estimates(&self, measure: &str) -> Result<Vec<(Vec<String>, Estimate)>, Error> {
        let mut points: Vec<(Vec<&str>, Vec<f64>)> = Vec::new();
        for (point, _, value) in self.samples(measure)? {
            // Runs of a point are neighbours.
            match points.last_mut() {
                Some((last, values)) if *last == point => values.push(value),
                _ => points.push((point, vec![value])),
            }
        }
        let estimate = |(point, values): (Vec<&str>, Vec<f64>)| {
            Some((point.into_iter().map(str::to_owned).collect(), Estimate::of(&values)?))
        };
        Ok(points.into_iter().filter_map(estimate).collect())
    }

    /// The position of a key among the keys, and its value of each row.
    fn key(&self, key: &str) -> Result<(usize, &[String]), Error> {
        let words = self.columns.iter().filter_map(|(name, column)| match column {
            Column::Words(values) => Some((name, values)),
            _ => None,
        });
        let found = words.enumerate().find(|(_, (name, _))| *name == key);
        found.map(|(at, (_, values))| (at, values.as_slice())).ok_or_else(|| {
            let error = Error::new(format_args!("the study does not vary {key:?}"));
            error.hint(format!("it varies {}", self.keys().join(", ")))
        })
    }

    /// The rows with a value of a key, which may be written in another unit than in the table.
    ///
    /// # Errors
    /// The study does not vary the key, or no run has the value.
    pub fn at(&self, key: &str, value: &str) -> Result<Self, Error> {
        let (_, values) = self.key(key)?;
        let value = written(key, values, value)?;
        fn kept<T: Clone>(rows: &[T], values: &[String], value: &str) -> Vec<T> {
            rows.iter().zip(values).filter(|(_, of)| *of == value).map(|(row, _)| row.clone()).collect()
        }
        let column = |column: &Column| match column {
            Column::Words(words) => Column::Words(kept(words, values, value)),
            Column::Seeds(seeds) => Column::Seeds(kept(seeds, values, value)),
            Column::Numbers(numbers) => Column::Numbers(kept(numbers, values, value)),
        };
        Ok(Self { columns: self.columns.iter().map(|(name, of)| (name.clone(), column(of))).collect() })
    }

    /// The difference of a measure between two values of a key, `other - one`, over equal seeds. One for each
    /// combination of the other keys. The values may be written in other units than in the table.
    ///
    /// # Errors
    /// No run has the measure, the study does not vary the key, the values are equal, or no two runs make a pair.
    pub fn paired(
        &self,
        measure: &str,
        (key, mut one, mut other): (&str, &str, &str),
    ) -> Result<Vec<(Vec<String>, Estimate)>, Error> {
        let (at, values) = self.key(key)?;
        (one, other) = (written(key, values, one)?, written(key, values, other)?);
        if one == other {
            let error = Error::new(format_args!("a difference between {key} = {one:?} and itself"));
            return Err(error.hint("two values of the key"));
        }
        type Pair = (BTreeMap<u64, f64>, BTreeMap<u64, f64>);
        let mut pairs: Vec<(Vec<&str>, Pair)> = Vec::new();
        let mut places: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for (mut point, seed, value) in self.samples(measure)? {
            let of = point.remove(at);
            let place = *places.entry(point.clone()).or_insert_with(|| {
                pairs.push((point, Pair::default()));
                pairs.len() - 1
            });
            if of == one {
                pairs[place].1.0.insert(seed, value);
            } else if of == other {
                pairs[place].1.1.insert(seed, value);
            }
        }
        let difference = |(point, (one, other)): (Vec<&str>, Pair)| {
            Some((point.into_iter().map(str::to_owned).collect(), paired(&one, &other)?))
        };
        let differences: Vec<_> = pairs.into_iter().filter_map(difference).collect();
        if differences.is_empty() {
            let error = Error::new(format_args!("no difference between {key} = {one:?} and {other:?}"));
            let pair = format!("a pair is two runs with {measure}, equal seeds and equal values of the other keys");
            return Err(error.hint(pair));
        }
        Ok(differences)
    }

    /// Writes the table as Parquet.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: impl Write + Send) -> io::Result<()> {
        self.write_parquet(out).map_err(lastmile_results::parquet::as_io)
    }

    fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("study").with_fields(fields).build()?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("lastmile".to_owned())
            .build();
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, column) in &self.columns {
            match column {
                Column::Words(words) => {
                    let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(word.as_str())).collect();
                    values::<ByteArrayType, _>(&mut group, &words, None)?;
                }
                Column::Seeds(seeds) => {
                    // The bits of an unsigned number, as its type says.
                    let seeds: Vec<i64> = seeds.iter().map(|seed| seed.cast_signed()).collect();
                    values::<Int64Type, _>(&mut group, &seeds, None)?;
                }
                Column::Numbers(numbers) => {
                    let known: Vec<f64> = numbers.iter().flatten().copied().collect();
                    let levels: Vec<i16> = numbers.iter().map(|number| i16::from(number.is_some())).collect();
                    values::<DoubleType, _>(&mut group, &known, Some(&levels))?;
                }
            }
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

/// The value of a column that equals this one, as the column writes it.
fn written<'a>(key: &str, values: &'a [String], wanted: &str) -> Result<&'a str, Error> {
    let different: BTreeSet<&'a str> = values.iter().map(String::as_str).collect();
    let equal = || different.iter().copied().find(|value| meaning(value) == meaning(wanted));
    different.get(wanted).copied().or_else(equal).ok_or_else(|| {
        let known: Vec<&str> = different.iter().copied().collect();
        Error::new(format_args!("no run has {key} = {wanted:?}")).hint(format!("the values are {}", known.join(", ")))
    })
}

fn field((name, column): &(String, Column)) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical, repetition) = match column {
        Column::Words(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        Column::Seeds(_) => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
        Column::Numbers(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
    };
    let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    Ok(Arc::new(builder.with_repetition(repetition).build()?))
}

fn values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    use super::*;

    /// Two rates, two policies, two seeds. Goodput is 10 for rate 1 and 20 for rate 2; the policy adds 1, and the seed
    /// its number in tenths.
    fn table() -> Table {
        let axis = |key: &str, values: [&str; 2]| (key.to_owned(), values.map(str::to_owned).to_vec());
        let space = Space::grid(vec![axis("rate", ["1", "2"]), axis("policy", ["none", "cake"])]).unwrap();
        let entry = |point: usize, seed: u8| {
            let goodput = [10.0, 11.0, 20.0, 21.0][point] + f64::from(seed) / 10.0;
            let mut measures = Measures::from([("goodput_bps".to_owned(), goodput)]);
            if point == 0 {
                measures.insert("ping_s".to_owned(), 0.5);
            }
            Entry { point, seed: seed.into(), measures }
        };
        let entries: Vec<Entry> = (0..4).flat_map(|point| [entry(point, 1), entry(point, 2)]).collect();
        Table::new(&space, &entries)
    }

    #[test]
    fn a_row_is_a_run_and_a_missing_measure_is_null() {
        let table = table();
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["rate", "policy", "seed", "goodput_bps", "ping_s"]);
        let mut bytes = Vec::new();
        table.write(&mut bytes).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 8);
        assert_eq!((rows[1].get_string(0).unwrap().as_str(), rows[1].get_ulong(2).unwrap()), ("1", 2));
        assert!((rows[1].get_double(3).unwrap() - 10.2).abs() < 1e-9);
        assert!((rows[1].get_double(4).unwrap() - 0.5).abs() < 1e-9);
        assert!(rows[2].get_double(4).is_err(), "null");
    }

    #[test]
    fn seeds_are_unsigned() {
        let space = Space::grid(Vec::new()).unwrap();
        let table = Table::new(&space, &[Entry { point: 0, seed: u64::MAX, measures: Measures::new() }]);
        let mut bytes = Vec::new();
        table.write(&mut bytes).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let row = file.get_row_iter(None).unwrap().next().unwrap().unwrap();
        assert_eq!(row.get_ulong(0).unwrap(), u64::MAX);
    }

    #[test]
    fn means_are_by_point_and_differences_by_pairs() {
        let table = table();
        let means = table.estimates("goodput_bps").unwrap();
        assert_eq!(means[2].0, ["2", "none"]);
        assert!((means[2].1.mean - 20.15).abs() < 1e-9 && means[2].1.seeds == 2);
        assert_eq!(table.estimates("ping_s").unwrap().len(), 1);
        // The policy adds 1 with each seed: the interval of the difference is empty, that of the mean is not.
        let differences = table.paired("goodput_bps", ("policy", "none", "cake")).unwrap();
        assert_eq!(differences.iter().map(|(point, _)| point[0].as_str()).collect::<Vec<_>>(), ["1", "2"]);
        for (_, difference) in differences {
            assert!((difference.mean - 1.0).abs() < 1e-9 && difference.ci95.unwrap() < 1e-9 && difference.seeds == 2);
        }
        assert!(means[0].1.ci95.unwrap() > 0.1);
        let unknown = table.estimates("goodput").unwrap_err().to_string();
        assert!(unknown.contains("goodput_bps"), "{unknown}");
        let itself = table.paired("goodput_bps", ("rate", "1.0", "1")).unwrap_err().to_string();
        assert_eq!(itself, "error: a difference between rate = \"1\" and itself\nhint: two values of the key");
        assert!(table.paired("goodput_bps", ("delay", "a", "b")).unwrap_err().to_string().contains("rate, policy"));
        let other_notation = table.paired("goodput_bps", ("rate", "1.0", "2.00")).unwrap();
        assert_eq!(other_notation, table.paired("goodput_bps", ("rate", "1", "2")).unwrap());
        assert_eq!(other_notation.len(), 2);
        // Only one of the four points has a ping, and its neighbour by policy has none.
        let alone = table.paired("ping_s", ("policy", "none", "cake")).unwrap_err().to_string();
        assert!(alone.contains("no difference between policy = \"none\" and \"cake\""), "{alone}");
        let fast = table.at("rate", "2.0").unwrap();
        assert_eq!((fast.rows(), &fast.estimates("goodput_bps").unwrap()[..]), (4, &means[2..]));
        assert!(table.at("rate", "3").is_err() && table.at("seed", "1").is_err());
        let unknown = table.paired("goodput_bps", ("policy", "none", "cakee")).unwrap_err().to_string();
        assert!(unknown.contains("no run has policy = \"cakee\"") && unknown.contains("cake, none"), "{unknown}");
    }
}
