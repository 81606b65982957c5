//! The abilities of a thread that has given up the rest. Rights are a thread's own, so each test has one for itself.

use std::fs;
use std::net::{TcpListener, ToSocketAddrs as _, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::thread;

use tempfile::TempDir;

use super::*;

/// A policy in a folder, beside another folder, and where the control socket is.
struct Place {
    root: TempDir,
    needs: Needs,
}

impl Place {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        for folder in ["policies", "elsewhere", "run"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let (policy, control) = (root.join("policies/mine.toml"), root.join("run/socket"));
        fs::write(&policy, "policy").unwrap();
        fs::write(root.join("elsewhere/secret"), "secret").unwrap();
        let needs = Needs { policy: Some(policy), control, realtime: false };
        Self { root: temporary, needs }
    }

    /// `work` on a thread that has given up all but the needs.
    fn limited<T: Send>(&self, work: impl FnOnce(&GivenUp) -> T + Send) -> T {
        let limited = || work(&self.needs.give_up_the_rest().unwrap());
        thread::scope(|scope| scope.spawn(limited).join()).unwrap()
    }
}

#[test]
fn what_comes_later_still_works() {
    let place = Place::new();
    let control = &place.needs.control;
    let listener = UnixListener::bind(control).unwrap();
    let client = UnixStream::connect(control).unwrap();
    place.limited(|_| {
        assert_eq!(fs::read_to_string(place.needs.policy.as_ref().unwrap()).unwrap(), "policy");
        // A policy is replaced by another file, and a new one may be a link within the folder.
        assert!(fs::metadata(place.root.path().join("policies")).is_ok());
        drop(listener.accept().unwrap());
        assert_eq!(thread::spawn(|| vec![7_u8; 1 << 20].len()).join().unwrap(), 1 << 20);
        thread::sleep(std::time::Duration::from_millis(1));
        fs::remove_file(control).unwrap();
    });
    drop(client);
}

#[test]
fn all_else_does_not() {
    let place = Place::new();
    place.limited(|given_up| {
        let denied = |result: io::Result<()>| result.unwrap_err().raw_os_error() == Some(libc::EPERM);
        assert!(denied(Command::new("true").spawn().map(drop)), "a program");
        assert!(denied(TcpListener::bind("127.0.0.1:0").map(drop)), "a port");
        assert!(denied(UdpSocket::bind("127.0.0.1:0").map(drop)), "another socket");
        assert!(denied(UnixStream::pair().map(drop)), "a pair of sockets");
        assert!(denied(fs::write(place.root.path().join("policies/new"), "x")), "a new file");
        assert!(denied(
            fs::OpenOptions::new().append(true).open(place.root.path().join("policies/mine.toml")).map(drop)
        ));
        let emptied = place.root.path().join("policies/mine.toml");
        let emptying = fs::OpenOptions::new().read(true).custom_flags(libc::O_TRUNC).open(emptied);
        assert!(denied(emptying.map(drop)), "a file that is opened for reading, and emptied");
        assert!(denied(fs::create_dir(place.root.path().join("run/folder"))), "a folder");
        assert!(
            denied(fs::rename(place.root.path().join("policies/mine.toml"), place.root.path().join("run/x"))),
            "a move"
        );
        assert_eq!(given_up.system_calls, Limit::Full);
        if !matches!(given_up.files, Limit::None(_)) {
            for file in [place.root.path().join("elsewhere/secret"), "/etc/passwd".into(), "/proc/self/maps".into()] {
                let error = fs::read_to_string(&file).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{}", file.display());
            }
            assert!(fs::remove_file(place.root.path().join("elsewhere/secret")).is_err());
        }
    });
    // Other threads are as they were.
    assert_eq!(fs::read_to_string(place.root.path().join("elsewhere/secret")).unwrap(), "secret");
}

#[test]
fn no_capability_is_left_but_for_what_comes_later() {
    let place = Place::new();
    let had = capabilities(None).unwrap().effective;
    let wanted =
        |kept: CapabilitySet| (had & kept).iter_names().map(|(name, _)| format!("CAP_{name}")).collect::<Vec<_>>();
    place.limited(|given_up| {
        assert_eq!(given_up.capabilities, wanted(CapabilitySet::DAC_READ_SEARCH));
    });
    let left = || {
        keep(CapabilitySet::SYS_NICE | CapabilitySet::BPF, CapabilitySet::BPF).unwrap();
        capabilities(None).unwrap()
    };
    let left = thread::spawn(left).join().unwrap();
    assert_eq!(left.effective, had & CapabilitySet::BPF);
    assert_eq!(left.permitted, had & (CapabilitySet::SYS_NICE | CapabilitySet::BPF));
    assert_eq!(left.inheritable, CapabilitySet::empty());
    let needs = Needs { policy: None, realtime: true, ..place.needs.clone() };
    let given_up = thread::spawn(move || needs.give_up_the_rest().unwrap()).join().unwrap();
    assert_eq!(given_up.capabilities, wanted(CapabilitySet::SYS_NICE));
}

#[test]
fn a_supervisor_starts_programs_and_signals_them() {
    let work = || {
        let given_up = give_up_as_supervisor().unwrap();
        assert_eq!((given_up.capabilities, given_up.system_calls), (vec![], Limit::Full));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let output = Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        assert!(status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"), "{status}");
    };
    thread::spawn(work).join().unwrap();
}

#[test]
fn a_thread_that_looks_names_up_reads_the_system_and_writes_nothing() {
    let place = Place::new();
    let work = || {
        let given_up = give_up_as_resolver().unwrap();
        assert_eq!((given_up.capabilities, given_up.system_calls), (vec![], Limit::Full));
        assert!(("localhost", 0).to_socket_addrs().unwrap().next().is_some());
        drop(UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(Command::new("true").spawn().is_err(), "a program");
        if !matches!(given_up.files, Limit::None(_)) {
            assert!(fs::read("/etc/hosts").is_ok());
            let denied = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::PermissionDenied;
            assert!(denied(fs::read(place.root.path().join("elsewhere/secret")).map(drop)));
            assert!(denied(fs::write(place.root.path().join("elsewhere/new"), "x")));
            assert!(denied(fs::remove_file(place.root.path().join("elsewhere/secret"))));
            assert!(denied(fs::write("/run/lastmile-of-a-test", "x")));
        }
    };
    thread::scope(|scope| scope.spawn(work).join()).unwrap();
}
