//! The column chunks of one row group of a Parquet file, written side by side.
//!
//! The `parquet` crate writes the columns of a row group one after the other, so a row group of values would
//! stay in memory until it is complete. Here every column has its encoder from the start of the row group
//! and its pages in memory: rows pass in blocks that fit into a processor's cache, and of a row group only
//! encoded pages are kept.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;

/// The pages of a column, which its encoder and its owner share.
#[derive(Clone)]
struct Pages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl Pages {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))))
    }

    fn locked(&self) -> MutexGuard<'_, TrackedWrite<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        SerializedPageWriter::new(&mut self.locked()).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

/// The columns of a row group.
pub(super) struct Chunks(Vec<(ColumnWriter<'static>, Pages)>);

impl Chunks {
    /// A row group without rows.
    pub(super) fn new(schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> Self {
        let column = |column: &Arc<_>| {
            let pages = Pages::new();
            (get_column_writer(Arc::clone(column), Arc::clone(properties), Box::new(pages.clone())), pages)
        };
        Self(schema.columns().iter().map(column).collect())
    }

    /// Adds values to a column; `levels` has 1 for a value and 0 for a null, and is `None` for a column
    /// without nulls.
    pub(super) fn write<T: DataType>(
        &mut self,
        column: usize,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        get_typed_column_writer_mut::<T>(&mut self.0[column].0).write_batch(values, levels, None).map(|_| ())
    }

    /// Writes the row group.
    pub(super) fn finish<W: Write + Send>(self, file: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        for (writer, pages) in self.0 {
            let close = writer.close()?;
            let encoded = std::mem::replace(&mut *pages.locked(), TrackedWrite::new(Vec::new())).into_inner()?;
            group.append_column(&Bytes::from(encoded), close)?;
        }
        group.close().map(|_| ())
    }
}
