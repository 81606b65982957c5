//! Files that a shaper may still open or remove, by Landlock: landlock(7).

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};

use super::rights::{Limit, Needs};
use crate::io::CLAIMS;

/// The rights that are given up, where the kernel knows them: Linux 6.12.
const KNOWN: ABI = ABI::V6;

pub(super) fn limit(needs: &Needs) -> Limit {
    in_words(try_limit(needs))
}

fn in_words(limited: Result<RulesetStatus, RulesetError>) -> Limit {
    match limited {
        Ok(RulesetStatus::FullyEnforced) => Limit::Full,
        Ok(RulesetStatus::PartiallyEnforced) => Limit::Part,
        Ok(RulesetStatus::NotEnforced) => Limit::None("this kernel has no Landlock".to_owned()),
        Err(error) => Limit::None(format!("Landlock: {error}")),
    }
}

/// Reads `/proc`, and reads, writes, makes and removes files in the folder of the store.
pub(super) fn limit_watcher(store: &Path) -> Limit {
    in_words(try_limit_watcher(store))
}

fn try_limit_watcher(store: &Path) -> Result<RulesetStatus, RulesetError> {
    let own = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile;
    restrict([(folder_of(store), own), (PathBuf::from("/proc"), AccessFs::ReadFile.into())], None)
}

/// Files that a lookup of names reads: settings, libraries of the name service, what daemons write for it.
const SYSTEM: [&str; 6] = ["/etc", "/run", "/usr", "/lib", "/lib64", "/nix/store"];

/// Servers of names, which long answers come from by TCP: RFC 1035, section 4.2.
const DOMAIN: u16 = 53;

/// Reads [`SYSTEM`] and the folder of `/etc/resolv.conf`, and connects to [`DOMAIN`].
pub(super) fn limit_resolver() -> Limit {
    in_words(try_limit_resolver())
}

fn try_limit_resolver() -> Result<RulesetStatus, RulesetError> {
    let folders = SYSTEM.map(PathBuf::from).into_iter().chain(folders_of(Path::new("/etc/resolv.conf")));
    restrict(folders.map(|folder| (folder, AccessFs::ReadFile | AccessFs::ReadDir)), Some(DOMAIN))
}

fn try_limit(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let read =
        needs.policy.iter().flat_map(|policy| folders_of(policy)).map(|folder| (folder, AccessFs::ReadFile.into()));
    let remove = [folder_of(&needs.control), PathBuf::from(CLAIMS)].map(|folder| (folder, AccessFs::RemoveFile.into()));
    restrict(read.chain(remove), None)
}

fn restrict(
    allowed: impl IntoIterator<Item = (PathBuf, BitFlags<AccessFs>)>,
    port: Option<u16>,
) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    for (folder, access) in allowed {
        // One that is not there can hold nothing that is needed.
        if let Ok(folder) = PathFd::new(&folder) {
            rules = rules.add_rule(PathBeneath::new(folder, access))?;
        }
    }
    if let Some(port) = port {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// The folder of the file, and that of the file which it is a link to. A pipe has none: it cannot be read again.
fn folders_of(policy: &Path) -> Vec<PathBuf> {
    if !policy.is_file() {
        return Vec::new();
    }
    let mut folders = vec![folder_of(policy)];
    folders.extend(policy.canonicalize().ok().map(|file| folder_of(&file)).filter(|folder| *folder != folders[0]));
    folders
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("/"),
    }
}
