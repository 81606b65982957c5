//! `--segments`: every TCP packet of a capture as a row of a Parquet file.
//!
//! Rows are in the order of the capture. Columns that do not apply are null: `offset_bytes` of a packet
//! without data, `round_trip_ns` of an ACK that measures none. Offsets count from the initial sequence
//! number of their direction. `ecn` is the field of the IP header: 2 is ECT(0), 1 ECT(1), 3 CE. `outstanding_bytes`,
//! `window_bytes` and `phase` are those of the sender of the data in the packet, or for a pure ACK of the data that it
//! acknowledges.
//!
//! Numbers are delta-encoded, and those of columns with few different ones are in dictionaries, as words are.
//! Nothing is compressed: of 2.4 million segments of bulk data Snappy would make the file a third smaller, and take
//! 0.08 s beside some 0.2 s of encoding. The bytes depend only on the packets. Cost: memory for [`BLOCK`] rows, and
//! for the encoded pages of [`ROWS_A_GROUP`], 15 bytes a row.

use std::io::{self, Write};
use std::sync::Arc;

use lastmile_analysis::{Phase, Traced};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::chunks::{self, Chunk};
pub(super) use super::encode::BLOCK;
use super::encode::Bits;
use crate::parquet::as_io;

/// Rows of a row group, a multiple of [`BLOCK`].
pub(super) const ROWS_A_GROUP: usize = 1 << 18;

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
    present: Bits,
    values: Column<T>,
    count: usize,
}

impl<T: Copy + Default> Optional<T> {
    /// Sets the value of a row that has one; others stay null. Rows come in order.
    #[inline]
    fn add(&mut self, row: usize, value: T) {
        self.set(row, Some(value));
    }

    /// Sets the value of a row. Rows come in order. A value is written in either case, since a branch that the
    /// processor predicts wrongly takes longer; the next value replaces that of a null.
    #[inline]
    fn set(&mut self, row: usize, value: Option<T>) {
        self.present.set(row, value.is_some());
        self.values.set(self.count, value.unwrap_or_default());
        self.count += usize::from(value.is_some());
    }

    /// The rows with values, and the values; the next block begins.
    fn take(&mut self) -> (Bits, &[T]) {
        (std::mem::take(&mut self.present), &self.values.0[..std::mem::take(&mut self.count)])
    }
}

/// The rows of one block, by column.
#[derive(Default)]
struct Rows {
    count: usize,
    time: Column<i64>,
    connection: Column<i64>,
    from_opener: Bits,
    header: Header,
    offset: Optional<i64>,
    retransmission: Optional<u8>,
    ack: Optional<i64>,
    receive_window: Optional<i64>,
    sack: Optional<i64>,
    round_trip: Optional<i64>,
    outstanding: Optional<i64>,
    congestion_window: Optional<i64>,
    phase: Optional<u8>,
}

/// Fields of headers.
#[derive(Default)]
struct Header {
    flags: Column<u8>,
    payload: Column<u16>,
    ecn: Column<u8>,
}

/// Writes the segments of a capture.
pub struct Segments<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    group: Vec<Chunk>,
    rows_in_group: usize,
    rows: Rows,
    /// The names of retransmissions so far, by their places in the dictionary.
    retransmissions: Vec<&'static str>,
}

/// The place of a word, which is new or among those before.
fn place(words: &mut Vec<&'static str>, word: &'static str) -> u8 {
    let place = words.iter().position(|known| *known == word).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    });
    place as u8
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
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_created_by("lastmile".to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(as_io)?;
        let group = writer.schema_descr().columns().iter().map(Chunk::new).collect();
        Ok(Self { writer, group, rows_in_group: 0, rows: Rows::default(), retransmissions: Vec::new() })
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
        rows.connection.set(row, i32::try_from(packet.connection + 1).unwrap_or(i32::MAX).into());
        rows.from_opener.set(row, packet.from_opener);
        rows.header.flags.set(row, packet.flags.bits());
        rows.header.payload.set(row, packet.payload);
        rows.header.ecn.set(row, packet.ecn);
        if let Some(data) = &packet.data {
            rows.offset.add(row, data.start);
            if let Some(name) = data.kind.name() {
                rows.retransmission.add(row, place(&mut self.retransmissions, name));
            }
        }
        if let Some(ack) = &packet.ack {
            rows.ack.add(row, ack.offset);
            rows.receive_window.set(row, ack.window.map(signed));
            if ack.sack.iter().any(|(left, right)| left < right) {
                rows.sack.add(row, ack.sack.iter().map(|(left, right)| (right - left).max(0)).sum());
            }
            rows.round_trip.set(row, ack.round_trip.map(|trip| signed(trip.as_ns())));
        }
        let sender = packet.data.as_ref().map(|data| &data.sender).or(packet.ack.as_ref().map(|ack| &ack.sender));
        if let Some(sender) = sender {
            rows.outstanding.add(row, signed(sender.outstanding));
            rows.congestion_window.set(row, sender.congestion_window.map(signed));
            rows.phase.add(row, sender.phase as u8);
        }
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
        if count == 0 {
            return Ok(());
        }
        self.rows_in_group += count;
        group[0].numbers(count, None, &rows.time.0[..count])?;
        group[1].numbers(count, None, &rows.connection.0[..count])?;
        group[2].bits(count, &std::mem::take(&mut rows.from_opener))?;
        group[3].few(count, None, &rows.header.flags.0[..count])?;
        group[4].few(count, None, &rows.header.payload.0[..count])?;
        let numbers = [
            (5, &mut rows.offset),
            (7, &mut rows.ack),
            (9, &mut rows.sack),
            (10, &mut rows.round_trip),
            (11, &mut rows.outstanding),
            (12, &mut rows.congestion_window),
        ];
        for (column, numbers) in numbers {
            let (present, values) = numbers.take();
            group[column].numbers(count, Some(&present), values)?;
        }
        let (present, values) = rows.receive_window.take();
        group[8].few(count, Some(&present), values)?;
        let words = [
            (6, &mut rows.retransmission, &self.retransmissions[..]),
            (13, &mut rows.phase, &Phase::ALL.map(Phase::name)),
        ];
        for (column, of_rows, words) in words {
            let (present, places) = of_rows.take();
            group[column].words(count, Some(&present), (places, words))?;
        }
        group[14].few(count, None, &rows.header.ecn.0[..count])?;
        if self.rows_in_group >= ROWS_A_GROUP { self.end_group() } else { Ok(()) }
    }

    /// Writes the row group, if it has rows.
    fn end_group(&mut self) -> Result<(), ParquetError> {
        if std::mem::take(&mut self.rows_in_group) == 0 {
            return Ok(());
        }
        chunks::finish(&mut self.group, &mut self.writer)
    }
}
