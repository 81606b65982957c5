//! `series.parquet`: every sample as a row of (time_s, series, entity, value), the long form for
//! data frames.
//!
//! The column writers of the `parquet` crate suffice for four columns; Arrow is not used. Rows are
//! in the order of the given series, by time within each. Names are dictionary-encoded, pages
//! compressed with Snappy. The bytes depend only on the samples: the file has no date and no name
//! of a machine.
//!
//! Cost: memory for one row group of at most [`ROWS_A_GROUP`] rows.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::series::{self, Series};

/// The most rows of a row group.
pub const ROWS_A_GROUP: usize = 1 << 20;

const SCHEMA: &str = "message series {
    required double time_s;
    required binary series (string);
    required binary entity (string);
    required double value;
}";

/// Writes all samples of `series` to `out` as a Parquet file.
///
/// # Errors
/// Errors of `out`.
pub fn write(series: &[Series], out: impl Write + Send) -> io::Result<()> {
    write_parquet(series, out).map_err(as_io)
}

/// Reads every sample of a Parquet file with the four columns of `series.parquet`, in that order.
///
/// # Errors
/// Errors of `file`; a file with other columns.
pub fn read(file: File) -> io::Result<Vec<Series>> {
    read_parquet(file).map_err(as_io)
}

/// An error of a file as it was, others by their words.
#[must_use]
pub fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn read_parquet<R: ChunkReader + 'static>(from: R) -> Result<Vec<Series>, ParquetError> {
    let file = SerializedFileReader::new(from)?;
    let wanted = parse_message_type(SCHEMA)?;
    let found = file.metadata().file_metadata().schema();
    let columns = |of: &parquet::schema::types::Type| -> Vec<(String, parquet::basic::Type)> {
        let primitive = of.get_fields().iter().filter(|field| field.is_primitive());
        primitive.map(|field| (field.name().to_owned(), field.get_physical_type())).collect()
    };
    if columns(found) != columns(&wanted) {
        return Err(ParquetError::General("not the columns time_s, series, entity, value".to_owned()));
    }
    let mut all = Vec::new();
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        let samples = all_of::<DoubleType>(&*group, 0)?.into_iter().zip(all_of::<DoubleType>(&*group, 3)?);
        let (names, entities) = (all_of::<ByteArrayType>(&*group, 1)?, all_of::<ByteArrayType>(&*group, 2)?);
        for ((name, entity), sample) in names.iter().zip(&entities).zip(samples) {
            series::push(&mut all, (name.as_utf8()?, entity.as_utf8()?), sample);
        }
    }
    Ok(all)
}

/// All values of a required column of a row group.
///
/// # Errors
/// No such column, or a damaged file.
pub fn all_of<T: DataType>(group: &dyn RowGroupReader, column: usize) -> Result<Vec<T::T>, ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let mut values = Vec::with_capacity(rows);
    get_typed_column_reader::<T>(group.get_column_reader(column)?).read_records(rows, None, None, &mut values)?;
    Ok(values)
}

fn write_parquet(series: &[Series], out: impl Write + Send) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::SNAPPY)
        .set_created_by("lastmile".to_owned())
        // Values hardly repeat, so a dictionary is only overhead; grouping their bytes by
        // significance compresses well.
        .set_column_dictionary_enabled(ColumnPath::from("value"), false)
        .set_column_encoding(ColumnPath::from("value"), Encoding::BYTE_STREAM_SPLIT)
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut rows = Rows::default();
    for one in series {
        let (name, entity) = (ByteArray::from(one.name.as_str()), ByteArray::from(one.entity.as_str()));
        for &(time, value) in &one.points {
            rows.push(time, &name, &entity, value);
            if rows.times.len() == ROWS_A_GROUP {
                rows.flush(&mut writer)?;
            }
        }
    }
    if !rows.times.is_empty() {
        rows.flush(&mut writer)?;
    }
    writer.close()?;
    Ok(())
}

/// The rows of one group, by column.
#[derive(Default)]
struct Rows {
    times: Vec<f64>,
    names: Vec<ByteArray>,
    entities: Vec<ByteArray>,
    values: Vec<f64>,
}

impl Rows {
    fn push(&mut self, time: f64, name: &ByteArray, entity: &ByteArray, value: f64) {
        self.times.push(time);
        self.names.push(name.clone());
        self.entities.push(entity.clone());
        self.values.push(value);
    }

    fn flush<W: Write + Send>(&mut self, writer: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        column::<DoubleType, _>(&mut group, &self.times)?;
        column::<ByteArrayType, _>(&mut group, &self.names)?;
        column::<ByteArrayType, _>(&mut group, &self.entities)?;
        column::<DoubleType, _>(&mut group, &self.values)?;
        group.close()?;
        *self = Self::default();
        Ok(())
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::record::RowAccessor;

    use super::*;

    fn two_series() -> Vec<Series> {
        let points = |offset: f64| (0..1_000).map(|n| (f64::from(n) * 0.1, f64::from(n).sqrt() + offset)).collect();
        vec![
            Series { name: "queue_bytes".into(), entity: "up".into(), points: points(0.0) },
            Series { name: "rtt_s".into(), entity: "ping \"ä\"".into(), points: points(0.25) },
        ]
    }

    fn bytes(series: &[Series]) -> Vec<u8> {
        let mut out = Vec::new();
        write(series, &mut out).unwrap();
        out
    }

    #[test]
    fn every_sample_reads_back_bit_for_bit_and_in_order() {
        let series = two_series();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes(&series))).unwrap();
        let expected = series.iter().flat_map(|s| s.points.iter().map(move |p| (p.0, &s.name, &s.entity, p.1)));
        let mut rows = 0;
        for (row, (time, name, entity, value)) in file.get_row_iter(None).unwrap().map(Result::unwrap).zip(expected) {
            assert_eq!(row.get_double(0).unwrap().to_bits(), time.to_bits());
            assert_eq!(row.get_string(1).unwrap(), name);
            assert_eq!(row.get_string(2).unwrap(), entity);
            assert_eq!(row.get_double(3).unwrap().to_bits(), value.to_bits());
            rows += 1;
        }
        assert_eq!(rows, 2_000);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let series = two_series();
        assert_eq!(read_parquet(bytes::Bytes::from(bytes(&series))).unwrap(), series);
        assert_eq!(read_parquet(bytes::Bytes::from(bytes(&[]))).unwrap(), []);
        read_parquet(bytes::Bytes::from_static(b"no parquet")).unwrap_err();
    }

    #[test]
    fn equal_samples_give_equal_bytes() {
        assert_eq!(bytes(&two_series()), bytes(&two_series()));
    }

    #[test]
    fn no_samples_are_a_valid_file_without_rows() {
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes(&[]))).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn a_writer_that_fails_is_an_error_and_no_panic() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = write(&two_series(), Full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}
