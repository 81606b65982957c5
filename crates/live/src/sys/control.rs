//! The control block that recvmsg(2) fills beside a packet: cmsg(3).

use std::time::{Duration, SystemTime};

/// A message without parts, address and control block.
pub(super) fn message() -> libc::msghdr {
    // SAFETY: integers and pointers, of which all zero is a value. Fields for padding, which some C libraries have,
    // cannot be named.
    unsafe { std::mem::zeroed() }
}

/// Reports every control message to `each`: level, type, data.
pub(super) fn messages(message: &libc::msghdr, mut each: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the kernel has set the length of the control block to what it filled, and the CMSG functions stay within
    // it. A header that is not null is whole; its data follow it, as many bytes as its length says beyond the header's
    // own.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let start = libc::CMSG_DATA(header);
            let len = (*header).cmsg_len as usize - (start as usize - header as usize);
            each((*header).cmsg_level, (*header).cmsg_type, std::slice::from_raw_parts(start, len));
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// The receive time that a message of type `SCM_TIMESTAMPNS` carries: two 64-bit numbers, seconds and nanoseconds, on
/// the 64-bit systems that lastmile runs on.
pub(super) fn stamp(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Option<SystemTime> {
    if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    let (seconds, rest) = data.split_first_chunk()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    let nanoseconds = u32::try_from(i64::from_ne_bytes(*rest.first_chunk()?)).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}
