//! Waiting for packets, signals and deadlines, as punctually as the kernel allows.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal, waitid,
};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

use super::check;

/// True for each descriptor given to [`readable`] that can be read, in their order.
pub(crate) type Ready<const N: usize> = [bool; N];

/// Waits until one of `fds` (those that are `None` never are) is readable (hang-ups and errors count: reading will say
/// which), or `timeout` has passed; `None` waits without end. A signal that interrupts the wait ends it early, with
/// nothing ready. ppoll(2).
pub(crate) fn readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<Ready<N>> {
    // Longer than the kernel can wait: without end.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let Some(any) = fds.iter().flatten().next().copied() else {
        poll_until(&mut [], timeout.as_ref())?;
        return Ok([false; N]);
    };
    // In place of none, a descriptor that is waited for anyhow, and of which nothing more is asked.
    let mut polled = fds.map(|fd| match fd {
        Some(fd) => PollFd::from_borrowed_fd(fd, PollFlags::IN),
        None => PollFd::from_borrowed_fd(any, PollFlags::empty()),
    });
    let interrupted = poll_until(&mut polled, timeout.as_ref())?;
    let mut ready = [false; N];
    for ((ready, fd), polled) in ready.iter_mut().zip(&fds).zip(&polled) {
        *ready = !interrupted && fd.is_some() && !polled.revents().is_empty();
    }
    Ok(ready)
}

/// True if a signal ended the wait.
fn poll_until(polled: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> io::Result<bool> {
    match poll(polled, timeout) {
        Ok(_) => Ok(false),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// A descriptor that is readable when any of `fds` is, for as long as they are open. epoll(7).
pub(crate) fn any_of(fds: &[impl AsFd]) -> io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in fds {
        epoll::add(&any, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(any)
}

/// Asks the kernel to wake this thread within a nanosecond of what it asks for, not within the usual 50 microseconds.
/// prctl(2).
pub(crate) fn wake_punctually() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Puts this thread before every ordinary one (`SCHED_FIFO`, lowest priority). sched_setscheduler(2), which rustix does
/// not have and some C libraries refuse.
pub(crate) fn run_first() -> io::Result<()> {
    // The kernel's struct sched_param.
    let priority: libc::c_int = 1;
    // SAFETY: `priority` outlives the call; 0 names the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority) };
    check(libc::c_int::try_from(result).expect("zero or -1")).map(drop)
}

/// A handle of the process `pid`, a child that has not been waited for; readable once it has ended. pidfd_open(2).
pub(crate) fn process_handle(pid: u32) -> io::Result<OwnedFd> {
    Ok(pidfd_open(process(pid)?, PidfdFlags::empty())?)
}

/// How the process `pid`, a child, has ended; `None` while it runs. It stays to be waited for. waitid(2), `WNOWAIT`.
pub(crate) fn ended(pid: u32) -> io::Result<Option<ExitStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(process(pid)?), options)?;
    // wait(2): the exit code is in the upper byte, a signal in the lower.
    let raw = |status: rustix::process::WaitIdStatus| {
        status.exit_status().map(|code| (code & 0xFF) << 8).or_else(|| status.terminating_signal())
    };
    Ok(status.and_then(raw).map(ExitStatus::from_raw))
}

/// Sends `signal` to the process behind `handle`. pidfd_send_signal(2).
pub(crate) fn signal(handle: &OwnedFd, signal: i32) -> io::Result<()> {
    Ok(pidfd_send_signal(handle, named(signal)?)?)
}

/// Sends `signal` to every process of the group whose leader is the child `pid`, which has not been waited for or still
/// has members. kill(2).
pub(crate) fn signal_group(pid: u32, signal: i32) -> io::Result<()> {
    let group = process(pid)?;
    if group.is_init() {
        // kill(2) would take it for every process that there is.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(kill_process_group(group, named(signal)?)?)
}

fn process(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn named(signal: i32) -> io::Result<Signal> {
    Signal::from_named_raw(signal).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Whether this process ignores `signal`, as one that nohup(1) has started ignores SIGHUP. proc_pid_status(5).
pub(crate) fn is_ignored(signal: i32) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ignored = ignored(&status).ok_or(io::ErrorKind::InvalidData)?;
    // Signal 1 is bit 0.
    Ok(u32::try_from(signal - 1).is_ok_and(|bit| ignored.checked_shr(bit).unwrap_or(0) & 1 == 1))
}

/// The set of ignored signals in a `status` of proc_pid_status(5).
fn ignored(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// Processor time of this thread. clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID`.
pub(crate) fn thread_time() -> lastmile_units::Duration {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Microseconds on the monotonic clock of the kernel, which other processes share. clock_gettime(2).
pub(crate) fn monotonic_us() -> u64 {
    nanoseconds(ClockId::Monotonic).as_ns() / 1000
}

/// Nanoseconds in which the machine was suspended. clock_gettime(2), `CLOCK_BOOTTIME` less `CLOCK_MONOTONIC`.
pub(crate) fn suspended_ns() -> u64 {
    let running = clock_gettime(ClockId::Monotonic);
    let all = clock_gettime(ClockId::Boottime);
    let ns = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(ns(all) - ns(running)).unwrap_or(0)
}

fn nanoseconds(clock: ClockId) -> lastmile_units::Duration {
    let now = clock_gettime(clock);
    let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    lastmile_units::Duration::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_set_of_ignored_signals_is_read_from_the_status() {
        assert_eq!(ignored("Name:\tsh\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), Some(0x1001));
        assert_eq!(ignored("nothing of the kind"), None);
        // SIGCHLD is ignored by nobody who waits for children; SIGPIPE by programs of the standard library.
        assert!(is_ignored(libc::SIGPIPE).unwrap());
        assert!(!is_ignored(libc::SIGCHLD).unwrap());
    }

    #[test]
    fn a_child_tells_how_it_ended_and_stays_to_be_waited_for() {
        for (script, code, signal) in [("exit 3", Some(3), None), ("kill -9 $$", None, Some(9)), ("", Some(0), None)] {
            let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
            let handle = process_handle(child.id()).unwrap();
            readable([Some(handle.as_fd())], None).unwrap();
            let status = ended(child.id()).unwrap().unwrap();
            assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
            assert_eq!(child.wait().unwrap(), status);
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(ended(child.id()).unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_descriptor_that_is_none_is_never_ready_and_takes_no_other_place() {
        let (mut a, b) = UnixStream::pair().unwrap();
        let wait = |b: &UnixStream| readable([None, Some(b.as_fd()), None], Some(Duration::ZERO)).unwrap();
        assert_eq!(wait(&b), [false; 3]);
        a.write_all(b"x").unwrap();
        assert_eq!(wait(&b), [false, true, false]);
        drop(a);
        assert_eq!(wait(&b), [false, true, false], "a hang-up counts, once");
        assert_eq!(readable([None], Some(Duration::ZERO)).unwrap(), [false]);
    }
}
