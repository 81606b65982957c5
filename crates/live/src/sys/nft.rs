//! A chain of nftables that drops all that comes in through a device, for as long as a socket is open: nft(8), and
//! linux/netfilter/nfnetlink.h and nf_tables.h.
//!
//! The table has an owner (`flags owner`, since Linux 5.12), the netlink socket that made it: when that is closed, be
//! it by the end of the process, the kernel removes the table.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, netlink as family, recv, send};

use super::netlink::{self, Message};

// linux/netfilter/nfnetlink.h
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NFTABLES: u16 = 10;
// linux/netfilter/nf_tables.h: messages, attributes, flags.
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNER: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
// linux/netfilter.h, linux/netfilter_netdev.h
const NETDEV: u8 = 5;
const INGRESS: u32 = 0;
const DROP: u32 = 0;
const NESTED: u16 = 1 << 15;

/// Drops all that comes in through the device of this name in the namespace of the calling thread, behind the taps of
/// packet sockets and before everything else, until the socket that this returns is closed.
pub(crate) fn drop_ingress(device: &str) -> io::Result<OwnedFd> {
    let table = format!("lastmile-{device}");
    let mut owned = message(NFTABLES << 8 | NEW_TABLE, NETDEV, 0);
    owned.string(TABLE_NAME, &table);
    owned.attribute(TABLE_FLAGS, &TABLE_OWNER.to_be_bytes());
    let mut chain = message(NFTABLES << 8 | NEW_CHAIN, NETDEV, 0);
    chain.string(CHAIN_TABLE, &table);
    chain.string(CHAIN_NAME, "drop");
    chain.nested(CHAIN_HOOK | NESTED, |hook| {
        hook.attribute(HOOK_NUMBER, &INGRESS.to_be_bytes());
        hook.attribute(HOOK_PRIORITY, &0_u32.to_be_bytes());
        hook.string(HOOK_DEVICE, device);
    });
    chain.attribute(CHAIN_POLICY, &DROP.to_be_bytes());
    chain.string(CHAIN_TYPE, "filter");
    // All or nothing: what stands between the two is one transaction.
    let batch = [message(BATCH_BEGIN, 0, NFTABLES), owned, chain, message(BATCH_END, 0, NFTABLES)];
    let batch: Vec<u8> = batch.into_iter().flat_map(Message::finish).collect();

    let socket = netlink::socket(Some(family::NETFILTER))?;
    send(&socket, &batch, SendFlags::empty())?;
    answers(&socket)?;
    Ok(socket)
}

/// A message of nfnetlink: struct `nlmsghdr`, struct `nfgenmsg`. All but the ends of a batch are to be acknowledged.
fn message(kind: u16, family: u8, resource: u16) -> Message {
    let create = (libc::NLM_F_CREATE | libc::NLM_F_ACK) as u16;
    let flags = if matches!(kind, BATCH_BEGIN | BATCH_END) { 0 } else { create };
    let [high, low] = resource.to_be_bytes();
    Message::with_body(kind, flags, &[family, 0, high, low])
}

/// The first error among the kernel's answers. The kernel answers within the call that sends, so nothing is waited for.
fn answers(socket: &OwnedFd) -> io::Result<()> {
    let mut answer = vec![0; 8 << 10];
    loop {
        let received = match recv(socket, &mut answer[..], RecvFlags::DONTWAIT) {
            Ok((received, _)) => received,
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match Message::first_error(&answer[..received]) {
            Some(errno) => return Err(io::Error::from_raw_os_error(errno)),
            None if received == 0 => return Ok(()),
            None => {}
        }
    }
}
