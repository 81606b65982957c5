//! `--segments`: every TCP packet of a capture as a row of a Parquet file.
//!
//! Rows are in the order of the capture. Columns that do not apply are null: `offset_bytes` of a packet
//! without data, `round_trip_ns` of an ACK that measures none. Offsets count from the initial sequence
//! number of their direction. `outstanding_bytes`, `window_bytes` and `phase` are those of the sender of
//! the data in the packet, or for a pure ACK of the data that it acknowledges.
//!
//! Numbers are delta-encoded. Pages of the columns in [`COMPRESSED`] are compressed with Snappy; it gains
//! less than a tenth on the others. The bytes depend only on the packets. Cost: memory for [`BLOCK`] rows,
//! and for the encoded pages of [`ROWS_A_GROUP`], 11 to 17 bytes a row.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use lastmile_analysis::{Kind, Phase, Traced};
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::chunks::Chunks;

/// Rows of a row group, a multiple of [`BLOCK`].
pub(super) const ROWS_A_GROUP: usize = 1 << 18;
/// Rows that are encoded at once: as many as a second-level cache holds.
pub(super) const BLOCK: usize = 1 << 11;

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

/// Columns whose pages are compressed.
const COMPRESSED: [&str; 8] = [
    "time_ns",
    "flags",
    "payload_bytes",
    "offset_bytes",
    "receive_window_bytes",
    "outstanding_bytes",
    "congestion_window_bytes",
    "phase",
];

/// Values of a column that may be null.
struct Optional<T> {
    levels: Vec<i16>,
    values: Vec<T>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self { levels: Vec::with_capacity(BLOCK), values: Vec::with_capacity(BLOCK) }
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

/// The rows of one block, by column.
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
    group: Chunks,
    rows_in_group: usize,
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
        let properties: WriterPropertiesPtr = Arc::new(properties(schema.get_fields()));
        let writer = SerializedFileWriter::new(out, schema, Arc::clone(&properties)).map_err(as_io)?;
        let group = Chunks::new(writer.schema_descr(), &properties);
        let phases = Phase::ALL.map(|phase| word(phase.name()));
        Ok(Self { writer, group, rows_in_group: 0, rows: Rows::default(), phases })
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
        if rows.time.len() == BLOCK { self.encode().map_err(as_io) } else { Ok(()) }
    }

    /// Ends the file, and returns where it was written.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.encode().and_then(|()| self.end_group()).map_err(as_io)?;
        self.writer.into_inner().map_err(as_io)
    }

    /// Encodes the rows of the block, in the order of the schema.
    fn encode(&mut self) -> Result<(), ParquetError> {
        let Self { group, rows, .. } = self;
        self.rows_in_group += rows.time.len();
        required::<Int64Type>(group, 0, &mut rows.time)?;
        required::<Int32Type>(group, 1, &mut rows.connection)?;
        required::<BoolType>(group, 2, &mut rows.from_opener)?;
        required::<Int32Type>(group, 3, &mut rows.flags)?;
        required::<Int32Type>(group, 4, &mut rows.payload)?;
        optional::<Int64Type>(group, 5, &mut rows.offset)?;
        optional::<ByteArrayType>(group, 6, &mut rows.retransmission)?;
        let numbers = [
            &mut rows.ack,
            &mut rows.receive_window,
            &mut rows.sack,
            &mut rows.round_trip,
            &mut rows.outstanding,
            &mut rows.congestion_window,
        ];
        for (column, numbers) in (7..).zip(numbers) {
            optional::<Int64Type>(group, column, numbers)?;
        }
        optional::<ByteArrayType>(group, 13, &mut rows.phase)?;
        if self.rows_in_group >= ROWS_A_GROUP { self.end_group() } else { Ok(()) }
    }

    /// Writes the row group, if it has rows.
    fn end_group(&mut self) -> Result<(), ParquetError> {
        if std::mem::take(&mut self.rows_in_group) == 0 {
            return Ok(());
        }
        let next = Chunks::new(self.writer.schema_descr(), self.writer.properties());
        std::mem::replace(&mut self.group, next).finish(&mut self.writer)
    }
}

fn properties(columns: &[TypePtr]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by("lastmile".to_owned())
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_write_batch_size(BLOCK)
        .set_data_page_row_count_limit(ROWS_A_GROUP);
    for name in COMPRESSED {
        properties = properties.set_column_compression(ColumnPath::from(name), Compression::SNAPPY);
    }
    for name in WORDS {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    for field in columns {
        if matches!(field.get_physical_type(), Physical::INT32 | Physical::INT64) {
            let path = ColumnPath::from(field.name());
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

fn required<T: DataType>(group: &mut Chunks, column: usize, values: &mut Vec<T::T>) -> Result<(), ParquetError> {
    group.write::<T>(column, values, None)?;
    values.clear();
    Ok(())
}

fn optional<T: DataType>(group: &mut Chunks, column: usize, values: &mut Optional<T::T>) -> Result<(), ParquetError> {
    group.write::<T>(column, &values.values, Some(&values.levels))?;
    values.clear();
    Ok(())
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
