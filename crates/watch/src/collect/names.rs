//! Addresses of names, looked up now and again on a thread of their own: a lookup may take seconds, and the line may be
//! down when the watcher starts.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lastmile_live::shape::sandbox;

/// Time between two lookups of the names, while each has an address, and while one has none.
const AGAIN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(5);

/// A host by its name.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    address: Arc<Mutex<Option<SocketAddr>>>,
}

impl Named {
    /// The address of the last lookup that found one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_up(&self) {
        let found = (self.name.as_str(), 0).to_socket_addrs().ok().and_then(|mut found| found.next());
        if found.is_some() {
            *self.address.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

/// Hosts whose names are looked up until the program ends. Call it before the program gives up its rights: a lookup
/// reads files of the system and asks servers by TCP, too. The thread gives up all else.
#[must_use]
pub fn look_up(names: &[String]) -> Vec<Named> {
    let hosts: Vec<Named> = names.iter().map(|name| Named { name: name.clone(), address: Arc::default() }).collect();
    let looked_up = hosts.clone();
    if !looked_up.is_empty() {
        thread::spawn(move || {
            // One that cannot give them up has them still, and works.
            let _ = sandbox::give_up_as_resolver();
            loop {
                looked_up.iter().for_each(Named::look_up);
                let all = looked_up.iter().all(|host| host.address().is_some());
                thread::sleep(if all { AGAIN } else { SOON });
            }
        });
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of more than 253 characters has no address anywhere (RFC 1035, section 2.3.4).
    #[test]
    fn a_name_has_its_address_once_it_is_found_and_another_has_none() {
        let hosts = look_up(&["localhost".to_owned(), "x".repeat(300)]);
        let found = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            hosts[0].address().is_some()
        });
        assert!(found && hosts[0].address().unwrap().ip().is_loopback());
        assert_eq!(hosts[1].address(), None);
    }
}
