//! System calls that a shaper may still make, by seccomp(2). Any other fails with `EPERM`.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition as Condition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter,
};

use super::rights::Limit;

/// System calls of the loop, the servers, the standard library and the C library once all is open.
const ANY: [c_long; 62] = [
    // Packets, answers, connections that come.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept4,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_fcntl,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Files, as far as Landlock lets.
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_unlinkat,
    // Memory and threads.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getpgid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getrandom,
    libc::SYS_uname,
    // Signals, and a panic.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_tkill,
];

/// Those that older machines have beside the newer ones.
#[cfg(target_arch = "x86_64")]
const OLD: [c_long; 9] = [
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_accept,
    libc::SYS_unlink,
    libc::SYS_readlink,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];

#[cfg(not(target_arch = "x86_64"))]
const OLD: [c_long; 0] = [];

/// System calls that neither a shaper nor its parent makes, not even at the start: on other
/// processes' memory, mounts, modules, keys and other kernels.
const NEVER: [c_long; 27] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_open_by_handle_at,
];

/// setpriority(2) of a single process or thread.
const PRIO_PROCESS: libc::c_int = 0;

/// The number of an ioctl(2). C libraries differ in its type; the kernel takes 32 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one or the other, by C library")]
fn request(number: libc::Ioctl) -> u64 {
    u64::from(number as u32)
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

pub(super) fn limit(realtime: bool) -> Limit {
    let allowed = allowed(realtime).and_then(|rules| program(rules, errno(libc::EPERM), SeccompAction::Allow));
    // Its flags are in memory, where no filter can look. The C library then takes clone(2).
    let no_clone3 = program([(libc::SYS_clone3, vec![])].into(), SeccompAction::Allow, errno(libc::ENOSYS));
    match (no_clone3, allowed) {
        (Ok(first), Ok(second)) => apply(&[first, second]),
        (Err(error), _) | (_, Err(error)) => Limit::None(format!("seccomp: {error}")),
    }
}

pub(super) fn limit_supervisor() -> Limit {
    forbid(&NEVER)
}

/// A watcher starts no program either. Its database makes calls that a list of allowed ones would have to follow from
/// version to version, and so do lookups of names.
pub(super) fn limit_watcher() -> Limit {
    forbid(&[&NEVER[..], &[libc::SYS_execve, libc::SYS_execveat]].concat())
}

fn forbid(calls: &[c_long]) -> Limit {
    let rules = calls.iter().map(|call| (*call, vec![])).collect();
    match program(rules, SeccompAction::Allow, errno(libc::EPERM)) {
        Ok(filter) => apply(&[filter]),
        Err(error) => Limit::None(format!("seccomp: {error}")),
    }
}

fn apply(filters: &[BpfProgram]) -> Limit {
    match filters.iter().try_for_each(|filter| apply_filter(filter)) {
        Ok(()) => Limit::Full,
        Err(error) => Limit::None(format!("seccomp: {error}")),
    }
}

fn errno(errno: i32) -> SeccompAction {
    SeccompAction::Errno(errno.unsigned_abs())
}

fn program(rules: Rules, otherwise: SeccompAction, then: SeccompAction) -> Result<BpfProgram, BackendError> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, then, machine)?.try_into()
}

fn allowed(realtime: bool) -> Result<Rules, BackendError> {
    let mut rules: Rules = ANY.into_iter().chain(OLD).map(|call| (call, vec![])).collect();
    // clone3(2) is answered by the other filter.
    rules.insert(libc::SYS_clone3, vec![]);
    if realtime {
        rules.insert(libc::SYS_sched_setscheduler, vec![]);
    }
    let flags = |value: libc::c_int| u64::from(value.unsigned_abs());
    // O_TRUNC empties a file that is opened for reading, too: open(2).
    let writing = flags(libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC);
    // Each a system call, the argument that is looked at, and what it must be.
    let conditions = [
        // Threads, no processes.
        (libc::SYS_clone, Condition::new(0, Qword, MaskedEq(flags(libc::CLONE_THREAD)), flags(libc::CLONE_THREAD))?),
        // No new code.
        (libc::SYS_mmap, Condition::new(2, Qword, MaskedEq(flags(libc::PROT_EXEC)), 0)?),
        (libc::SYS_mprotect, Condition::new(2, Qword, MaskedEq(flags(libc::PROT_EXEC)), 0)?),
        // No file is written, emptied or made.
        (libc::SYS_openat, Condition::new(2, Dword, MaskedEq(writing), 0)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, Condition::new(1, Dword, MaskedEq(writing), 0)?),
        // Its own limits are read.
        (libc::SYS_prlimit64, Condition::new(2, Qword, Eq, 0)?),
        // Whether an interface that went down is still there; a terminal and its size; a socket that does not wait.
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, libc::SIOCGIFNAME)?),
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::TCGETS))?),
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::TIOCGWINSZ))?),
        // The live view: keys one by one, and whether the terminal is in its hands. No typing (TIOCSTI).
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::TCGETS2))?),
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::TCSETS2))?),
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::TIOCGPGRP))?),
        (libc::SYS_ioctl, Condition::new(1, Dword, Eq, request(libc::FIONBIO))?),
        (libc::SYS_prctl, Condition::new(0, Dword, Eq, flags(libc::PR_SET_TIMERSLACK))?),
        (libc::SYS_prctl, Condition::new(0, Dword, Eq, flags(libc::PR_SET_NAME))?),
        (libc::SYS_prctl, Condition::new(0, Dword, Eq, flags(libc::PR_SET_VMA))?),
    ];
    // A thread that answers questions gives way to all others: its own priority alone.
    let own = [Condition::new(0, Dword, Eq, flags(PRIO_PROCESS))?, Condition::new(1, Dword, Eq, 0)?];
    rules.insert(libc::SYS_setpriority, vec![SeccompRule::new(own.into())?]);
    for (call, condition) in conditions {
        rules.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
    }
    Ok(rules)
}
