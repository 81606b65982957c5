//! A control socket, its clients and those who do not behave.

use std::thread;

use tempfile::TempDir;

use super::*;
use crate::stop::StopHandle;

/// A folder that is not there yet, in one that is removed when this is dropped.
struct Folder(PathBuf, #[expect(dead_code, reason = "removes the folder")] TempDir);

impl Folder {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self(temporary.path().join("run"), temporary)
    }
}

/// Repeats what it hears, and ends at "stop".
struct Parrot(StopHandle, usize);

impl Operator for Parrot {
    fn answer(&mut self, request: &str) -> String {
        if request == "stop" {
            self.0.stop();
        }
        format!("heard {request} after {} signals", self.1)
    }

    fn hang_up(&mut self) {
        self.1 += 1;
    }
}

#[test]
fn each_request_is_answered_until_the_end() {
    let folder = Folder::new();
    let path = folder.0.join("socket");
    let mut listener = Listener::bind(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (end, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
    let (mut parrot, signal) = (Parrot(end.handle().unwrap(), 0), hang_up.handle().unwrap());
    let serving = thread::spawn(move || listener.serve(&end, &hang_up, &mut parrot).unwrap());
    assert_eq!(ask(&path, "status").unwrap(), "heard status after 0 signals");
    signal.stop();
    // A client that sends nothing keeps nobody waiting.
    drop(UnixStream::connect(&path).unwrap());
    assert!(matches!(Listener::bind(&path), Err(Error::InUse { .. })));
    assert_eq!(ask(&path, "stop").unwrap(), "heard stop after 1 signals");
    serving.join().unwrap();
    assert!(!path.exists());
    assert!(matches!(ask(&path, "status"), Err(Error::NoAnswer { .. })));
}

#[test]
fn what_a_killed_program_left_is_replaced_and_a_file_is_not() {
    let folder = Folder::new();
    let path = folder.0.join("socket");
    fs::create_dir_all(&folder.0).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Listener::bind(&path).unwrap());
    fs::write(&path, "mine").unwrap();
    assert!(Listener::bind(&path).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

/// A parrot at a socket of its own, until the test ends.
struct Aviary {
    folder: Folder,
    end: StopHandle,
    signal: StopHandle,
    thread: Option<thread::JoinHandle<()>>,
}

impl Aviary {
    fn new() -> Self {
        let folder = Folder::new();
        let mut listener = Listener::bind(&folder.0.join("socket")).unwrap();
        let (end, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
        let (mut parrot, handle) = (Parrot(end.handle().unwrap(), 0), end.handle().unwrap());
        let signal = hang_up.handle().unwrap();
        let thread = thread::spawn(move || listener.serve(&end, &hang_up, &mut parrot).unwrap());
        Self { folder, end: handle, signal, thread: Some(thread) }
    }

    fn path(&self) -> PathBuf {
        self.folder.0.join("socket")
    }

    /// A client that has said this.
    fn client(&self, said: &[u8]) -> UnixStream {
        let mut stream = UnixStream::connect(self.path()).unwrap();
        // It may have been closed for another.
        let _ = stream.write_all(said);
        stream
    }
}

impl Drop for Aviary {
    fn drop(&mut self) {
        self.end.stop();
        assert!(self.thread.take().unwrap().join().is_ok() || thread::panicking());
    }
}

/// Nothing waits for as long as a client may take.
#[test]
fn those_who_say_nothing_or_drip_hold_up_neither_others_nor_signals_nor_the_end() {
    let aviary = Aviary::new();
    let began = Instant::now();
    let silent: Vec<UnixStream> = (0..5 * MOST).map(|_| aviary.client(b"")).collect();
    let mut dripping: Vec<UnixStream> = (0..MOST).map(|_| aviary.client(b"{")).collect();
    assert_eq!(ask(&aviary.path(), "one").unwrap(), "heard one after 0 signals");
    aviary.signal.stop();
    for client in &mut dripping {
        let _ = client.write(b" ");
    }
    assert_eq!(ask(&aviary.path(), "two").unwrap(), "heard two after 1 signals");
    drop(aviary);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    drop(silent);
}

#[test]
fn a_request_has_a_deadline_as_a_whole() {
    let aviary = Aviary::new();
    let mut client = aviary.client(b"{");
    let began = Instant::now();
    // A byte every 50 ms: each read of it succeeds at once.
    while client.write(b" ").is_ok() {
        assert!(began.elapsed() < 2 * PATIENCE, "it is still heard");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(began.elapsed() > PATIENCE / 2, "{:?}", began.elapsed());
}

#[test]
fn what_is_no_text_or_too_long_is_answered_and_nothing_is_not() {
    let aviary = Aviary::new();
    let heard = |said: &[u8]| {
        let mut answer = Vec::new();
        let mut client = aviary.client(said);
        client.shutdown(std::net::Shutdown::Write).unwrap();
        // An unread rest of a long line makes the end a reset.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(heard(b"\xff\n"), "heard \u{fffd} after 0 signals\n");
    assert_eq!(heard(b"no end of line"), "heard no end of line after 0 signals\n");
    assert!(heard(&vec![b'x'; 2 * LONGEST as usize]).len() <= LONGEST as usize + 100);
    assert_eq!(heard(b""), "");
    assert_eq!(ask(&aviary.path(), "after all").unwrap(), "heard after all after 0 signals");
}

#[test]
fn the_operator_is_asked_from_within_and_says_so_when_nobody_serves() {
    let folder = Folder::new();
    let mut listener = Listener::bind(&folder.0.join("socket")).unwrap();
    let (end, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
    let (mut parrot, asker) = (Parrot(end.handle().unwrap(), 0), listener.asker());
    let runtime = clients::runtime().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| listener.serve(&end, &hang_up, &mut parrot).unwrap());
        assert_eq!(runtime.block_on(asker.ask("me".to_owned())).unwrap(), "heard me after 0 signals");
        assert_eq!(runtime.block_on(asker.ask("stop".to_owned())).unwrap(), "heard stop after 0 signals");
    });
    assert_eq!(runtime.block_on(asker.ask("gone".to_owned())), None);
}

/// The name of a socket gets the socket's mode, less the umask, when it is bound: strace(1) would
/// see no chmod(2) after it.
#[test]
fn a_socket_never_has_open_rights() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("socket");
    let [done, seen] = [(); 2].map(|()| std::sync::atomic::AtomicBool::new(false));
    let modes = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut modes = std::collections::BTreeSet::new();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok(about) = fs::symlink_metadata(&path) {
                    modes.insert(about.mode() & 0o777);
                    seen.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            }
            modes
        });
        // On a busy machine the watching thread may start late.
        let begin = Instant::now();
        let mut bound = 0;
        while bound < 300 || (!seen.load(std::sync::atomic::Ordering::Relaxed) && begin.elapsed().as_secs() < 60) {
            drop(Listener::bind(&path).unwrap());
            bound += 1;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert_eq!(modes.into_iter().collect::<Vec<_>>(), [0o600]);
}

#[test]
fn the_name_of_another_socket_stays() {
    let folder = Folder::new();
    let path = folder.0.join("socket");
    let listener = Listener::bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());
}

/// connect(2) waits where the queue of the one who listens is full.
#[test]
fn a_program_that_does_not_accept_is_alive_and_does_not_answer() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("socket");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(1).unwrap();
    let queued: Vec<Socket> = (0..2)
        .map(|_| {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            client.connect(&SockAddr::unix(&path).unwrap()).unwrap();
            client
        })
        .collect();
    let began = Instant::now();
    assert!(matches!(Listener::bind(&path), Err(Error::InUse { .. })));
    assert!(matches!(ask(&path, "status"), Err(Error::NoAnswer { .. })));
    assert!(began.elapsed() < 3 * PATIENCE, "{:?}", began.elapsed());
    drop(queued);
}
