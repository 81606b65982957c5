//! Captures of a run, as pcapng: `--capture` of the command, `capture=` in Python.
//!
//! A capture is at the sending end of a link, with the packets that tcpdump would record there:
//! those sent into the link, and those received by the link in the reverse direction. It therefore
//! has both directions of each connection, in order of time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile_model::Network;
use lastmile_model::{Directory, Observer, Passage};
use lastmile_packet::{FlowDirectory as _, Meta};
use lastmile_results::atomic::AtomicFile;
use lastmile_results::capture::{CaptureError, CaptureWriter, InterfaceId, Keep};
use lastmile_scenario::diagnostics::did_you_mean;
use lastmile_units::Instant;

use crate::error::Error;
use crate::variant::file_name;

/// The captures of one run.
pub struct Captures(Arc<Mutex<Files>>);

struct Files {
    addresses: Directory,
    files: Vec<File>,
    /// By link: the captures that record the packets sent into it, and those that record the
    /// packets received from it.
    sent: Vec<Vec<usize>>,
    arrived: Vec<Vec<usize>>,
    /// The first error. Nothing is written after it.
    failure: Option<(usize, CaptureError)>,
}

struct File {
    path: String,
    writer: CaptureWriter<AtomicFile>,
    interface: InterfaceId,
}

impl Captures {
    /// Creates a file for each of `links`, which are names of the network's links. `option` is that of the caller.
    ///
    /// # Errors
    /// A link that the network does not have, or a file that cannot be written.
    pub fn create(network: &Network, links: &[(String, PathBuf)], whole: bool, option: &str) -> Result<Self, Error> {
        let keep = if whole { Keep::Whole } else { Keep::Headers };
        let count = network.links.len();
        let mut files = Files {
            addresses: Directory::new(network),
            files: Vec::new(),
            sent: vec![Vec::new(); count],
            arrived: vec![Vec::new(); count],
            failure: None,
        };
        for (name, path) in links {
            let index = link(network, name, option)?;
            let sent = &network.links[index];
            let number = files.files.len();
            files.files.push(File::create(path, name, keep)?);
            files.sent[index].push(number);
            let back =
                network.links.iter().enumerate().filter(|(_, back)| (back.from, back.to) == (sent.to, sent.from));
            for (index, _) in back {
                files.arrived[index].push(number);
            }
        }
        Ok(Self(Arc::new(Mutex::new(files))))
    }

    /// The observer that receives each packet from the simulator.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Observer<Meta>> {
        Box::new(Sink(Arc::clone(&self.0)))
    }

    /// True if a capture records this event at this link.
    #[must_use]
    pub fn sees(&self, link: usize, passage: Passage) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.seen_by(link, passage).is_some_and(|seen_by| !seen_by.is_empty())
    }

    /// Writes a real packet, from its IP header on.
    pub fn write_bytes(&self, at: Instant, link: usize, passage: Passage, bytes: &[u8]) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.write(link, passage, |writer, interface, _| writer.write_bytes(interface, at, bytes));
    }

    /// An error if one of the files could not be written.
    ///
    /// # Errors
    /// The first error of a file.
    pub fn check(&self) -> Result<(), Error> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = files.failure.take();
        failure.map_or(Ok(()), |(number, error)| Err(Error::new(format_args!("{}: {error}", files.files[number].path))))
    }

    /// Renames the files to their final names.
    ///
    /// # Errors
    /// The first error of a file.
    pub fn commit(self) -> Result<(), Error> {
        let files =
            Arc::try_unwrap(self.0).unwrap_or_else(|_| unreachable!("the run is over, and its sink gone with it"));
        let Files { files, failure, .. } = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, error)) = failure {
            return Err(Error::new(format_args!("{}: {error}", files[number].path)));
        }
        for File { path, writer, .. } in files {
            writer.commit().map_err(|error| Error::new(format_args!("{path}: {error}")))?;
        }
        Ok(())
    }
}

impl File {
    fn create(path: &Path, interface: &str, keep: Keep) -> Result<Self, Error> {
        let name = path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Error::new(format_args!("cannot write {}: {error}", folder.display())))?;
        }
        let failed = |error: CaptureError| Error::new(format_args!("{name}: {error}"));
        let mut writer = CaptureWriter::create(path, keep).map_err(failed)?;
        let interface = writer.add_interface(interface).map_err(failed)?;
        Ok(Self { path: name, writer, interface })
    }
}

/// Name of the file of a link's capture.
#[must_use]
pub fn file(link: &str) -> String {
    format!("{}.pcapng", file_name(link))
}

/// The index of the link of this name; `option` is that of the caller.
///
/// # Errors
/// The network has no such link.
pub fn link(network: &Network, name: &str, option: &str) -> Result<usize, Error> {
    network.links.iter().position(|link| link.hop.name == name).ok_or_else(|| {
        let known: Vec<&str> = network.links.iter().map(|link| link.hop.name.as_str()).collect();
        let hint = did_you_mean(name, known.iter().copied());
        Error::new(format_args!("{option}: no link is called \"{name}\""))
            .hint(hint.unwrap_or_else(|| format!("there are {}", known.join(", "))))
    })
}

struct Sink(Arc<Mutex<Files>>);

impl Observer<Meta> for Sink {
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &Meta) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.write(link, passage, |writer, interface, addresses| {
            writer.write(interface, at, packet, &addresses.addresses(packet.flow))
        });
    }
}

impl Files {
    /// The captures that record this event at this link.
    fn seen_by(&self, link: usize, passage: Passage) -> Option<&Vec<usize>> {
        match passage {
            Passage::Transmitted => self.sent.get(link),
            Passage::Arrived => self.arrived.get(link),
            Passage::Dropped(_) => None,
        }
    }

    /// Writes a packet to each of them.
    fn write(
        &mut self,
        link: usize,
        passage: Passage,
        mut write: impl FnMut(&mut CaptureWriter<AtomicFile>, InterfaceId, &Directory) -> Result<(), CaptureError>,
    ) {
        for place in 0..self.seen_by(link, passage).map_or(0, Vec::len) {
            let Some(&number) = self.seen_by(link, passage).and_then(|seen_by| seen_by.get(place)) else { return };
            let File { writer, interface, .. } = &mut self.files[number];
            if self.failure.is_some() {
                return;
            }
            if let Err(error) = write(writer, *interface, &self.addresses) {
                self.failure = Some((number, error));
            }
        }
    }
}
