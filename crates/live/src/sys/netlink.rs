//! Messages of netlink(7), and those of rtnetlink(7) about devices.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

// linux/netlink.h, linux/rtnetlink.h.
const ERROR: u16 = libc::NLMSG_ERROR as u16;
pub(super) const HEADER_LEN: usize = 16;
/// Bytes of a struct `ifinfomsg`.
pub(super) const ABOUT_LEN: usize = 16;

/// `NETLINK_ROUTE` is 0, which stands for no protocol.
const ROUTE: Option<Protocol> = None;

/// A socket for this family of netlink, in the network namespace of the calling thread.
pub(super) fn socket(family: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, family)?)
}

/// A socket for rtnetlink(7).
pub(super) fn route() -> io::Result<OwnedFd> {
    socket(ROUTE)
}

/// One request: struct `nlmsghdr`, struct `ifinfomsg`, attributes.
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message about the device of this number, with these flags of the device set.
    pub(super) fn new(kind: u16, flags: u16, index: u32, device_flags: u32) -> Self {
        Self::changing(kind, flags, index, (device_flags, device_flags))
    }

    /// As [`Message::new`], with the flags of the device, and the mask of those that change.
    pub(super) fn changing(kind: u16, flags: u16, index: u32, (device_flags, mask): (u32, u32)) -> Self {
        let flags = flags | libc::NLM_F_ACK as u16;
        // An answer to RTM_GETLINK is one itself.
        let flags = if kind == libc::RTM_GETLINK { flags & !(libc::NLM_F_ACK as u16) } else { flags };
        let mut about = [0; ABOUT_LEN];
        about[4..8].copy_from_slice(&index.to_ne_bytes());
        about[8..12].copy_from_slice(&device_flags.to_ne_bytes());
        about[12..16].copy_from_slice(&mask.to_ne_bytes());
        Self::with_body(kind, flags, &about)
    }

    /// A message of any family of netlink: the flags beside `NLM_F_REQUEST`, and what stands before the attributes.
    pub(super) fn with_body(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        bytes.extend_from_slice(body);
        Self(bytes)
    }

    /// The bytes, with their length.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = u32::try_from(self.0.len()).expect("names and numbers");
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }

    /// The first error number among several answers, if one of them is an error.
    pub(super) fn first_error(mut answers: &[u8]) -> Option<i32> {
        while let Some(len) = answers.first_chunk().map(|len| u32::from_ne_bytes(*len) as usize) {
            let answer = answers.get(..len.max(HEADER_LEN))?;
            if let Some(errno) = failure(answer).filter(|errno| *errno != 0) {
                return Some(errno);
            }
            answers = answers.get(len.max(HEADER_LEN).next_multiple_of(4)..)?;
        }
        None
    }

    /// Length, kind, value, padding to four bytes.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.0.extend_from_slice(value));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub(super) fn string(&mut self, kind: u16, value: &str) {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat());
    }

    pub(super) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0, 0]);
        self.0.extend(kind.to_ne_bytes());
        fill(self);
        let len = u16::try_from(self.0.len() - start).expect("names and numbers");
        self.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
    }

    /// Sends it, and gives the one message that the kernel answers.
    pub(super) fn ask(self) -> io::Result<Vec<u8>> {
        self.ask_by(&route()?)
    }

    /// As [`Message::ask`], by a socket of [`route`].
    pub(super) fn ask_by(self, socket: &OwnedFd) -> io::Result<Vec<u8>> {
        send(socket, &self.finish(), SendFlags::empty())?;
        let mut answer = vec![0; 32 << 10];
        let (len, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(len);
        match failure(&answer) {
            Some(0) | None => Ok(answer),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// The error number in an answer that is one, zero for "done".
fn failure(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let code = i32::from_ne_bytes(*answer.get(HEADER_LEN..)?.first_chunk()?);
    (kind == ERROR).then_some(-code)
}

/// Kind and value of each attribute.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & libc::NLA_TYPE_MASK as u16;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// linux/netlink.h: length, type 2 (NLMSG_ERROR), flags, sequence, port, then the negative error number; 0
    /// acknowledges.
    #[test]
    fn the_first_error_among_answers_is_found() {
        let answer = |errno: i32| {
            let mut message = Message::with_body(ERROR, 0, &(-errno).to_ne_bytes());
            message.0.extend([0; 16]);
            message.finish()
        };
        assert_eq!(Message::first_error(&[answer(0), answer(17), answer(1)].concat()), Some(17));
        assert_eq!(Message::first_error(&[answer(0), answer(0)].concat()), None);
        assert_eq!(Message::first_error(&[]), None);
        assert_eq!(Message::first_error(&answer(0)[..10]), None);
    }

    #[test]
    fn attributes_are_padded_to_words() {
        let mut message = Message::new(libc::RTM_GETLINK, 0, 0, 0);
        message.string(3, "ab");
        message.attribute(10, &7_u32.to_ne_bytes());
        let bytes = &message.0[HEADER_LEN + ABOUT_LEN..];
        assert_eq!(bytes.len(), 8 + 8);
        let read: Vec<_> = attributes(bytes).collect();
        assert_eq!(read, [(3, b"ab\0".as_slice()), (10, &7_u32.to_ne_bytes())]);
    }
}
