//! The rings of AF_XDP: entries that pass between this program and the kernel without a system call. linux/if_xdp.h.
//!
//! The rings are own code, for the reason that docs/design.md gives: types say which chunk the kernel has.
//!
//! A ring has one producer and one consumer. Each side counts what it has done, in a counter of 32 bits that wraps, and
//! publishes that count for the other side. [`Producer`] is this program's end of a ring to the kernel, [`Consumer`]
//! its end of a ring from the kernel.
//!
//! Each end keeps its own count to itself and never reads it back from the shared memory. A count never goes back: the
//! kernel keeps a copy of the producer's count, and a smaller one would look to it like four billion new entries. The
//! other side may publish any count: an end neither hands out nor overwrites more entries than the ring has.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::XdpRingOffset;

use super::mapping::Mapping;

/// Entries of each ring, a power of two.
pub(super) const ENTRIES: u32 = 4096;

/// An entry of a ring: an integer or a struct of integers, so every pattern of bits is a value.
pub(super) trait Entry: Copy {}

impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// The memory of a ring.
#[derive(Debug)]
struct Shared<T> {
    mapping: Mapping,
    /// Offsets into the mapping.
    producer: usize,
    consumer: usize,
    entries: usize,
    _entry: PhantomData<T>,
}

impl<T: Entry> Shared<T> {
    /// Maps the ring that `page` names. Fails where the kernel's offsets do not fit the mapping.
    fn map(socket: BorrowedFd<'_>, offsets: &XdpRingOffset, page: libc::off_t) -> io::Result<Self> {
        let len = offsets.desc as usize + ENTRIES as usize * size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = Mapping::new(len, flags, socket.as_raw_fd(), page)?;
        let (producer, consumer, entries) =
            (offsets.producer as usize, offsets.consumer as usize, offsets.desc as usize);
        let fits = |at: usize| at.is_multiple_of(align_of::<AtomicU32>()) && at + size_of::<AtomicU32>() <= len;
        if !fits(producer) || !fits(consumer) || !entries.is_multiple_of(align_of::<T>()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { mapping, producer, consumer, entries, _entry: PhantomData })
    }

    fn count(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `map` has checked that an aligned integer lies at this offset of the mapping, which lives as long as
        // `self`. Both sides access it as an atomic.
        unsafe { self.mapping.at(offset).cast().as_ref() }
    }

    fn slot(&self, count: u32) -> NonNull<T> {
        // SAFETY: the remainder is below the number of entries, all of which lie in the mapping.
        unsafe { self.mapping.at(self.entries).cast().add((count % ENTRIES) as usize) }
    }
}

/// This program's end of a ring that the kernel empties.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Shared<T>,
    produced: u32,
}

impl<T: Entry> Producer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, offsets: &XdpRingOffset, page: libc::off_t) -> io::Result<Self> {
        Ok(Self { ring: Shared::map(socket, offsets, page)?, produced: 0 })
    }

    /// The count of entries that were pushed since the ring was mapped, modulo 2^32.
    pub(super) fn produced(&self) -> u32 {
        self.produced
    }

    /// The count of entries that the kernel says it has taken, modulo 2^32.
    pub(super) fn taken(&self) -> u32 {
        self.ring.count(self.ring.consumer).load(Ordering::Acquire)
    }

    /// Puts an entry into the ring; hands it back where the ring is full. The kernel sees it at the next
    /// [`Producer::publish`].
    pub(super) fn push(&mut self, entry: T) -> Result<(), T> {
        if self.produced.wrapping_sub(self.taken()) >= ENTRIES {
            return Err(entry);
        }
        self.write(self.produced, entry);
        self.produced = self.produced.wrapping_add(1);
        Ok(())
    }

    /// Shows the kernel all that was pushed.
    pub(super) fn publish(&mut self) {
        self.ring.count(self.ring.producer).store(self.produced, Ordering::Release);
    }

    /// Replaces the last `count` entries, oldest first, by what `with` makes of them; at most as many as the ring has.
    pub(super) fn replace_last(&mut self, count: u32, mut with: impl FnMut(T) -> T) {
        for back in (1..=count.min(ENTRIES)).rev() {
            let at = self.produced.wrapping_sub(back);
            // SAFETY: within the ring, and every pattern of bits is an entry.
            let entry = unsafe { self.ring.slot(at).as_ptr().read_volatile() };
            self.write(at, with(entry));
        }
    }

    fn write(&mut self, at: u32, entry: T) {
        // SAFETY: within the ring. Volatile, since the kernel may read it at any time.
        unsafe { self.ring.slot(at).as_ptr().write_volatile(entry) };
    }
}

/// This program's end of a ring that the kernel fills.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Shared<T>,
    consumed: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, offsets: &XdpRingOffset, page: libc::off_t) -> io::Result<Self> {
        Ok(Self { ring: Shared::map(socket, offsets, page)?, consumed: 0 })
    }

    /// The entries that wait, at most `limit`. They are given back to the kernel when the batch is dropped.
    pub(super) fn batch(&mut self, limit: usize) -> Batch<'_, T> {
        let produced = self.ring.count(self.ring.producer).load(Ordering::Acquire);
        let waiting = produced.wrapping_sub(self.consumed).min(ENTRIES);
        let len = waiting.min(u32::try_from(limit).unwrap_or(u32::MAX));
        Batch { consumer: self, len }
    }
}

/// Entries that the kernel has filled and that it does not touch while this lives.
#[derive(Debug)]
pub(super) struct Batch<'a, T: Entry> {
    consumer: &'a mut Consumer<T>,
    len: u32,
}

impl<T: Entry> Batch<'_, T> {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The entry of this index; `None` from [`Batch::len`] on.
    pub(super) fn get(&self, index: usize) -> Option<T> {
        let index = u32::try_from(index).ok().filter(|index| *index < self.len)?;
        let slot = self.consumer.ring.slot(self.consumer.consumed.wrapping_add(index));
        // SAFETY: within the ring, and every pattern of bits is an entry.
        Some(unsafe { slot.as_ptr().read_volatile() })
    }
}

impl<T: Entry> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        let Consumer { ring, consumed } = &mut *self.consumer;
        *consumed = consumed.wrapping_add(self.len);
        ring.count(ring.consumer).store(*consumed, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in memory of this process, whose other end the test plays: counters at 0 and 64, entries from 128.
    fn shared() -> Shared<u64> {
        let len = 128 + ENTRIES as usize * 8;
        let mapping = Mapping::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0).unwrap();
        Shared { mapping, producer: 0, consumer: 64, entries: 128, _entry: PhantomData }
    }

    #[test]
    fn a_full_ring_takes_no_entry_until_the_kernel_has_taken_one() {
        let start = u32::MAX - 5;
        let mut producer = Producer { ring: shared(), produced: start };
        producer.ring.count(64).store(start, Ordering::Relaxed);
        for entry in 0..u64::from(ENTRIES) {
            assert_eq!(producer.push(entry), Ok(()));
        }
        assert_eq!(producer.push(7), Err(7));
        producer.ring.count(64).store(start.wrapping_add(1), Ordering::Relaxed);
        assert_eq!((producer.push(7), producer.push(8)), (Ok(()), Err(8)));
        // The kernel sees nothing until it is shown.
        assert_eq!(producer.ring.count(0).load(Ordering::Relaxed), 0);
        producer.publish();
        assert_eq!(producer.ring.count(0).load(Ordering::Relaxed), start.wrapping_add(ENTRIES + 1));
    }

    /// A consumer's count beyond the producer's, as a kernel that misunderstands the ring would publish.
    #[test]
    fn a_count_that_cannot_be_lets_no_end_run_beyond_the_ring() {
        let mut producer = Producer { ring: shared(), produced: 0 };
        producer.ring.count(64).store(1, Ordering::Relaxed);
        assert_eq!(producer.push(1), Err(1), "four billion are pending");
        let mut consumer = Consumer { ring: shared(), consumed: 10 };
        consumer.ring.count(0).store(9, Ordering::Relaxed);
        assert_eq!(consumer.batch(usize::MAX).len(), ENTRIES as usize);
    }

    #[test]
    fn a_batch_is_given_back_when_it_is_dropped_and_no_further() {
        let mut consumer = Consumer { ring: shared(), consumed: 0 };
        for (index, entry) in [(0, 10), (1, 11), (2, 12)] {
            // SAFETY: within the ring.
            unsafe { consumer.ring.slot(index).as_ptr().write(entry) };
        }
        consumer.ring.count(0).store(3, Ordering::Relaxed);
        let batch = consumer.batch(2);
        assert_eq!((batch.get(0), batch.get(1), batch.get(2)), (Some(10), Some(11), None));
        drop(batch);
        assert_eq!(consumer.ring.count(64).load(Ordering::Relaxed), 2);
        assert_eq!(consumer.batch(64).get(0), Some(12));
        assert_eq!(consumer.batch(64).len(), 0);
    }

    #[test]
    fn the_last_entries_are_replaced_oldest_first() {
        let mut producer = Producer { ring: shared(), produced: 0 };
        (0..5).for_each(|entry| producer.push(entry).unwrap());
        let mut seen = Vec::new();
        producer.replace_last(3, |entry| {
            seen.push(entry);
            entry + 100
        });
        assert_eq!(seen, [2, 3, 4]);
        let entries = [0, 1, 2, 3, 4].map(|at| {
            // SAFETY: within the ring.
            unsafe { producer.ring.slot(at).as_ptr().read() }
        });
        assert_eq!(entries, [0, 1, 102, 103, 104]);
    }
}
