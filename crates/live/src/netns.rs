//! Network namespaces, named as ip-netns(8) names them, so that `ip netns exec NAME ...` works from outside.
//!
//! Dropping the value removes a namespace that [`Namespace::create`] made; an opened namespace stays. Only a
//! process that is killed (SIGKILL) leaves its namespaces behind; [`leftovers`] removes them, as does `ip netns delete
//! NAME`.
//!
//! A namespace belongs to a thread, so [`Namespace::run`] works in a thread of its own: the caller's never changes, and
//! a process that is started there stays there.

pub mod leftovers;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use crate::error::{Context, Error};
use crate::sys::address::{self, Family};
use crate::sys::{link, namespace};
use crate::user;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    named: bool,
    /// Keeps it alive, and is the way in. Of a namespace that was made here it has the lock.
    file: File,
    /// Where its name is pinned, if it was made here and is to be removed.
    pinned: Option<PathBuf>,
}

impl Namespace {
    /// Makes a namespace with its loopback device up.
    ///
    /// # Errors
    /// Not root; the name is taken, or is no file name.
    pub fn create(name: &str) -> Result<Self, Error> {
        let what = || format!("creating the network namespace {name}");
        let path = path_of(name).context(what)?;
        fs::DirBuilder::new().recursive(true).mode(0o755).create(namespace::RUN_DIR).context(what)?;
        namespace::share_run_dir().context(what)?;
        // Until it has its lock. A holder that keeps the turn for too long removes nothing meanwhile.
        let _turn = leftovers::turn(Path::new(namespace::RUN_DIR)).context(what)?;
        OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path).context(what)?;
        let made = apart(|| {
            namespace::unshare()?;
            link::bring_up("lo")?;
            namespace::pin_current(&path)
        })
        .and_then(|()| File::open(&path))
        .and_then(|file| leftovers::try_lock(&file).map(|_| file));
        match made {
            Ok(file) => Ok(Self { name: name.to_owned(), named: true, file, pinned: Some(path) }),
            Err(error) => {
                let _ = namespace::unpin(&path);
                let _ = fs::remove_file(&path);
                Err(error).context(what)
            }
        }
    }

    /// Makes a namespace that `label` stands for here alone, with its loopback device up. It ends when nobody is in it
    /// any more. Every program in it may ping, and serve at any port: nobody has more rights there than its caller.
    ///
    /// # Errors
    /// Neither root nor in a user namespace of its own ([`crate::user::enter`]).
    pub fn unnamed(label: &str) -> Result<Self, Error> {
        let made = apart(|| {
            namespace::unshare()?;
            link::bring_up("lo")?;
            user::open_up();
            File::open("/proc/thread-self/ns/net")
        });
        let file = made.context(|| format!("making a network namespace for the {label}"))?;
        Ok(Self { name: label.to_owned(), named: false, file, pinned: None })
    }

    /// The namespace that somebody else made and named.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn open(name: &str) -> Result<Self, Error> {
        match path_of(name).and_then(File::open) {
            Ok(file) => Ok(Self { name: name.to_owned(), named: true, file, pinned: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NoNamespace { name: name.to_owned() }),
            Err(error) => Err(error).context(|| format!("opening the network namespace {name}")),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread inside, for good.
    ///
    /// # Errors
    /// Not root.
    pub fn enter(&self) -> Result<(), Error> {
        namespace::enter(self.file.as_fd()).context(|| format!("entering the network namespace {}", self.name))
    }

    /// Gives the loopback device these addresses, each of a network of its own, so that only a route of the caller's
    /// leads to them.
    ///
    /// # Errors
    /// Not root; an address of a family that the kernel does not have.
    pub fn add_addresses(&self, addresses: impl IntoIterator<Item = IpAddr> + Send) -> Result<(), Error> {
        self.run(|| {
            for address in addresses {
                let alone = if address.is_ipv6() { 128 } else { 32 };
                address::add("lo", address, alone).context(|| format!("giving a host the address {address}"))?;
            }
            Ok(())
        })?
    }

    /// Sends every packet without a better route to `device`: those of IPv4, and of IPv6 too if `ipv6`.
    ///
    /// # Errors
    /// Not root; no such device.
    pub fn set_default_route(&self, device: &str, ipv6: bool) -> Result<(), Error> {
        self.run(|| {
            address::set_default_route(device, Family::V4).context(|| "setting a route")?;
            if ipv6 {
                address::set_default_route(device, Family::V6).context(|| "setting a route for IPv6")?;
            }
            Ok(())
        })?
    }

    /// True if ip-netns(8) knows it by its name.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// A path by which other programs of the same user reach it, for nsenter(1), while this process has it open.
    #[must_use]
    pub fn way_in(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Does `work` inside, in a thread of its own.
    ///
    /// # Errors
    /// Not root. The result of `work` is handed on.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let what = || format!("entering the network namespace {}", self.name);
        apart(|| {
            namespace::enter(self.file.as_fd())?;
            Ok(work())
        })
        .context(what)
    }

    /// True while the name still stands for this namespace: someone may have deleted it, and made another.
    fn still_pinned_at(&self, path: &Path) -> bool {
        match (fs::metadata(path), self.file.metadata()) {
            (Ok(named), Ok(own)) => (named.dev(), named.ino()) == (own.dev(), own.ino()),
            _ => false,
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(path) = self.pinned.take()
            && self.still_pinned_at(&path)
        {
            // Nothing is left to do about a failure; the name then stays visible in `ip netns list`.
            let _ = namespace::unpin(&path);
            let _ = fs::remove_file(&path);
        }
    }
}

/// Does `work` in a thread of its own, which may change its namespace, since it ends with the work.
fn apart<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    if name.is_empty() || name.len() > 255 || matches!(name, "." | "..") || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for a namespace")));
    }
    Ok(Path::new(namespace::RUN_DIR).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_leave_the_directory_is_refused() {
        for name in ["", ".", "..", "a/b", "../x", "a\0b"] {
            assert_eq!(path_of(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn a_namespace_that_does_not_exist_is_named_in_the_error() {
        let error = Namespace::open("lastmile-no-such-namespace").unwrap_err();
        assert!(matches!(&error, Error::NoNamespace { name } if name == "lastmile-no-such-namespace"), "{error}");
        assert!(error.hint().unwrap().contains("ip netns list"), "{error}");
    }
}
