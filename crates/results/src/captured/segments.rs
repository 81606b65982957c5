//! `--segments`: every TCP packet of a capture as a row of a Parquet file.
//!
//! Rows are in the order of the capture. Columns that do not apply are null: `offset_bytes` of a packet
//! without data, `round_trip_ns` of an ACK that measures none. Offsets count from the initial sequence
//! number of their direction. `ecn` is the field of the IP header: 2 is ECT(0), 1 ECT(1), 3 CE. `outstanding_bytes`,
//! `window_bytes` and `phase` are those of the sender of the data in the packet, or for a pure ACK of the data that it
//! acknowledges.
//!
//! Numbers are delta-encoded. Pages of the columns in [`COMPRESSED`] are compressed with Snappy; the others
//! would shrink to between 0.5 and 1 times their size, for a tenth of the time of all columns. The bytes depend
//! only on the packets. Cost: memory for [`BLOCK`] rows, and for the encoded pages of [`ROWS_A_GROUP`], 15 bytes
//! a row.

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
use crate::parquet::as_io;

/// Rows of a row group, a multiple of [`BLOCK`].
pub(super) const ROWS_A_GROUP: usize = 1 << 18;
/// Rows that are encoded at once: as many as a second-level cache holds.
pub(super) const BLOCK: usize = 1 << 11;

pub(super) const SCHEMA: &str = "message segments {
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
    required int32 ecn;
}";

/// Columns whose values repeat, in dictionaries.
const WORDS: [&str; 2] = ["retransmission", "phase"];

/// Columns whose pages are compressed: those that shrink to less than a third.
const COMPRESSED: [&str; 4] = ["flags", "payload_bytes", "receive_window_bytes", "phase"];

/// The values of a column in one block.
struct Column<T>(Box<[T; BLOCK]>);

impl<T: Clone + Default> Default for Column<T> {
    fn default() -> Self {
        let values = vec![T::default(); BLOCK].into_boxed_slice();
        Self(values.try_into().unwrap_or_else(|_| unreachable!("as many values as rows")))
    }
}

impl<T> Column<T> {
    /// Sets a value. The remainder is the row itself; it spares a check.
    #[inline]
    fn set(&mut self, row: usize, value: T) {
        self.0[row % BLOCK] = value;
    }
}

/// The values of a column that may be null, without gaps, and where they are.
#[derive(Default)]
struct Optional<T: Clone + Default> {
    levels: Column<i16>,
    values: Column<T>,
    count: usize,
}

impl<T: Clone + Default> Optional<T> {
    /// Sets the value of a row. Rows come in order. A number is written in either case, since a branch that the
    /// processor predicts wrongly takes longer; the next value replaces that of a null.
    #[inline]
    fn set(&mut self, row: usize, value: Option<T>)
    where
        T: Copy,
    {
        self.levels.set(row, i16::from(value.is_some()));
        self.values.set(self.count, value.unwrap_or_default());
        self.count += usize::from(value.is_some());
    }

    /// Sets the word of a row. Rows come in order.
    #[inline]
    fn set_word(&mut self, row: usize, word: Option<&T>) {
        self.levels.set(row, i16::from(word.is_some()));
        if let Some(word) = word {
            self.values.set(self.count, word.clone());
            self.count += 1;
        }
    }
}

/// The rows of one block, by column.
#[derive(Default)]
struct Rows {
    count: usize,
    time: Column<i64>,
    connection: Column<i32>,
    from_opener: Column<bool>,
    header: Header,
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

/// Fields of headers.
#[derive(Default)]
struct Header {
    flags: Column<i32>,
    payload: Column<i32>,
    ecn: Column<i32>,
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
        let row = rows.count;
        rows.count += 1;
        rows.time.set(row, signed(packet.at.as_ps() / 1_000));
        rows.connection.set(row, i32::try_from(packet.connection + 1).unwrap_or(i32::MAX));
        rows.from_opener.set(row, packet.from_opener);
        rows.header.flags.set(row, i32::from(packet.flags.bits()));
        rows.header.payload.set(row, i32::from(packet.payload));
        rows.offset.set(row, packet.data.map(|data| data.start));
        let kind = packet.data.map_or(Kind::New, |data| data.kind);
        rows.retransmission.set_word(row, kind.name().map(word).as_ref());
        let ack = packet.ack.as_ref();
        rows.ack.set(row, ack.map(|ack| ack.offset));
        rows.receive_window.set(row, ack.and_then(|ack| ack.window).map(signed));
        let sack = ack.map(|ack| ack.sack.iter().map(|(left, right)| (right - left).max(0)).sum::<i64>());
        rows.sack.set(row, sack.filter(|octets| *octets > 0));
        rows.round_trip.set(row, ack.and_then(|ack| ack.round_trip).map(|trip| signed(trip.as_ns())));
        let sender = packet.data.as_ref().map(|data| &data.sender).or(ack.map(|ack| &ack.sender));
        rows.outstanding.set(row, sender.map(|sender| signed(sender.outstanding)));
        rows.congestion_window.set(row, sender.and_then(|sender| sender.congestion_window).map(signed));
        rows.phase.set_word(row, sender.map(|sender| &self.phases[sender.phase as usize]));
        rows.header.ecn.set(row, i32::from(packet.ecn));
        if rows.count == BLOCK { self.encode().map_err(as_io) } else { Ok(()) }
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
        let count = std::mem::take(&mut rows.count);
        self.rows_in_group += count;
        group.write::<Int64Type>(0, &rows.time.0[..count], None)?;
        group.write::<Int32Type>(1, &rows.connection.0[..count], None)?;
        group.write::<BoolType>(2, &rows.from_opener.0[..count], None)?;
        group.write::<Int32Type>(3, &rows.header.flags.0[..count], None)?;
        group.write::<Int32Type>(4, &rows.header.payload.0[..count], None)?;
        optional::<Int64Type>(group, 5, count, &mut rows.offset)?;
        optional::<ByteArrayType>(group, 6, count, &mut rows.retransmission)?;
        let numbers = [
            &mut rows.ack,
            &mut rows.receive_window,
            &mut rows.sack,
            &mut rows.round_trip,
            &mut rows.outstanding,
            &mut rows.congestion_window,
        ];
        for (column, numbers) in (7..).zip(numbers) {
            optional::<Int64Type>(group, column, count, numbers)?;
        }
        optional::<ByteArrayType>(group, 13, count, &mut rows.phase)?;
        group.write::<Int32Type>(14, &rows.header.ecn.0[..count], None)?;
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

/// Encodes the values of the first `count` rows.
fn optional<T: DataType>(
    group: &mut Chunks,
    column: usize,
    count: usize,
    from: &mut Optional<T::T>,
) -> Result<(), ParquetError> {
    let values = std::mem::take(&mut from.count);
    group.write::<T>(column, &from.values.0[..values], Some(&from.levels.0[..count]))
}
