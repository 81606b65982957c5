//! `--segments`: every TCP packet of a capture as a row of a Parquet file.
//!
//! Rows are in the order of the capture. Columns that do not apply are null: `offset_bytes` of a packet
//! without data, `round_trip_ns` of an ACK that measures none. Offsets count from the initial sequence
//! number of their direction. `outstanding_bytes`, `window_bytes` and `phase` are those of the sender of
//! the data in the packet, or for a pure ACK of the data that it acknowledges.
//!
//! Times and offsets are delta-encoded, pages compressed with Snappy. The bytes depend only on the
//! packets. Cost: memory for [`ROWS_A_GROUP`] rows.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use lastmile_analysis::{Kind, Phase, Traced};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// Rows of a row group.
const ROWS_A_GROUP: usize = 1 << 16;

const SCHEMA: &str = "message segments {
    required int64 time_ns;
    required int32 connection;
    required boolean from_opener;
    required int32 flags;
    required int32 payload_bytes;
    optional int64 offset_bytes;
    optional binary retransmission (string);
    optional int64 ack_bytes;
    optional int64 receive_window_bytes;
    optional int64 sack_bytes;
    optional int64 round_trip_ns;
    optional int64 outstanding_bytes;
    optional int64 congestion_window_bytes;
    optional binary phase (string);
}";

/// Columns whose values repeat, in dictionaries.
const WORDS: [&str; 2] = ["retransmission", "phase"];

/// Values of a column that may be null.
struct Optional<T> {
    levels: Vec<i16>,
    values: Vec<T>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self { levels: Vec::with_capacity(ROWS_A_GROUP), values: Vec::with_capacity(ROWS_A_GROUP) }
    }
}

impl<T> Optional<T> {
    #[inline]
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        if let Some(value) = value {
            self.values.push(value);
        }
    }

    fn clear(&mut self) {
        self.levels.clear();
        self.values.clear();
    }
}

/// The rows of one group, by column.
#[derive(Default)]
struct Rows {
    time: Vec<i64>,
    connection: Vec<i32>,
    from_opener: Vec<bool>,
    flags: Vec<i32>,
    payload: Vec<i32>,
    offset: Optional<i64>,
    retransmission: Optional<ByteArray>,
    ack: Optional<i64>,
    receive_window: Optional<i64>,
    sack: Optional<i64>,
    round_trip: Optional<i64>,
    outstanding: Optional<i64>,
    congestion_window: Optional<i64>,
    phase: Optional<ByteArray>,
}

/// Writes the segments of a capture.
pub struct Segments<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Rows,
    phases: [ByteArray; Phase::ALL.len()],
}

/// A word of the program: its copies share the program's text and count no references.
fn word(word: &'static str) -> ByteArray {
    ByteArray::from(Bytes::from_static(word.as_bytes()))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl<W: Write + Send> Segments<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(io::Error::other)?);
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::SNAPPY)
            .set_created_by("lastmile".to_owned())
            .set_dictionary_enabled(false)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None);
        for name in WORDS {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
        }
        for field in schema.get_fields() {
            let integer =
                matches!(field.get_physical_type(), parquet::basic::Type::INT32 | parquet::basic::Type::INT64);
            if integer {
                let path = ColumnPath::from(field.name());
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(as_io)?;
        let phases = Phase::ALL.map(|phase| word(phase.name()));
        Ok(Self { writer, rows: Rows::default(), phases })
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn add(&mut self, packet: &Traced) -> io::Result<()> {
        let rows = &mut self.rows;
        rows.time.push(signed(packet.at.as_ps() / 1_000));
        rows.connection.push(i32::try_from(packet.connection + 1).unwrap_or(i32::MAX));
        rows.from_opener.push(packet.from_opener);
        rows.flags.push(i32::from(packet.flags.bits()));
        rows.payload.push(i32::from(packet.payload));
        rows.offset.push(packet.data.map(|data| data.start));
        let kind = packet.data.map_or(Kind::New, |data| data.kind);
        rows.retransmission.push(kind.name().map(word));
        let ack = packet.ack.as_ref();
        rows.ack.push(ack.map(|ack| ack.offset));
        rows.receive_window.push(ack.and_then(|ack| ack.window).map(signed));
        let sack = ack.map(|ack| ack.sack.iter().map(|(left, right)| (right - left).max(0)).sum::<i64>());
        rows.sack.push(sack.filter(|octets| *octets > 0));
        rows.round_trip.push(ack.and_then(|ack| ack.round_trip).map(|trip| signed(trip.as_ns())));
        let sender = packet.data.map(|data| data.sender).or(ack.map(|ack| ack.sender));
        rows.outstanding.push(sender.map(|sender| signed(sender.outstanding)));
        rows.congestion_window.push(sender.and_then(|sender| sender.congestion_window).map(signed));
        rows.phase.push(sender.map(|sender| self.phases[sender.phase as usize].clone()));
        if rows.time.len() == ROWS_A_GROUP { self.flush().map_err(as_io) } else { Ok(()) }
    }

    /// Ends the file, and returns where it was written.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.rows.time.is_empty() {
            self.flush().map_err(as_io)?;
        }
        self.writer.into_inner().map_err(as_io)
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let Self { writer, rows, .. } = self;
        let mut group = writer.next_row_group()?;
        required::<Int64Type, _>(&mut group, &mut rows.time)?;
        required::<Int32Type, _>(&mut group, &mut rows.connection)?;
        required::<BoolType, _>(&mut group, &mut rows.from_opener)?;
        required::<Int32Type, _>(&mut group, &mut rows.flags)?;
        required::<Int32Type, _>(&mut group, &mut rows.payload)?;
        optional::<Int64Type, _>(&mut group, &mut rows.offset)?;
        optional::<ByteArrayType, _>(&mut group, &mut rows.retransmission)?;
        let numbers = [
            &mut rows.ack,
            &mut rows.receive_window,
            &mut rows.sack,
            &mut rows.round_trip,
            &mut rows.outstanding,
            &mut rows.congestion_window,
        ];
        for column in numbers {
            optional::<Int64Type, _>(&mut group, column)?;
        }
        optional::<ByteArrayType, _>(&mut group, &mut rows.phase)?;
        group.close()?;
        Ok(())
    }
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, None, None)?;
    values.clear();
    column.close()
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Optional<T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(&values.values, Some(&values.levels), None)?;
    values.clear();
    column.close()
}

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
