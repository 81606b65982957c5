//! Network devices as rtnetlink(7) tells of them, and the bridges that they are ports of.
//!
//! All of it acts on the network namespace of the calling thread.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check_fd, packet};

// linux/netlink.h, linux/rtnetlink.h, linux/if_link.h.
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const HEADER_LEN: usize = 16;
const ABOUT_LEN: usize = 16;
const BRIDGE_FORWARD_DELAY: u16 = 1;
const BRIDGE_MULTICAST_SNOOPING: u16 = 23;

/// A network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// Its number.
    pub(crate) index: u32,
    /// It was brought up; it may still be without a carrier.
    pub(crate) up: bool,
    /// The largest packet that it takes.
    pub(crate) mtu: u32,
    /// The number of the device, such as a bridge, that it is a port of.
    pub(crate) master: Option<u32>,
    /// It is a port of a bridge, or one itself.
    pub(crate) bridge_port: bool,
}

/// The device of this name; `None` if there is none.
pub(crate) fn find(name: &str) -> io::Result<Option<Link>> {
    let mut message = Message::new(libc::RTM_GETLINK, 0, 0, 0);
    message.string(libc::IFLA_IFNAME, name);
    match message.ask() {
        Ok(answer) => answer_to_link(&answer).map(Some),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EINVAL | libc::ERANGE)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name of the device of this number.
pub(crate) fn name_of(index: u32) -> io::Result<String> {
    let answer = Message::new(libc::RTM_GETLINK, 0, index, 0).ask()?;
    let name = attributes(answer.get(HEADER_LEN + ABOUT_LEN..).unwrap_or_default())
        .find(|(kind, _)| *kind == libc::IFLA_IFNAME)
        .and_then(|(_, value)| std::str::from_utf8(value).ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(name.trim_end_matches('\0').to_owned())
}

/// Makes a bridge that is up and forwards at once, without spanning tree and without looking into multicast.
pub(crate) fn add_bridge(name: &str) -> io::Result<()> {
    let mut message =
        Message::new(libc::RTM_NEWLINK, (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16, 0, libc::IFF_UP as u32);
    message.string(libc::IFLA_IFNAME, name);
    message.nested(libc::IFLA_LINKINFO, |info| {
        info.string(libc::IFLA_INFO_KIND, "bridge");
        info.nested(libc::IFLA_INFO_DATA, |data| {
            data.attribute(BRIDGE_FORWARD_DELAY, &0_u32.to_ne_bytes());
            data.attribute(BRIDGE_MULTICAST_SNOOPING, &[0]);
        });
    });
    message.ask().map(drop)
}

/// Sets how many packets the kernel keeps until they are read. The ioctl for it, of netdevice(7), wants rights outside of every user
/// namespace.
pub(crate) fn set_tx_queue_len(name: &str, packets: u16) -> io::Result<()> {
    let mut message = Message::new(libc::RTM_SETLINK, 0, packet::index_of(name)?.cast_unsigned(), 0);
    message.attribute(libc::IFLA_TXQLEN, &u32::from(packets).to_ne_bytes());
    message.ask().map(drop)
}

/// Makes a device a port of a bridge.
pub(crate) fn join(port: &str, bridge: &str) -> io::Result<()> {
    let index = |name| packet::index_of(name).map(libc::c_int::cast_unsigned);
    let mut message = Message::new(libc::RTM_SETLINK, 0, index(port)?, 0);
    message.attribute(libc::IFLA_MASTER, &index(bridge)?.to_ne_bytes());
    message.ask().map(drop)
}

/// One request: struct `nlmsghdr`, struct `ifinfomsg`, attributes.
pub(super) struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, index: u32, device_flags: u32) -> Self {
        let flags = flags | libc::NLM_F_ACK as u16;
        // An answer to RTM_GETLINK is one itself.
        let flags = if kind == libc::RTM_GETLINK { flags & !(libc::NLM_F_ACK as u16) } else { flags };
        let mut about = [0; ABOUT_LEN];
        about[4..8].copy_from_slice(&index.to_ne_bytes());
        about[8..12].copy_from_slice(&device_flags.to_ne_bytes());
        // Which of the flags are meant.
        about[12..16].copy_from_slice(&device_flags.to_ne_bytes());
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
        let message = self.finish();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes three numbers.
        let socket: OwnedFd = check_fd(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
        // SAFETY: the pointer and the length are those of one vector.
        let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = vec![0; 32 << 10];
        // SAFETY: the pointer and the length are those of one vector.
        let received = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        answer.truncate(usize::try_from(received).map_err(|_| io::Error::last_os_error())?);
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

fn answer_to_link(answer: &[u8]) -> io::Result<Link> {
    let word = |at: usize| -> Option<u32> { Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?)) };
    let (index, flags) = word(20).zip(word(24)).ok_or(io::ErrorKind::InvalidData)?;
    let mut link = Link { index, up: flags & libc::IFF_UP as u32 != 0, mtu: 0, master: None, bridge_port: false };
    for (kind, value) in attributes(&answer[HEADER_LEN + ABOUT_LEN..]) {
        let number = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        match kind {
            libc::IFLA_MTU => link.mtu = number.unwrap_or(0),
            libc::IFLA_MASTER => link.master = number,
            libc::IFLA_LINKINFO => {
                let is_bridge =
                    |(kind, value): (u16, &[u8])| kind == libc::IFLA_INFO_SLAVE_KIND && value.starts_with(b"bridge");
                link.bridge_port = attributes(value).any(is_bridge);
            }
            _ => {}
        }
    }
    Ok(link)
}

/// Kind and value of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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

    #[test]
    fn the_loopback_device_is_found_and_is_a_port_of_nothing() {
        let link = find("lo").unwrap().unwrap();
        assert_eq!(name_of(link.index).unwrap(), "lo");
        assert_eq!((link.master, link.bridge_port), (None, false));
        assert!(link.mtu > 1500, "{link:?}");
        assert_eq!(find("lastmile-none").unwrap(), None);
    }

    /// netlink(7): the length counts the header and not the padding.
    /// linux/netlink.h: length, type 2 (NLMSG_ERROR), flags, sequence, port, then the negative error number; 0 acknowledges.
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
