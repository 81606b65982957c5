//! Interfaces by their names.

use std::{fs, io};

use crate::error::{Context, Error};
use crate::sys::link::{self, Link};

/// An interface of the calling thread's namespace that is up.
pub(crate) fn find(name: &str) -> Result<Link, Error> {
    let found = link::find(name).context(|| format!("asking for the interface {name}"))?;
    match found {
        Some(link) if link.up => Ok(link),
        Some(_) => Err(Error::InterfaceDown { name: name.to_owned() }),
        None => {
            let known = names().context(|| "reading the names of interfaces")?;
            Err(Error::NoInterface { name: name.to_owned(), known })
        }
    }
}

/// The interfaces of the calling thread's namespace, by proc_net_dev(5).
fn names() -> io::Result<Vec<String>> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect())
}
