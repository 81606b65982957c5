//! Counters by rtnetlink(7): links with struct `rtnl_link_stats64`, disciplines and classes with the nested attributes
//! of linux/gen_stats.h.

use std::io;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::netlink::{ABOUT_LEN, HEADER_LEN, Message, attributes, socket};

// linux/rtnetlink.h, linux/gen_stats.h.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Packets in 64 bits, for those that 32 bits of `TCA_STATS_BASIC` are too few for.
const TCA_STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = u32::MAX;
/// Bytes of a struct `tcmsg`.
const TCMSG_LEN: usize = 20;
/// The largest answer of the kernel to a dump is one of 32 KiB at a time.
const ANSWER: usize = 64 << 10;

/// Counters of one direction of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Packets dropped for lack of buffers, or by the driver.
    pub dropped: u64,
    /// Packets with errors.
    pub errors: u64,
}

/// The counters of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Packets that came in.
    pub received: Traffic,
    /// Packets that went out.
    pub sent: Traffic,
}

/// The counters of a queueing discipline, or of a class of one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Queue {
    /// The number of the interface.
    pub index: u32,
    /// The kind, such as `htb`.
    pub kind: String,
    /// Major and minor number; zero for a discipline of the kernel's own.
    pub handle: (u16, u16),
    /// The class or discipline above it; `None` at the root.
    pub parent: Option<(u16, u16)>,
    /// True for a class.
    pub is_class: bool,
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes, as the discipline counts them.
    pub bytes: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Times that it was over a limit.
    pub overlimits: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
}

/// The least handle that the kernel gives a discipline without one.
const FIRST_DRAWN: u16 = 0x8000;

impl Queue {
    /// The name of tc(8): `htb 1:10`. The kernel gives a discipline without a handle the next one from 8000 on
    /// (`qdisc_alloc_handle`), another one each time, and its own disciplines zero. Their names have their place
    /// instead: `cake root`, `fq_codel of 1:10`, and below a discipline with such a handle `fq_codel of :4`.
    #[must_use]
    pub fn name(&self) -> String {
        let drawn = |major: u16| major == 0 || (FIRST_DRAWN..u16::MAX).contains(&major);
        let place = |(major, minor): (u16, u16)| match drawn(major) {
            true => format!(":{minor:x}"),
            false => format!("{major:x}:{minor:x}"),
        };
        let kind = &self.kind;
        match (self.handle, self.parent) {
            (handle, _) if self.is_class => format!("{kind} {}", place(handle)),
            ((major, _), None) if drawn(major) => format!("{kind} root"),
            ((major, _), Some(parent)) if drawn(major) => format!("{kind} of {}", place(parent)),
            ((major, _), _) => format!("{kind} {major:x}:"),
        }
    }
}

/// Every link.
pub(crate) fn interfaces() -> io::Result<Vec<Interface>> {
    let message = Message::with_body(libc::RTM_GETLINK, libc::NLM_F_DUMP as u16, &[0; ABOUT_LEN]);
    dump(message, libc::RTM_NEWLINK, interface)
}

/// Every discipline of every link.
pub(crate) fn disciplines() -> io::Result<Vec<Queue>> {
    let message = Message::with_body(libc::RTM_GETQDISC, libc::NLM_F_DUMP as u16, &[0; TCMSG_LEN]);
    dump(message, libc::RTM_NEWQDISC, |body| queue(body, false))
}

/// Every class of a link.
pub(crate) fn classes(index: u32) -> io::Result<Vec<Queue>> {
    let mut about = [0; TCMSG_LEN];
    about[4..8].copy_from_slice(&index.to_ne_bytes());
    let message = Message::with_body(libc::RTM_GETTCLASS, libc::NLM_F_DUMP as u16, &about);
    dump(message, libc::RTM_NEWTCLASS, |body| queue(body, true))
}

/// Asks, and reads the part after the header of each message of this type until the end of the answer.
fn dump<T>(message: Message, kind: u16, read: impl Fn(&[u8]) -> Option<T>) -> io::Result<Vec<T>> {
    let socket = socket(None)?;
    send(&socket, &message.finish(), SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; ANSWER];
    loop {
        let (len, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut answers = &buffer[..len.min(ANSWER)];
        while let Some((answer, rest)) = first(answers) {
            match u16::from_ne_bytes([answer[4], answer[5]]) {
                done if done == libc::NLMSG_DONE as u16 => return Ok(found),
                error if error == libc::NLMSG_ERROR as u16 => {
                    return Err(Message::first_error(answer)
                        .map_or_else(|| io::ErrorKind::InvalidData.into(), io::Error::from_raw_os_error));
                }
                other if other == kind => found.extend(read(&answer[HEADER_LEN..])),
                _ => {}
            }
            answers = rest;
        }
    }
}

/// The first message with its header, and those behind it.
fn first(answers: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = u32::from_ne_bytes(*answers.first_chunk()?) as usize;
    let answer = answers.get(..len).filter(|answer| answer.len() >= HEADER_LEN)?;
    Some((answer, answers.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Struct `ifinfomsg`, then attributes.
fn interface(body: &[u8]) -> Option<Interface> {
    let index = u32_at(body, 4)?;
    let (mut name, mut counters) = (None, None);
    for (kind, value) in attributes(body.get(ABOUT_LEN..)?) {
        match kind {
            libc::IFLA_IFNAME => name = std::str::from_utf8(value).ok().map(|name| name.trim_end_matches('\0')),
            libc::IFLA_STATS64 => counters = Some(value),
            _ => {}
        }
    }
    let counter = |number: usize| u64_at(counters?, number * 8);
    let traffic = |first: usize| {
        Some(Traffic {
            packets: counter(first)?,
            bytes: counter(first + 2)?,
            errors: counter(first + 4)?,
            dropped: counter(first + 6)?,
        })
    };
    Some(Interface { name: name?.to_owned(), index, received: traffic(0)?, sent: traffic(1)? })
}

/// Struct `tcmsg`, then attributes.
fn queue(body: &[u8], is_class: bool) -> Option<Queue> {
    let numbers = |word: u32| ((word >> 16) as u16, word as u16);
    let parent = u32_at(body, 12)?;
    let mut queue = Queue {
        index: u32_at(body, 4)?,
        handle: numbers(u32_at(body, 8)?),
        parent: (parent != TC_H_ROOT).then(|| numbers(parent)),
        is_class,
        ..Queue::default()
    };
    for (kind, value) in attributes(body.get(TCMSG_LEN..)?) {
        match kind {
            TCA_KIND => queue.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            TCA_STATS2 => counters(value, &mut queue),
            _ => {}
        }
    }
    Some(queue)
}

fn counters(nested: &[u8], queue: &mut Queue) {
    let word = |value, number: usize| u32_at(value, number * 4).map_or(0, u64::from);
    for (kind, value) in attributes(nested) {
        match kind {
            TCA_STATS_BASIC => {
                queue.bytes = u64_at(value, 0).unwrap_or(0);
                queue.packets = queue.packets.max(word(value, 2));
            }
            TCA_STATS_PKT64 => queue.packets = u64_at(value, 0).unwrap_or(queue.packets),
            TCA_STATS_QUEUE => {
                // qlen, backlog, drops, requeues, overlimits.
                queue.backlog_packets = word(value, 0);
                queue.backlog_bytes = word(value, 1);
                queue.dropped = word(value, 2);
                queue.overlimits = word(value, 4);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_counters_and_a_discipline() {
        let own = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let read = || interfaces().unwrap().into_iter().find(|interface| interface.name == "lo").unwrap();
        let before = read();
        own.send_to(&[0; 100], own.local_addr().unwrap()).unwrap();
        let after = read();
        // 128 bytes of IP in a frame; others may send on it too.
        assert!(after.sent.packets > before.sent.packets && after.sent.bytes >= before.sent.bytes + 128, "{after:?}");
        assert!(after.received.packets > before.received.packets, "{after:?}");
        assert!(disciplines().unwrap().iter().any(|queue| queue.index == after.index && !queue.kind.is_empty()));
        assert_eq!(classes(after.index).unwrap(), []);
    }

    #[test]
    fn a_name_tells_the_queues_of_mq_apart() {
        let of = |parent| Queue { kind: "fq_codel".to_owned(), parent, ..Queue::default() };
        // `tc qdisc add dev eth0 root mq` on two queues, and the mq of a device's own, whose handle is zero.
        let names = [None, Some((0x805b, 1)), Some((0x805b, 2)), Some((0, 2))].map(|parent| of(parent).name());
        assert_eq!(names, ["fq_codel root", "fq_codel of :1", "fq_codel of :2", "fq_codel of :2"]);
        let class = Queue { is_class: true, handle: (0, 2), ..of(Some((0, 0))) };
        assert_eq!(class.name(), "fq_codel :2");
        let own = Queue { handle: (0x1a57, 0), ..of(Some((1, 2))) };
        assert_eq!(own.name(), "fq_codel 1a57:");
    }

    /// `tc qdisc add dev ppp0 root cake`, and once more: the kernel draws another handle.
    #[test]
    fn a_name_outlives_a_handle_that_the_kernel_draws() {
        let of = |handle| Queue { kind: "cake".to_owned(), handle: (handle, 0), ..Queue::default() };
        assert_eq!([0x8003, 0x8004, 0].map(|handle| of(handle).name()), ["cake root", "cake root", "cake root"]);
        let below = Queue { parent: Some((1, 0x10)), ..of(0x8005) };
        let class = Queue { is_class: true, handle: (1, 0x10), ..of(0) };
        assert_eq!([below.name(), class.name()], ["cake of 1:10", "cake 1:10"]);
        // `TC_H_INGRESS` is nobody's draw.
        assert_eq!(Queue { kind: "ingress".to_owned(), ..of(0xffff) }.name(), "ingress ffff:");
    }

    /// A kernel without such a device answers with an empty list or an error, and does not hang.
    #[test]
    fn a_device_that_is_not_there_has_no_classes() {
        assert!(classes(0x7fff_fff0).map_or(true, |classes| classes.is_empty()));
    }
}
