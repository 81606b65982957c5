//! The interfaces of a running program, as another thread looks at them: whether they are up, and still ports of the
//! bridge that they were ports of at the start.
//!
//! The sockets are open from the start, since a shaper opens none later ([`crate::shape::sandbox`]).

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::error::{Context, Error};
use crate::netns::Namespace;
use crate::sys::link::{self, Asker};

/// Interfaces and the bridges that they were ports of.
#[derive(Debug)]
pub struct Links(Vec<Watched>);

#[derive(Debug)]
struct Watched {
    name: String,
    index: u32,
    /// Number and name of its bridge.
    bridge: Option<(u32, String)>,
    asker: Mutex<Asker>,
}

/// How an interface stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// It was brought up.
    pub up: bool,
    /// It has a carrier: a cable with something at its other end.
    pub carrier: bool,
    /// The bridge that it was a port of and is no more.
    pub left: Option<String>,
}

impl Links {
    /// Looks at interfaces, each by its name in a namespace, or in that of the calling thread.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn of(interfaces: &[(Option<&Namespace>, &str)]) -> Result<Self, Error> {
        let watched = interfaces.iter().map(|&(namespace, name)| {
            let opened = match namespace {
                Some(namespace) => namespace.run(|| Watched::open(name))?,
                None => Watched::open(name),
            };
            opened.context(|| format!("asking for the interface {name}"))
        });
        watched.collect::<Result<_, _>>().map(Self)
    }

    /// How they stand now, in their order. One that was removed, which ends a run, stands nowhere.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        self.0.iter().filter_map(Watched::standing).collect()
    }
}

impl Watched {
    fn open(name: &str) -> io::Result<Self> {
        let found = link::find(name)?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        let bridge = found.master.filter(|_| found.bridge_port);
        let bridge = bridge.map(|index| Ok::<_, io::Error>((index, link::name_of(index)?))).transpose()?;
        Ok(Self { name: name.to_owned(), index: found.index, bridge, asker: Mutex::new(Asker::open()?) })
    }

    fn standing(&self) -> Option<Standing> {
        let found = self.asker.lock().unwrap_or_else(PoisonError::into_inner).ask(self.index).ok()?;
        let left = self.bridge.as_ref().filter(|(index, _)| found.master != Some(*index));
        let left = left.map(|(_, name)| name.clone());
        Some(Standing { name: self.name.clone(), up: found.up, carrier: found.carrier, left })
    }
}
