//! Interfaces by their names.

use std::{fs, io};

use crate::error::{Context, Error};
use crate::sys::link::{self, Link};

/// An interface of the calling thread's namespace that is up.
pub(crate) fn find(name: &str) -> Result<Link, Error> {
    let link = find_any(name)?;
    if link.up { Ok(link) } else { Err(Error::InterfaceDown { name: name.to_owned() }) }
}

/// An interface of the calling thread's namespace.
pub(crate) fn find_any(name: &str) -> Result<Link, Error> {
    match link::find(name).context(|| format!("asking for the interface {name}"))? {
        Some(link) => Ok(link),
        None => {
            let known = names().context(|| "reading the names of interfaces")?;
            Err(Error::NoInterface { name: name.to_owned(), known })
        }
    }
}

/// The names of the interfaces of the calling thread's namespace that are ports of the device of this number.
pub(crate) fn ports_of(index: u32) -> Result<Vec<String>, Error> {
    let mut ports = names().context(|| "reading the names of interfaces")?;
    // One that is removed meanwhile is a port of nothing.
    ports.retain(|name| link::find(name).ok().flatten().is_some_and(|link| link.master == Some(index)));
    Ok(ports)
}

/// The interfaces of the calling thread's namespace, by proc_net_dev(5).
fn names() -> io::Result<Vec<String>> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect())
}
