//! Streams of load: the data that a server sends and takes over TCP.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::{select, time};

use crate::holes::Payload;
use crate::own::data;
use crate::own::wire::Answer;
use crate::train::Way;

use super::answers::{answer, refusal};
use super::counters::Counted;
use super::load::Load;
use super::locked::locked;
use super::session::{Session, Shared};

/// Most bytes of one write or read.
const BLOCK: usize = 64 << 10;

/// Longest wait for bytes in order, after which bytes beyond a hole are counted.
const LOOKING: Duration = Duration::from_millis(50);

/// One stream until the load ends.
pub(super) async fn stream(from: OwnedReadHalf, mut to: OwnedWriteHalf, way: Way, session: &Session, shared: &Shared) {
    let load = locked(&session.load).clone();
    let Some(load) = load.filter(|load| load.join(way)) else {
        shared.counters.add(Counted::Refused, 1);
        let _ = answer(&mut to, &refusal("no load has this stream")).await;
        return;
    };
    // The kernel drops the data that it holds when the load ends, so that the line is free at once.
    let socket = SockRef::from(from.as_ref());
    let _ = socket.set_linger(Some(Duration::ZERO));
    if let Some(name) = &load.congestion {
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    if way == Way::Down {
        load.sending_with.note(from.as_ref());
    }
    if answer(&mut to, &Answer::Ready).await.is_err() {
        return;
    }
    load.accept();
    let _ = data::receive_as_a_transfer(&SockRef::from(from.as_ref()));
    let mut stop = load.stop.subscribe();
    let moving = async {
        match way {
            Way::Down => {
                load.all_accepted().await;
                send(to, &load, shared).await
            }
            Way::Up => receive(from, &load, shared).await,
        }
    };
    select! {
        _ = stop.wait_for(|stop| *stop) => {}
        // The load's time is limited by its control connection; a stream without one ends here.
        _ = time::timeout(shared.limits.load, moving) => {}
    }
}

async fn send(mut to: OwnedWriteHalf, load: &Load, shared: &Shared) -> io::Result<()> {
    let block = data::block(load.sending.block(BLOCK));
    loop {
        let sent = to.write(&block).await?;
        shared.counters.add(Counted::SentBytes, sent as u64);
        pause(load.sending.wait(sent)).await;
    }
}

async fn receive(mut from: OwnedReadHalf, load: &Load, shared: &Shared) -> io::Result<()> {
    let (mut buffer, mut payload) = (vec![0; load.receiving.block(BLOCK)], Payload::default());
    loop {
        let received = match time::timeout(LOOKING, from.read(&mut buffer)).await {
            Ok(Ok(0)) => return Ok(()),
            Ok(received) => received?,
            Err(_) => 0,
        };
        load.received.fetch_add(payload.take(from.as_ref(), received), Ordering::Relaxed);
        shared.counters.add(Counted::ReceivedBytes, received as u64);
        pause(load.receiving.wait(received)).await;
    }
}

/// Waits, or lets other streams go on.
async fn pause(wait: Duration) {
    match wait.is_zero() {
        true => tokio::task::consume_budget().await,
        false => time::sleep(wait).await,
    }
}
