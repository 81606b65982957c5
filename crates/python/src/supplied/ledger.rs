//! The packets that a queue holds. Every packet that arrives is returned once, dropped once with a reason, or held.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile_packet::Meta;
use lastmile_queueing::{Backlog, DropReason};
use lastmile_units::{ByteCount, PacketCount};

/// Where a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Held,
    Departed,
    Dropped,
}

/// The account of one queue, which it shares with its packets.
#[derive(Clone)]
pub(super) struct Ledger(Arc<Mutex<Account>>);

#[derive(Default)]
struct Account {
    /// A method of the queue runs.
    open: bool,
    /// The queue drops pure ACKs that newer ones replace.
    thins_acks: bool,
    /// The run is over.
    closed: bool,
    packets: u64,
    bytes: u64,
    /// Dropped by the method that runs.
    dropped: Vec<(Meta, DropReason)>,
    /// The number of a packet that no object of Python refers to any more, though the queue held it.
    lost: Option<u64>,
}

impl Ledger {
    /// The account of an empty queue.
    pub(super) fn new(thins_acks: bool) -> Self {
        Self(Arc::new(Mutex::new(Account { thins_acks, ..Account::default() })))
    }

    pub(super) fn thins_acks(&self) -> bool {
        self.account().thins_acks
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn arrived(&self, meta: &Meta) {
        let mut account = self.account();
        account.packets += 1;
        account.bytes += u64::from(meta.ip_len);
    }

    pub(super) fn left(&self, meta: &Meta) {
        let mut account = self.account();
        account.packets -= 1;
        account.bytes -= u64::from(meta.ip_len);
    }

    /// A packet is dropped. False: no method of its queue runs.
    pub(super) fn drop(&self, meta: Meta, reason: DropReason) -> bool {
        let mut account = self.account();
        if !account.open {
            return false;
        }
        account.packets -= 1;
        account.bytes -= u64::from(meta.ip_len);
        account.dropped.push((meta, reason));
        true
    }

    /// A packet that the queue held has gone.
    pub(super) fn lose(&self, number: u64) {
        let mut account = self.account();
        if !account.closed {
            account.lost.get_or_insert(number);
        }
    }

    /// A method of the queue begins.
    pub(super) fn open(&self) {
        self.account().open = true;
    }

    /// The method is over: what it dropped, and the number of a packet that it lost.
    pub(super) fn close(&self) -> (Vec<(Meta, DropReason)>, Option<u64>) {
        let mut account = self.account();
        account.open = false;
        (std::mem::take(&mut account.dropped), account.lost)
    }

    /// The run is over.
    pub(super) fn end(&self) {
        self.account().closed = true;
    }

    pub(super) fn backlog(&self) -> Backlog {
        let account = self.account();
        Backlog { packets: PacketCount::new(account.packets), bytes: ByteCount::new(account.bytes) }
    }
}
