//! The control socket: lines of text from and to other programs of the same user, through a Unix socket.
//!
//! Whoever connects writes one line and reads one line. What they say is for the two ends to know; here it is moved. The socket's mode is
//! 0600, so only its owner and root can connect.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Error};
use crate::stop::Stop;
use crate::sys::wait;

/// The longest request.
const LONGEST: u64 = 64 << 10;

/// How long the other end may take for its line. Longer, and others would wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that programs connect to. Dropping it removes the socket.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Opens the socket, its folder included. A socket that a killed program left behind is replaced.
    ///
    /// # Errors
    /// A program that lives answers there, the path is a file of another kind, or it cannot be written.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let what = || format!("opening the control socket {}", path.display());
        if UnixStream::connect(path).is_ok() {
            return Err(Error::InUse { path: path.display().to_string() });
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).context(what)?;
        }
        if fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket()) {
            fs::remove_file(path).context(what)?;
        }
        let listener = UnixListener::bind(path).context(what)?;
        let listener = Self { listener, path: path.to_owned() };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).context(what)?;
        Ok(listener)
    }

    /// Answers requests, one after another, until `end`. A `hang_up` becomes a request of its own, whose answer nobody gets.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn serve(&self, end: &Stop, hang_up: &Stop, operator: &mut dyn Operator) -> Result<(), Error> {
        let what = || "waiting at the control socket";
        loop {
            let watched = [Some(end.as_fd()), Some(hang_up.as_fd()), Some(self.listener.as_fd())];
            let [ended, hung_up, connected] = wait::readable(watched, None).context(what)?;
            if ended {
                return Ok(());
            }
            if hung_up {
                hang_up.rearm().context(what)?;
                operator.hang_up();
            }
            if connected {
                let (stream, _) = self.listener.accept().context(what)?;
                // Whoever writes no line, or reads none, gets none.
                if let Ok(request) = receive(&stream) {
                    let _ = send(&stream, &operator.answer(request.trim_end()));
                }
            }
        }
    }
}

/// Who answers.
pub trait Operator {
    /// A line for a line.
    fn answer(&mut self, request: &str) -> String;

    /// SIGHUP came: what daemons take for the wish to read their files again.
    fn hang_up(&mut self);
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks whoever listens at `path`, and returns the answer.
///
/// # Errors
/// Nobody does, or it does not answer.
pub fn ask(path: &Path, request: &str) -> Result<String, Error> {
    let no_answer = |source| Error::NoAnswer { path: path.display().to_string(), source };
    let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::system(format!("asking at {}", path.display()), source),
        _ => no_answer(source),
    })?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(no_answer)?;
    send(&stream, request).map_err(no_answer)?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).map_err(no_answer)?;
    match answer.strip_suffix('\n') {
        Some(whole) => Ok(whole.to_owned()),
        None => Err(no_answer(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn receive(stream: &UnixStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

fn send(mut stream: &UnixStream, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopHandle;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("lastmile-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
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
        let folder = Folder::new("control");
        let path = folder.0.join("socket");
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (end, hang_up) = (Stop::new().unwrap(), Stop::new().unwrap());
        let (mut parrot, signal) = (Parrot(end.handle().unwrap(), 0), hang_up.handle().unwrap());
        let serving = std::thread::spawn(move || listener.serve(&end, &hang_up, &mut parrot).unwrap());
        assert_eq!(ask(&path, "status").unwrap(), "heard status after 0 signals");
        signal.stop();
        // Whoever says nothing keeps nobody waiting.
        drop(UnixStream::connect(&path).unwrap());
        assert!(matches!(Listener::bind(&path), Err(Error::InUse { .. })));
        assert_eq!(ask(&path, "stop").unwrap(), "heard stop after 1 signals");
        serving.join().unwrap();
        assert!(!path.exists());
        assert!(matches!(ask(&path, "status"), Err(Error::NoAnswer { .. })));
    }

    #[test]
    fn what_a_killed_program_left_is_replaced_and_a_file_is_not() {
        let folder = Folder::new("left");
        let path = folder.0.join("socket");
        fs::create_dir_all(&folder.0).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bind(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(Listener::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
