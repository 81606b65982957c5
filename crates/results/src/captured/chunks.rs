//! The column chunks of one row group of a Parquet file, written side by side.
//!
//! The `parquet` crate writes the columns of a row group one after the other, so a row group of values would
//! stay in memory until it is complete. Here every column has its pages in memory: rows pass in blocks that
//! fit into a processor's cache, and of a row group only encoded pages are kept.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Encoding, EncodingMask, Type as Physical};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::encode::{BLOCK, Bits, deltas, places};

/// The rows of a block that have a value; `None` for a column without nulls.
pub(super) type Present<'a> = Option<&'a Bits>;

/// The most values of a dictionary of numbers: more come as their differences, which take as many bits.
const MOST_FEW: usize = 32;

/// Octets of a page that hardly one exceeds: four a row.
const USUAL_PAGE: usize = 4 * BLOCK;

/// A number of a column.
pub(super) trait Number: Copy + PartialEq + Into<i64> + TryFrom<i64> {}

impl<T: Copy + PartialEq + Into<i64> + TryFrom<i64>> Number for T {}

/// A column of a row group.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    pages: TrackedWrite<Vec<u8>>,
    rows: usize,
    encodings: Vec<Encoding>,
    /// The dictionary of numbers, and whether more came than it may have.
    few: Vec<i64>,
    is_full: bool,
    /// The dictionary of words.
    words: Vec<&'static str>,
}

impl Chunk {
    /// A column without rows.
    pub(super) fn new(column: &ColumnDescPtr) -> Self {
        Self {
            column: ColumnDescPtr::clone(column),
            pages: TrackedWrite::new(Vec::new()),
            rows: 0,
            encodings: vec![Encoding::RLE],
            few: Vec::new(),
            is_full: false,
            words: Vec::new(),
        }
    }

    /// Adds numbers.
    pub(super) fn numbers(&mut self, rows: usize, present: Present, values: &[i64]) -> Result<(), ParquetError> {
        self.page((rows, present), Encoding::DELTA_BINARY_PACKED, |to| deltas(values, to))
    }

    /// Adds numbers of which there are few different ones. Where there are more, this page and all after it have their
    /// differences.
    pub(super) fn few<T: Number>(&mut self, rows: usize, present: Present, values: &[T]) -> Result<(), ParquetError> {
        if !self.is_full
            && let Some(of_values) = self.places(values)
        {
            let length = self.few.len();
            return self.page((rows, present), Encoding::RLE_DICTIONARY, |to| {
                places(&of_values[..values.len()], length, to);
            });
        }
        self.is_full = true;
        let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
        self.numbers(rows, present, &values)
    }

    /// The places of numbers in the dictionary; `None` if there are too many. A pass over all for each value of the
    /// dictionary has no branches.
    fn places<T: Number>(&mut self, values: &[T]) -> Option<[u8; BLOCK]> {
        const NONE: u8 = u8::MAX;
        let mut all = [NONE; BLOCK];
        let of_values = &mut all[..values.len()];
        for place in 0.. {
            if place == self.few.len() {
                if !of_values.contains(&NONE) {
                    break;
                }
                let new = of_values.iter().position(|place| *place == NONE).filter(|_| place < MOST_FEW)?;
                self.few.push(values[new].into());
            }
            let known = T::try_from(self.few[place]).ok()?;
            for (to, value) in of_values.iter_mut().zip(values) {
                *to = if *value == known { place as u8 } else { *to };
            }
        }
        Some(all)
    }

    /// Adds words, by their places among all.
    pub(super) fn words(
        &mut self,
        rows: usize,
        present: Present,
        (of_words, words): (&[u8], &[&'static str]),
    ) -> Result<(), ParquetError> {
        self.words = words.to_vec();
        self.page((rows, present), Encoding::RLE_DICTIONARY, |to| places(of_words, words.len(), to))
    }

    /// Adds bits.
    pub(super) fn bits(&mut self, rows: usize, bits: &Bits) -> Result<(), ParquetError> {
        self.page((rows, None), Encoding::PLAIN, |to| bits.plain(rows, to))
    }

    /// Adds a page with values that `encode` writes.
    fn page(
        &mut self,
        (rows, present): (usize, Present),
        encoding: Encoding,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ParquetError> {
        let mut buf = Vec::with_capacity(USUAL_PAGE);
        let mut num_nulls = 0;
        if let Some(present) = present {
            present.levels(rows, &mut buf);
            num_nulls = rows as u32 - present.count();
        }
        let def_levels_byte_len = buf.len() as u32;
        encode(&mut buf);
        self.rows += rows;
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let page = Page::DataPageV2 {
            buf: buf.into(),
            num_values: rows as u32,
            encoding,
            num_nulls,
            num_rows: rows as u32,
            def_levels_byte_len,
            rep_levels_byte_len: 0,
            is_compressed: false,
            statistics: None,
        };
        write_page(page, &mut self.pages)
    }

    /// The dictionary as a page, if a page of values has one.
    fn dictionary(&self) -> Option<Page> {
        if !self.encodings.contains(&Encoding::RLE_DICTIONARY) {
            return None;
        }
        let values = &self.few;
        let plain: Vec<u8> = match self.column.physical_type() {
            Physical::INT32 => values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect(),
            Physical::INT64 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            _ => {
                let word = |word: &&str| [&(word.len() as u32).to_le_bytes(), word.as_bytes()].concat();
                self.words.iter().flat_map(word).collect()
            }
        };
        let num_values = values.len().max(self.words.len()) as u32;
        Some(Page::DictionaryPage { buf: plain.into(), num_values, encoding: Encoding::PLAIN, is_sorted: false })
    }

    /// Writes the column. It is without rows then, and keeps its memory for the next row group.
    fn finish<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<W>) -> Result<(), ParquetError> {
        self.pages.flush()?;
        let mut first = TrackedWrite::new(Vec::new());
        let dictionary = self.dictionary();
        let has_dictionary = dictionary.is_some();
        if let Some(dictionary) = dictionary {
            write_page(dictionary, &mut first)?;
            self.encodings.push(Encoding::PLAIN);
        }
        let first = first.into_inner()?;
        let data_page_offset = first.len() as i64;
        let pages = self.pages.inner_mut();
        pages.splice(..0, first);
        let metadata = ColumnChunkMetaData::builder(ColumnDescPtr::clone(&self.column))
            .set_encodings_mask(EncodingMask::new_from_encodings(self.encodings.iter()))
            .set_total_compressed_size(pages.len() as i64)
            .set_total_uncompressed_size(pages.len() as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(data_page_offset)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: pages.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&Written(pages), closed)?;
        pages.clear();
        let pages = std::mem::replace(&mut self.pages, TrackedWrite::new(Vec::new()));
        *self = Self { pages, ..Self::new(&self.column) };
        Ok(())
    }
}

/// A column as the file has it.
struct Written<'a>(&'a [u8]);

impl Length for Written<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl<'a> ChunkReader for Written<'a> {
    type T = &'a [u8];

    fn get_read(&self, start: u64) -> Result<&'a [u8], ParquetError> {
        Ok(self.0.get(start as usize..).unwrap_or_default())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.get_read(start).map(|rest| Bytes::copy_from_slice(&rest[..length.min(rest.len())]))
    }
}

fn write_page(page: Page, to: &mut TrackedWrite<Vec<u8>>) -> Result<(), ParquetError> {
    let length = page.buffer().len();
    SerializedPageWriter::new(to).write_page(CompressedPage::new(page, length)).map(|_| ())
}

/// Writes a row group.
pub(super) fn finish<W: Write + Send>(
    chunks: &mut [Chunk],
    file: &mut SerializedFileWriter<W>,
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for chunk in chunks {
        chunk.finish(&mut group)?;
    }
    group.close().map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::column::reader::get_typed_column_reader;
    use parquet::data_type::Int64Type;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// The values of one column that may be null, written block by block as two row groups, and read by the `parquet`
    /// crate.
    fn read_back(rows: &[Option<i64>], write: fn(&mut Chunk, usize, Present, &[i64]) -> Result<(), ParquetError>) {
        let schema = parse_message_type("message one { optional int64 value; }").unwrap();
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
        let mut chunk = Chunk::new(&file.schema_descr().columns()[0]);
        for _ in 0..2 {
            for block in rows.chunks(BLOCK) {
                let mut present = Bits::default();
                (0..).zip(block).for_each(|(row, value)| present.set(row, value.is_some()));
                let values: Vec<i64> = block.iter().copied().flatten().collect();
                write(&mut chunk, block.len(), Some(&present), &values).unwrap();
            }
            finish(std::slice::from_mut(&mut chunk), &mut file).unwrap();
        }
        let file = SerializedFileReader::new(Bytes::from(file.into_inner().unwrap())).unwrap();
        for group in 0..2 {
            let group = file.get_row_group(group).unwrap();
            let (mut levels, mut values) = (Vec::new(), Vec::new());
            let mut column = get_typed_column_reader::<Int64Type>(group.get_column_reader(0).unwrap());
            column.read_records(rows.len() + 1, Some(&mut levels), None, &mut values).unwrap();
            assert_eq!(levels, rows.iter().map(|value| i16::from(value.is_some())).collect::<Vec<_>>());
            assert_eq!(values, rows.iter().copied().flatten().collect::<Vec<_>>());
        }
    }

    /// Values of a generator (Knuth, MMIX), of so many bits.
    fn some(count: usize, bits: u32, seed: u64) -> impl Iterator<Item = i64> {
        let next = |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
        let states = std::iter::successors(Some(seed), next).skip(1);
        states.take(count).map(move |state| if bits == 0 { 7 } else { (state >> (64 - bits)).cast_signed() })
    }

    #[test]
    fn differences_of_every_width_read_back() {
        for (bits, count) in (0..=64).zip([1, 2, 63, 64, 65, 256, 257, BLOCK - 1, BLOCK, BLOCK + 1].into_iter().cycle())
        {
            let rows: Vec<_> = some(count, bits, u64::from(bits)).map(Some).collect();
            read_back(&rows, Chunk::numbers);
        }
        let extremes = [i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN, -1];
        read_back(&extremes.map(Some), Chunk::numbers);
    }

    /// A third of the rows, whole words, a block without values, and one row more.
    #[test]
    fn nulls_read_back_wherever_they_are() {
        let rows = |is_null: fn(usize) -> bool| {
            let values = some(2 * BLOCK + 1, 20, 1).enumerate();
            values.map(|(row, value)| (!is_null(row)).then_some(value)).collect::<Vec<_>>()
        };
        for is_null in
            [|row| row % 3 == 0, |row| row / 64 % 3 == 0, |row| row / 64 % 3 > 0, |row| row < BLOCK, |_| true]
        {
            read_back(&rows(is_null), Chunk::numbers);
            read_back(&rows(is_null), Chunk::few);
        }
    }

    #[test]
    fn a_dictionary_reads_back_with_every_number_of_values_and_beyond_the_most() {
        for count in [1, 2, 3, 4, 5, 16, 17, MOST_FEW, MOST_FEW + 1] {
            let rows: Vec<_> = some(2 * BLOCK, 63, 3).map(|value| Some(value % count as i64 - 1)).collect();
            read_back(&rows, Chunk::few);
        }
        // The dictionary is full in the second block.
        let rows: Vec<_> = (0..3 * BLOCK as i64).map(|row| Some(row / 200)).collect();
        read_back(&rows, Chunk::few);
    }

    /// Runs from one row to all, of which some begin amid eight.
    #[test]
    fn runs_of_equal_values_read_back_and_are_short() {
        let lengths = [1, 7, 8, 9, 31, 32, 33, 40, 64, 65, 100, 333, 1_000, BLOCK, 2 * BLOCK];
        let runs = (0..).zip(lengths.into_iter().cycle().take(3 * lengths.len()));
        let rows: Vec<_> = runs.flat_map(|(run, length)| vec![Some(run % 7); length]).collect();
        read_back(&rows, Chunk::few);
        let mut page = Vec::new();
        places(&[3; BLOCK], 5, &mut page);
        // The width, the number of rows twice in two octets of seven bits, the place.
        assert_eq!(page, [3, 0x80, 0x40, 3]);
    }
}
