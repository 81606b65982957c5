//! The control socket: lines of text from and to other programs of the same user, through a Unix socket.
//!
//! A client writes one line and reads one line. Their meaning is known to the [`Operator`] at the
//! one end and to the client at the other. The mode of the socket is 0600 from its first moment, so
//! only its owner and root can connect.
//!
//! One thread has the socket, its clients and the operator. A client that says nothing, or a byte
//! at a time, holds up no other client, no signal and not the end: [`MOST`] clients are heard at
//! once, each has five seconds for its request and five for taking the answer, and for one more the
//! oldest that has made no request is closed. Requests are answered in the order in which they are
//! complete.

mod request;

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::{net, select, time};

use crate::clients::{self, Attended, Awaited, Clients, PATIENCE};
use crate::error::{Context, Error};
use crate::stop::Stop;

pub use request::{Replacement, Request, Verb};

/// Clients at a time.
pub const MOST: usize = 16;

/// The longest request, in bytes: one with the text of a policy.
pub const LONGEST: u64 = 256 << 10;

/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 64 << 20;

/// Time in which a living program must accept a connection to its socket.
const PROBE: Duration = Duration::from_millis(500);

/// Between looks at whether a program has ended.
const POLL: Duration = Duration::from_millis(10);

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 64;

/// A socket that programs connect to. Dropping it removes the socket.
#[derive(Debug)]
pub struct Listener {
    runtime: Runtime,
    open: Open,
    _name: SocketName,
}

/// Where requests come in: from clients of the socket, and from within the process.
#[derive(Debug)]
struct Open {
    listener: UnixListener,
    asker: Asker,
    asked: mpsc::Receiver<Asked>,
}

/// Asks the operator of a [`Listener`] from within the process. Any number of threads may have one.
#[derive(Clone, Debug)]
pub struct Asker(mpsc::Sender<Asked>);

/// A request, and the way for its answer.
#[derive(Debug)]
struct Asked {
    request: String,
    answer: oneshot::Sender<String>,
}

impl Asker {
    /// The operator's answer; `None` when nobody serves any more.
    pub async fn ask(&self, request: String) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { request, answer }).await.ok()?;
        answered.await.ok()
    }
}

impl Listener {
    /// Opens the socket, its folder included. A socket that a killed program left behind is replaced.
    ///
    /// # Errors
    /// A program that lives answers there, the path is a file of another kind, or it cannot be written.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let what = || format!("opening the control socket {}", path.display());
        // A queue of clients that is full belongs to a program that lives, too. A signal may end the wait for it.
        let is_full = |error: io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
        if connect(path, PROBE).map_or_else(is_full, |_| true) {
            return Err(Error::InUse { path: path.display().to_string() });
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).context(what)?;
        }
        if fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket()) {
            fs::remove_file(path).context(what)?;
        }
        let listener = listen(path).context(what)?;
        let name = SocketName::of(path).context(what)?;
        let (sender, asked) = mpsc::channel(1);
        let open = Open { listener, asker: Asker(sender), asked };
        Ok(Self { runtime: clients::runtime().context(what)?, open, _name: name })
    }

    /// For the threads of this process that ask the operator too.
    #[must_use]
    pub fn asker(&self) -> Asker {
        self.open.asker.clone()
    }

    /// Answers requests, one after another, until `end`. A `hang_up` becomes a request of its own,
    /// whose answer nobody gets.
    ///
    /// # Errors
    /// The kernel has no memory to wait for the socket.
    pub fn serve(&mut self, end: &Stop, hang_up: &Stop, operator: &mut dyn Operator) -> Result<(), Error> {
        let served = async {
            let mut clients = Clients::at_most(MOST);
            let served = serve(&mut self.open, &mut clients, (end, hang_up), operator).await;
            // Pending and later requests get an error. Answers that exist already arrive.
            self.open.asked.close();
            while self.open.asked.try_recv().is_ok() {}
            clients.finish().await;
            served
        };
        self.runtime.block_on(served).context(|| "waiting at the control socket")
    }
}

/// Until `end`.
async fn serve(
    open: &mut Open,
    clients: &mut Clients,
    (end, hang_up): (&Stop, &Stop),
    operator: &mut dyn Operator,
) -> io::Result<()> {
    let Open { listener, asker, asked } = open;
    let (end, signal) = (Awaited::new(end)?, Awaited::new(hang_up)?);
    let listener = net::UnixListener::from_std(listener.try_clone()?)?;
    loop {
        let may_come = clients.may_come();
        select! {
            biased;
            ended = end.come() => return ended,
            hung_up = signal.come() => {
                hung_up?;
                signal.rearm()?;
                operator.hang_up();
            }
            Some(Asked { request, answer }) = asked.recv() => {
                // The asker may be gone.
                let _ = answer.send(operator.answer(request.trim_end()));
            }
            () = clients.one_gone() => {}
            (stream, _) = clients::accepted(async || listener.accept().await), if may_come => {
                let asker = asker.clone();
                clients.take(|attended| async move {
                    // A client that sends no line, or reads none, gets none.
                    let _ = converse(stream, &attended, &asker).await;
                });
            }
        }
    }
}

/// One client: a line for a line.
async fn converse(mut stream: net::UnixStream, attended: &Attended, asker: &Asker) -> io::Result<()> {
    let mut line = Vec::new();
    let mut reader = BufReader::new((&mut stream).take(LONGEST));
    time::timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await??;
    if line.is_empty() {
        return Ok(());
    }
    attended.set();
    // A line that is not UTF-8 is no request; the answer says so.
    let request = String::from_utf8_lossy(&line).into_owned();
    if let Some(answer) = asker.ask(request).await {
        time::timeout(PATIENCE, stream.write_all(format!("{answer}\n").as_bytes())).await??;
    }
    Ok(())
}

/// Answers requests.
pub trait Operator {
    /// A line for a line.
    fn answer(&mut self, request: &str) -> String;

    /// SIGHUP came: what daemons take for the wish to read their files again.
    fn hang_up(&mut self);
}

/// Binds a socket whose mode is 0600 when its name appears: on Linux the name gets the mode of the
/// socket itself, less the umask.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = File::from(OwnedFd::from(Socket::new(Domain::UNIX, Type::STREAM, None)?));
    socket.set_permissions(Permissions::from_mode(0o600))?;
    let socket = Socket::from(OwnedFd::from(socket));
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(OwnedFd::from(socket).into())
}

/// The name of a socket, which goes with this value; what another program has put there meanwhile stays.
#[derive(Debug)]
struct SocketName {
    path: PathBuf,
    inode: (u64, u64),
}

impl SocketName {
    fn of(path: &Path) -> io::Result<Self> {
        // The folder may be another one by the time of removal, where the path is relative.
        let path = std::path::absolute(path)?;
        let about = fs::symlink_metadata(&path)?;
        Ok(Self { path, inode: (about.dev(), about.ino()) })
    }
}

impl Drop for SocketName {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|about| (about.dev(), about.ino()) == self.inode) {
            // It may be gone by now.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Asks the program that listens at `path`, and returns the answer.
///
/// # Errors
/// There is none, or it does not answer.
pub fn ask(path: &Path, request: &str) -> Result<String, Error> {
    let no_answer = |source| Error::NoAnswer { path: path.display().to_string(), source };
    let stream = connect(path, PATIENCE).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::system(format!("asking at {}", path.display()), source),
        _ => no_answer(source),
    })?;
    converse_with(&stream, request).map_err(no_answer)
}

/// Waits until no program answers at this socket, for at most `patience`; false if one does still.
#[must_use]
pub fn wait_for_end(path: &Path, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while connect(path, PROBE).is_ok() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// Waits for at most `patience` where the queue of the one who listens is full.
fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(patience))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}

fn converse_with(mut stream: &UnixStream, request: &str) -> io::Result<String> {
    stream.set_write_timeout(Some(PATIENCE))?;
    // Time for the request ahead to be done as well.
    let deadline = Instant::now() + 2 * PATIENCE;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), [0; 1 << 14]);
    while answer.last() != Some(&b'\n') {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&piece[..count]);
        if answer.len() > LONGEST_ANSWER || Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    answer.pop();
    String::from_utf8(answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests;
