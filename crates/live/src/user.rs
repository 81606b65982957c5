//! Namespaces for callers without rights: user_namespaces(7).
//!
//! A process may make a user namespace of its own, in which it has every right over what it makes
//! there: network namespaces, TUN devices. The caller's user and group are the only ones that exist
//! inside, under their own numbers or as root. A program started inside under the caller's own
//! number has no rights there, as it has none outside.
//!
//! Only devices made there can be reached from there: nothing leads out.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::error::Error;
use crate::sys::namespace;

/// The caller's identity inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inside {
    /// The user and group that the caller has outside.
    #[default]
    Themselves,
    /// Root, for programs that set up networks.
    Root,
}

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN` of capabilities(7).
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// True if this process may make network namespaces and devices as it is.
#[must_use]
pub fn has_rights() -> bool {
    fs::read_to_string("/proc/thread-self/status").is_ok_and(|status| effective(&status) & NEEDED == NEEDED)
}

/// The effective capabilities in a `status` of proc_pid_status(5).
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Moves this process, which must have one thread alone, into a user namespace of its own.
///
/// # Errors
/// The kernel or the machine's administrator does not allow it; the error names the setting, where one is known.
pub fn enter(inside: Inside) -> Result<(), Error> {
    try_enter(inside).map_err(|source| Error::NoUserNamespace { source, forbidden_by: forbidding(&setting) })
}

fn try_enter(inside: Inside) -> io::Result<()> {
    let me = fs::metadata("/proc/self")?;
    namespace::unshare_user()?;
    let map = |id: u32| match inside {
        Inside::Themselves => format!("{id} {id} 1"),
        Inside::Root => format!("0 {id} 1"),
    };
    fs::write("/proc/self/uid_map", map(me.uid()))?;
    // Without rights outside, the list of groups must be given up before one's own is mapped.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", map(me.gid()))
}

/// In the network namespace of the calling thread: lets every program ping without rights, and
/// serve at any port. For convenience: a kernel that has not got them does without.
pub(crate) fn open_up() {
    if let Ok(me) = fs::metadata("/proc/self") {
        let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{0} {0}", me.gid()));
    }
    let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

/// Settings with which an administrator forbids user namespaces, and the values that do.
const FORBID: [(&str, &str, &str); 3] = [
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "10000"),
];

/// The setting that forbids them, as sysctl(8) would set it to allow them.
fn forbidding(setting: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let forbids = |(name, forbidden, _): &&(&str, &str, &str)| setting(name).is_some_and(|value| value == *forbidden);
    FORBID.iter().find(forbids).map(|(name, _, allowed)| format!("{name}={allowed}"))
}

fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_capabilities_are_needed() {
        // Bits 12 and 21, and one of them missing.
        let status = |bits: &str| format!("Name:\tsh\nCapPrm:\t000001ffffffffff\nCapEff:\t{bits}\n");
        assert_eq!(effective(&status("0000000000201000")) & NEEDED, NEEDED);
        assert_ne!(effective(&status("0000000000200000")) & NEEDED, NEEDED);
        assert_eq!(effective("nothing of the kind"), 0);
    }

    #[test]
    fn the_setting_that_forbids_is_named_with_the_value_that_allows() {
        let machine = |settings: &'static [(&str, &str)]| {
            move |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let ubuntu = machine(&[
            ("kernel.unprivileged_userns_clone", "1"),
            ("kernel.apparmor_restrict_unprivileged_userns", "1"),
            ("user.max_user_namespaces", "96365"),
        ]);
        let wanted = "kernel.apparmor_restrict_unprivileged_userns=0";
        assert_eq!(forbidding(&ubuntu).as_deref(), Some(wanted));
        let none = machine(&[("user.max_user_namespaces", "0")]);
        assert_eq!(forbidding(&none).as_deref(), Some("user.max_user_namespaces=10000"));
        assert_eq!(forbidding(&machine(&[("user.max_user_namespaces", "100")])), None);
    }
}
