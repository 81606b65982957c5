//! Waiting for packets, signals and deadlines, as punctually as the kernel allows.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use super::{check, check_fd};

/// Which of the descriptors given to [`readable`] can be read, in their order.
pub(crate) type Ready<const N: usize> = [bool; N];

/// Waits until one of `fds` (those that are `None` never are) is readable (hang-ups and errors count: reading will say which), or `timeout` has passed; `None`
/// waits without end. A signal that interrupts the wait ends it early, with nothing ready. ppoll(2).
pub(crate) fn readable<const N: usize>(
    fds: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<Ready<N>> {
    let mut polled = fds.map(|fd| libc::pollfd {
        // poll(2) passes over negative descriptors.
        fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(i32::try_from(timeout.subsec_nanos()).expect("below 10^9")),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = libc::nfds_t::try_from(N).expect("a handful of descriptors");
    // SAFETY: `polled` holds `count` entries, `timeout` is null or points to a timespec that outlives the call, and a null
    // signal mask leaves the mask as it is.
    match check(unsafe { libc::ppoll(polled.as_mut_ptr(), count, timeout, ptr::null()) }) {
        Ok(_) => Ok(polled.map(|fd| fd.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// A descriptor that is readable when any of `fds` is, for as long as they are open. epoll(7).
pub(crate) fn any_of(fds: &[impl AsFd]) -> io::Result<OwnedFd> {
    // SAFETY: takes a flag.
    let any = check_fd(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    for fd in fds {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (any, fd) = (any.as_raw_fd(), fd.as_fd().as_raw_fd());
        // SAFETY: two open descriptors, and an event that outlives the call.
        check(unsafe { libc::epoll_ctl(any, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
    }
    Ok(any)
}

/// Asks the kernel to wake this thread within a nanosecond of what it asks for, not within the usual 50 microseconds.
/// prctl(2), `PR_SET_TIMERSLACK`.
pub(crate) fn wake_punctually() -> io::Result<()> {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: PR_SET_TIMERSLACK takes one number and no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) }).map(drop)
}

/// Puts this thread before every ordinary one (`SCHED_FIFO`, lowest priority). sched_setscheduler(2).
pub(crate) fn run_first() -> io::Result<()> {
    // SAFETY: a struct of integers, of which all zero is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: `parameters` outlives the call; 0 names the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) }).map(drop)
}

/// A handle of the process `pid`, a child that has not been waited for; readable once it has ended. pidfd_open(2).
pub(crate) fn process_handle(pid: u32) -> io::Result<OwnedFd> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: takes two numbers and returns a descriptor that closes on exec, or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    check_fd(libc::c_int::try_from(fd).expect("descriptors are ints"))
}

/// Sends `signal` to the process behind `handle`. pidfd_send_signal(2).
pub(crate) fn signal(handle: &OwnedFd, signal: i32) -> io::Result<()> {
    let nothing = ptr::null::<libc::siginfo_t>();
    // SAFETY: a descriptor, open for as long as it is borrowed, a number, and null for "as kill(2) does".
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), signal, nothing, 0) };
    check(libc::c_int::try_from(result).expect("zero or -1")).map(drop)
}

/// Sends `signal` to every process of the group whose leader is the child `pid`, which has not been waited for or still has members.
/// kill(2).
pub(crate) fn signal_group(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes two numbers.
    check(unsafe { libc::kill(-pid, signal) }).map(drop)
}

/// Whether this process ignores `signal`, as one that nohup(1) has started ignores SIGHUP. sigaction(2).
pub(crate) fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: a struct of integers and pointers that may be null, of which all zero is a value.
    let mut current: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: null for "change nothing"; `current` outlives the call.
    check(unsafe { libc::sigaction(signal, ptr::null(), &raw mut current) })?;
    Ok(current.sa_sigaction == libc::SIG_IGN)
}

/// How long this thread has been on a processor. clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID`.
pub(crate) fn thread_time() -> io::Result<lastmile_units::Duration> {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `used` outlives the call.
    check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut used) })?;
    let [seconds, ns] = [used.tv_sec, used.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Ok(lastmile_units::Duration::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns)))
}

/// Microseconds on the monotonic clock of the kernel, which other processes share. clock_gettime(2).
pub(crate) fn monotonic_us() -> io::Result<u64> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call.
    check(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) })?;
    let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Ok(seconds * 1_000_000 + ns / 1000)
}
