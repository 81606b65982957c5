//! UDP echo requests of stated lengths at stated times, and the largest that passes whole.
//!
//! The server answers each with a datagram of its length. The socket of a session sends no fragments.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use lastmile_units as units;
use lastmile_units::ByteCount;
use rustix::net::sockopt;

use crate::clock;
use crate::error::Error;
use crate::load::Stop;
use crate::probe::exchange;
use crate::train::{Departure, Echo};

use super::Client;
use super::wire::{Datagram, Hex, LARGEST_TRAIN, LEAST_ECHO};

/// The longest wait for echoes after the last request, and for one of a length that may not pass.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_OF_A_LENGTH: Duration = Duration::from_millis(600);

/// Attempts with each length.
const ATTEMPTS: u32 = 3;

/// The UDP of a session.
#[derive(Debug)]
pub(super) struct SizedEchoes<'a> {
    socket: Arc<UdpSocket>,
    session: Hex<8>,
    /// Bytes of an IP packet before its UDP payload.
    headers: u64,
    /// Number of the next request.
    next: u64,
    stop: &'a Stop,
}

impl<'a> SizedEchoes<'a> {
    /// `None` where UDP is blocked.
    pub(super) fn of(client: &Client, stop: &'a Stop) -> Option<Self> {
        let headers = if client.address.is_ipv6() { 48 } else { 28 };
        // Numbers of the session's probes begin at zero.
        Some(Self {
            socket: Arc::clone(client.socket.as_ref()?),
            session: client.session,
            headers,
            next: 1 << 32,
            stop,
        })
    }

    /// Bytes of an IP packet before its UDP payload.
    pub(super) fn headers(&self) -> u64 {
        self.headers
    }

    /// Sends echo requests, and returns their round trips without the server's time. A request too long for the device
    /// is one without an answer, and one too short for the protocol has its least length.
    pub(super) fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        let echoes = self.exchange(requests, PATIENCE)?;
        if !requests.is_empty() && echoes.iter().all(|echo| echo.round_trip.is_none()) {
            return Err(Error::Unsupported(format!("none of {} UDP echo requests was answered", requests.len())));
        }
        Ok(echoes)
    }

    fn exchange(&mut self, requests: &[Departure], patience: Duration) -> Result<Vec<Echo>, Error> {
        let first = self.next;
        self.next += requests.len() as u64;
        let start_ns = clock::now_ns();
        let mut echoes: Vec<Echo> = Vec::with_capacity(requests.len());
        let mut buffer = vec![0; usize::from(u16::MAX)];
        for request in requests {
            let due_ns = start_ns.saturating_add(request.at.as_ns());
            while clock::now_ns() < due_ns {
                self.receive(first, &mut echoes, due_ns)?;
            }
            let payload = request.ip_len.as_u64().saturating_sub(self.headers).max(LEAST_ECHO as u64);
            let sent_ns = clock::now_ns();
            let datagram = &mut buffer[..usize::from(u16::try_from(payload).unwrap_or(u16::MAX))];
            Datagram::Request { number: first + echoes.len() as u64, sent_ns }.write(self.session, datagram);
            // A datagram that the device does not take is lost, as one further on would be.
            let _ = self.socket.send(datagram);
            let sent = units::Duration::from_ns(sent_ns.saturating_sub(start_ns));
            echoes.push(Echo { ip_len: ByteCount::new(payload + self.headers), sent, round_trip: None });
        }
        let end_ns = clock::now_ns() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2);
        while clock::now_ns() < end_ns && echoes.iter().any(|echo| echo.round_trip.is_none()) {
            self.receive(first, &mut echoes, end_ns)?;
        }
        Ok(echoes)
    }

    /// Takes an answer, if one comes by `until_ns`.
    fn receive(&self, first: u64, echoes: &mut [Echo], until_ns: u64) -> Result<(), Error> {
        self.stop.check()?;
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::now_ns()));
        let limit = left.clamp(Duration::from_micros(1), Duration::from_millis(20));
        let mut buffer = [0; 2048];
        let received = exchange::receive(&self.socket, &mut buffer, limit).map_err(Error::io("UDP echo requests"))?;
        let Some((len, arrived_ns)) = received else { return Ok(()) };
        if let Some((session, Datagram::Reply { number, sent_ns, received_ns, replied_ns, .. })) =
            Datagram::read(&buffer[..len])
            && session == self.session
            && let Some(index) = number.checked_sub(first).and_then(|index| usize::try_from(index).ok())
            && let Some(echo) = echoes.get_mut(index)
        {
            let took_ns = arrived_ns.saturating_sub(sent_ns).saturating_sub(replied_ns.saturating_sub(received_ns));
            echo.round_trip.get_or_insert(units::Duration::from_ns(took_ns));
        }
        Ok(())
    }

    /// The largest packet without fragmentation, at most that of a train: echo requests of half the remaining lengths
    /// (RFC 8899), so that routers that drop long packets without a message are found. `None` where no request is
    /// answered.
    pub(super) fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        let is_v6 = self.headers == 48;
        let known = if is_v6 { sockopt::ipv6_mtu(&self.socket) } else { sockopt::ip_mtu(&self.socket) };
        let device = u64::from(known.map_err(|error| Error::io("the MTU of the path")(error.into()))?);
        let mut high = device.min(u64::from(LARGEST_TRAIN) + self.headers);
        let mut low = if is_v6 { 1280 } else { 576 }.min(high);
        if self.passes(high)? {
            return Ok(Some(ByteCount::new(high)));
        }
        if !self.passes(low)? {
            return Ok(None);
        }
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.passes(middle)? { low = middle } else { high = middle }
        }
        Ok(Some(ByteCount::new(low)))
    }

    /// Whether a request of this length is answered.
    fn passes(&mut self, ip_len: u64) -> Result<bool, Error> {
        let request = Departure { at: units::Duration::ZERO, ip_len: ByteCount::new(ip_len) };
        for _ in 0..ATTEMPTS {
            if self.exchange(&[request], PATIENCE_OF_A_LENGTH)?[0].round_trip.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
