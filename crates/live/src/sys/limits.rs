//! How many descriptors the process may have: getrlimit(2).

use std::io;

use super::check;

/// Lets the process have at least so many descriptors, as far as it is allowed to; returns how many it may have now.
pub(crate) fn raise_descriptors(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < wanted {
        let most = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
        let allowed = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), rlim_max: limit.rlim_max };
        // Root may raise the hard limit too, unless it is held in a container.
        for limit_to in [most, allowed] {
            // SAFETY: a limit that outlives the call.
            if check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit_to) }).is_ok() {
                return Ok(limit_to.rlim_cur);
            }
        }
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_never_lowered() {
        let now = raise_descriptors(0).unwrap();
        assert!(now > 0);
        assert_eq!(raise_descriptors(now).unwrap(), now);
        assert!(raise_descriptors(now + 1).unwrap() >= now);
        assert!(raise_descriptors(1).unwrap() >= now);
    }
}
