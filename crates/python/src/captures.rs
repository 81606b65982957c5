//! Captures: connections, their limits and fairness, and every packet as Arrow.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, StringDictionaryBuilder, UInt8Builder, UInt16Builder,
};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt16Type};
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use lastmile_analysis::{Kind, Traced};
use lastmile_results::captured::PANELS;
use lastmile_results::json;
use lastmile_studies::Error;
use lastmile_studies::captures::{Capture, GroupBy, Tap, Wanted, document, is_one};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;

use crate::arguments::{ConnectionNumber, Files, Grouping, IsUp};
use crate::error;
use crate::series::{floats, stream};
use crate::value::parsed;

/// Analysed captures.
///
/// >>> import lastmile as lm
/// >>> analysis = lm.analyse("transfer.pcap.zst")
/// >>> analysis.complete, len(analysis.document["files"])
/// (True, 1)
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Analysis {
    captures: Mutex<Vec<Capture>>,
    packets: Option<Py<Packets>>,
    document: PyOnceLock<Py<PyAny>>,
}

/// Every TCP packet of a capture, in columns of `segments.parquet`.
///
/// >>> import lastmile as lm
/// >>> packets = lm.analyse("transfer.pcap.zst", packets=True).packets
/// >>> import polars
/// >>> polars.DataFrame(packets).columns[:3]
/// ['time_ns', 'connection', 'from_opener']
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Packets {
    batch: RecordBatch,
}

/// Analyses captures.
#[pyfunction]
#[pyo3(signature = (*files, group_by = None, packets = false))]
pub(crate) fn analyse(
    py: Python<'_>,
    files: Vec<Files>,
    group_by: Option<Grouping>,
    packets: bool,
) -> PyResult<Analysis> {
    if files.is_empty() {
        return Err(PyValueError::new_err("files: at least one capture, or a folder of results"));
    }
    let files: Vec<PathBuf> = files.into_iter().map(|Files(path)| path).collect();
    let group_by = group_by.map(|Grouping(text)| GroupBy::parse(&text)).transpose();
    let group_by = group_by.map_err(|wrong| PyValueError::new_err(format!("group_by: {wrong}")))?;
    if packets && files.len() != 1 {
        return Err(PyValueError::new_err("packets: they are kept of one capture only"));
    }
    let mut columns = packets.then(Columns::default);
    let read = py.detach(|| -> Result<Vec<Capture>, Error> {
        let wanted = Wanted { pictures: files.len() == 1 && is_one(&files[0]), ..Wanted::default() };
        let mut captures = Vec::new();
        for file in &files {
            let mut tap = columns.as_mut().map(|columns| move |packet: &Traced| columns.push(packet));
            let tap: Option<&mut Tap<'_>> = tap.as_mut().map(|tap| tap as &mut Tap<'_>);
            captures.extend(Capture::read(file, wanted, group_by, tap)?);
        }
        Ok(captures)
    });
    let captures = read.map_err(|wrong| error::of_error(py, &wrong))?;
    let batch = columns.map(Columns::finish).transpose();
    let batch = batch.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let packets = batch.map(|batch| Py::new(py, Packets { batch })).transpose()?;
    Ok(Analysis { captures: Mutex::new(captures), packets, document: PyOnceLock::new() })
}

impl Analysis {
    fn with<T>(&self, read: impl FnOnce(&[Capture]) -> T) -> T {
        read(&self.captures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Analysis {
    /// The document of `lastmile analyse --json`.
    #[getter]
    fn document(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        parsed(py, &self.document, || self.json())
    }

    /// The text of the document.
    ///
    /// >>> import lastmile as lm
    /// >>> analysis = lm.analyse("transfer.pcap.zst")
    /// >>> analysis.json()[:14]
    /// '{\n  "files": ['
    fn json(&self) -> String {
        self.with(|captures| json::pretty(&document(captures)))
    }

    /// False if a capture could not be read to its end.
    #[getter]
    fn complete(&self) -> bool {
        self.with(|captures| captures.iter().all(Capture::is_complete))
    }

    /// Packets that the analysis omits or corrects, in words.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let of = |capture: &Capture| {
            let warnings = capture.warnings().into_iter().map(|(_, text)| text);
            capture.broken().into_iter().chain(warnings).collect::<Vec<_>>()
        };
        self.with(|captures| captures.iter().flat_map(of).collect())
    }

    /// Every TCP packet, if they were kept.
    #[getter]
    fn packets(&self, py: Python<'_>) -> PyResult<Py<Packets>> {
        let kept = self.packets.as_ref().map(|packets| packets.clone_ref(py));
        kept.ok_or_else(|| PyValueError::new_err("no packets were kept: analyse(file, packets=True)"))
    }

    /// The largest connections as a page of HTML; of one capture only.
    ///
    /// >>> import lastmile as lm
    /// >>> analysis = lm.analyse("transfer.pcap.zst")
    /// >>> analysis.html()[:15]
    /// '<!DOCTYPE html>'
    fn html(&self) -> PyResult<String> {
        self.page(false)
    }

    /// The first two connections of the largest direction as a drawing; of one capture only.
    ///
    /// >>> import lastmile as lm
    /// >>> analysis = lm.analyse("transfer.pcap.zst")
    /// >>> analysis.svg()[:4]
    /// '<svg'
    fn svg(&self) -> PyResult<String> {
        self.page(true)
    }

    /// Plots, for which matplotlib must be installed: `pip install 'lastmile-tcp[plot]'`.
    #[getter]
    fn plot<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lastmile.plot")?.getattr("CapturePlots")?.call1((slf,))
    }

    fn _repr_svg_(&self) -> Option<String> {
        self.page(true).ok()
    }

    fn __repr__(&self) -> String {
        let files = self.with(|captures| captures.iter().map(|one| one.file().to_owned()).collect::<Vec<_>>());
        format!("<lastmile.Analysis of {}>", files.join(", "))
    }

    /// The tables as on a terminal.
    fn __str__(&self) -> String {
        self.with(|captures| {
            captures.iter().map(|one| format!("{}\n{}", one.file(), one.table(40, u16::MAX))).collect()
        })
    }
}

impl Analysis {
    fn page(&self, is_drawing: bool) -> PyResult<String> {
        let page = self.with(|captures| match captures {
            [only] if is_drawing => only.drawing(&PANELS[..2]),
            [only] => only.page(),
            _ => None,
        });
        page.ok_or_else(|| PyValueError::new_err("pages and drawings are of one capture that has packets to draw"))
    }
}

#[pymethods]
impl Packets {
    /// The packets as a stream of Arrow record batches, for every library that reads the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request.
        drop(requested_schema);
        stream(py, self.batch.schema(), vec![self.batch.clone()])
    }

    /// Data of one direction of a connection: times in seconds, offsets of the first byte, bytes, and 1 for
    /// retransmissions.
    ///
    /// >>> import lastmile as lm
    /// >>> packets = lm.analyse("transfer.pcap.zst", packets=True).packets
    /// >>> times, offsets, octets, again = packets.data(1, "up")
    /// >>> len(times) == len(octets) > 0
    /// True
    fn data<'py>(
        &self,
        py: Python<'py>,
        connection: ConnectionNumber,
        direction: IsUp,
    ) -> PyResult<[Bound<'py, PyAny>; 4]> {
        let sent = self.rows(&connection, direction.0)?;
        let (payload, offset) = (self.column::<UInt16Type>("payload_bytes"), self.column::<Int64Type>("offset_bytes"));
        let again = self.batch["retransmission"].as_dictionary::<Int8Type>();
        let rows: Vec<usize> = sent.filter(|row| payload.value(*row) > 0 && offset.is_valid(*row)).collect();
        Ok([
            self.times(py, &rows)?,
            floats(py, rows.iter().map(|row| whole(offset.value(*row))))?,
            floats(py, rows.iter().map(|row| f64::from(payload.value(*row))))?,
            floats(py, rows.iter().map(|row| f64::from(u8::from(again.is_valid(*row)))))?,
        ])
    }

    /// ACKs of the data of one direction of a connection: times in seconds, and offsets of the first byte that is not
    /// acknowledged.
    ///
    /// >>> import lastmile as lm
    /// >>> packets = lm.analyse("transfer.pcap.zst", packets=True).packets
    /// >>> times, acks = packets.acks(1, "up")
    /// >>> max(acks) > 0
    /// True
    fn acks<'py>(
        &self,
        py: Python<'py>,
        connection: ConnectionNumber,
        direction: IsUp,
    ) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let ack = self.column::<Int64Type>("ack_bytes");
        let rows: Vec<usize> = self.rows(&connection, !direction.0)?.filter(|row| ack.is_valid(*row)).collect();
        Ok([self.times(py, &rows)?, floats(py, rows.iter().map(|row| whole(ack.value(*row))))?])
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Packets: {} packets>", self.__len__())
    }
}

impl Packets {
    fn column<T: ArrowPrimitiveType>(&self, name: &str) -> &PrimitiveArray<T> {
        self.batch[name].as_primitive::<T>()
    }

    /// The rows of packets from one side of a connection.
    fn rows(&self, wanted: &ConnectionNumber, from_opener: bool) -> PyResult<impl Iterator<Item = usize> + '_> {
        let (numbers, opener) = (self.column::<Int32Type>("connection"), self.batch["from_opener"].as_boolean());
        let most = numbers.values().iter().copied().max().unwrap_or(0);
        let connection = i32::try_from(wanted.0).ok().filter(|number| *number <= most);
        let connection = connection.ok_or_else(|| {
            PyKeyError::new_err(format!("no connection {}: there are {most}, numbered from 1 on", wanted.0))
        })?;
        let is_of = move |row: &usize| numbers.value(*row) == connection && opener.value(*row) == from_opener;
        Ok((0..self.batch.num_rows()).filter(is_of))
    }

    fn times<'py>(&self, py: Python<'py>, rows: &[usize]) -> PyResult<Bound<'py, PyAny>> {
        let times = self.column::<Int64Type>("time_ns");
        floats(py, rows.iter().map(|row| whole(times.value(*row)) / 1e9))
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53: a capture of nine petabytes")]
fn whole(value: i64) -> f64 {
    value as f64
}

/// The columns of `segments.parquet` that plots and statistics need, under its names.
#[derive(Default)]
struct Columns {
    time_ns: Int64Builder,
    connection: Int32Builder,
    from_opener: BooleanBuilder,
    flags: UInt8Builder,
    payload_bytes: UInt16Builder,
    offset_bytes: Int64Builder,
    retransmission: StringDictionaryBuilder<Int8Type>,
    ack_bytes: Int64Builder,
    receive_window_bytes: Int64Builder,
    round_trip_ns: Int64Builder,
    outstanding_bytes: Int64Builder,
    congestion_window_bytes: Int64Builder,
    ecn: UInt8Builder,
}

impl Columns {
    fn push(&mut self, packet: &Traced) {
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let ack = packet.ack.as_ref();
        let sender = packet.data.as_ref().map(|data| &data.sender).or(ack.map(|ack| &ack.sender));
        self.time_ns.append_value(signed(packet.at.as_ps() / 1_000));
        self.connection.append_value(i32::try_from(packet.connection + 1).unwrap_or(i32::MAX));
        self.from_opener.append_value(packet.from_opener);
        self.flags.append_value(packet.flags.bits());
        self.payload_bytes.append_value(packet.payload);
        self.offset_bytes.append_option(packet.data.map(|data| data.start));
        self.retransmission.append_option(packet.data.map_or(Kind::New, |data| data.kind).name());
        self.ack_bytes.append_option(ack.map(|ack| ack.offset));
        self.receive_window_bytes.append_option(ack.and_then(|ack| ack.window).map(signed));
        self.round_trip_ns.append_option(ack.and_then(|ack| ack.round_trip).map(|trip| signed(trip.as_ns())));
        self.outstanding_bytes.append_option(sender.map(|sender| signed(sender.outstanding)));
        self.congestion_window_bytes.append_option(sender.and_then(|sender| sender.congestion_window).map(signed));
        self.ecn.append_value(packet.ecn);
    }

    fn finish(mut self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let columns: [(&str, ArrayRef); 13] = [
            ("time_ns", Arc::new(self.time_ns.finish())),
            ("connection", Arc::new(self.connection.finish())),
            ("from_opener", Arc::new(self.from_opener.finish())),
            ("flags", Arc::new(self.flags.finish())),
            ("payload_bytes", Arc::new(self.payload_bytes.finish())),
            ("offset_bytes", Arc::new(self.offset_bytes.finish())),
            ("retransmission", Arc::new(self.retransmission.finish())),
            ("ack_bytes", Arc::new(self.ack_bytes.finish())),
            ("receive_window_bytes", Arc::new(self.receive_window_bytes.finish())),
            ("round_trip_ns", Arc::new(self.round_trip_ns.finish())),
            ("outstanding_bytes", Arc::new(self.outstanding_bytes.finish())),
            ("congestion_window_bytes", Arc::new(self.congestion_window_bytes.finish())),
            ("ecn", Arc::new(self.ecn.finish())),
        ];
        RecordBatch::try_from_iter(columns)
    }
}
