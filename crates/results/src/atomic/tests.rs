use std::process::Command;

use super::*;

/// A directory for one test, removed with its contents.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lastmile-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_file_has_its_name_only_once_it_is_whole() {
    let dir = TestDir::new("whole");
    let mut file = AtomicFile::create(&dir.file("summary.json")).unwrap();
    file.write_all(&[b'x'; 200_000]).unwrap();
    assert_eq!(dir.names(), [format!(".summary.json.{}-0.partial", std::process::id())]);
    file.commit().unwrap();
    assert_eq!(dir.names(), ["summary.json"]);
    assert_eq!(fs::read(dir.file("summary.json")).unwrap(), [b'x'; 200_000]);
}

/// A young hidden file may be at work, and a file with a final name is a result, however old.
#[test]
fn old_hidden_files_are_swept() {
    let dir = TestDir::new("swept");
    let old = std::time::UNIX_EPOCH;
    for (name, is_old) in [(".a.1-0.partial", true), (".b.1-0.partial", false), ("c.partial", true), (".d", true)] {
        write(&dir.file(name), b"x").unwrap();
        if is_old {
            OpenOptions::new().write(true).open(dir.file(name)).unwrap().set_modified(old).unwrap();
        }
    }
    sweep(&dir.0).unwrap();
    assert_eq!(dir.names(), [".b.1-0.partial", ".d", "c.partial"]);
}

#[test]
fn an_old_file_stays_until_the_new_one_is_whole() {
    let dir = TestDir::new("old");
    write(&dir.file("a"), b"old").unwrap();
    let mut file = AtomicFile::create(&dir.file("a")).unwrap();
    file.write_all(b"new").unwrap();
    file.flush().unwrap();
    assert_eq!(fs::read(dir.file("a")).unwrap(), b"old");
    file.commit().unwrap();
    assert_eq!(fs::read(dir.file("a")).unwrap(), b"new");
}

/// The effect of SIGINT: the run returns early, or unwinds, before the file is complete.
#[test]
fn an_interrupted_file_leaves_nothing() {
    let dir = TestDir::new("interrupted");
    drop(AtomicFile::create(&dir.file("a")).unwrap());
    let path = dir.file("a");
    let unwound = std::panic::catch_unwind(move || {
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(&[0; 100_000]).unwrap();
        std::panic::resume_unwind(Box::new("interrupted"));
    });
    assert!(unwound.is_err());
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn two_files_under_way_to_one_name_do_not_meet() {
    let dir = TestDir::new("two");
    let mut first = AtomicFile::create(&dir.file("a")).unwrap();
    let mut second = AtomicFile::create(&dir.file("a")).unwrap();
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    second.commit().unwrap();
    first.commit().unwrap();
    assert_eq!(fs::read(dir.file("a")).unwrap(), b"first");
    assert_eq!(dir.names(), ["a"]);
}

#[test]
fn a_name_that_cannot_be_is_an_error_and_leaves_nothing() {
    let dir = TestDir::new("errors");
    assert_eq!(AtomicFile::create(Path::new("/")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(AtomicFile::create(&dir.file("no/a")).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::create_dir_all(dir.file("taken/by/a/directory")).unwrap();
    assert!(write(&dir.file("taken"), b"x").is_err());
    assert_eq!(dir.names(), ["taken"]);
}

/// A name of 255 bytes is the longest on Linux file systems; the hidden name is shorter.
#[test]
fn a_name_as_long_as_can_be_is_fine_and_a_longer_one_is_told_at_once() {
    let dir = TestDir::new("long-names");
    write(&dir.file(&"n".repeat(255)), b"x").unwrap();
    assert_eq!(dir.names(), ["n".repeat(255)]);
    write(&dir.file(&"\u{00e9}".repeat(127)), b"x").unwrap();
    let error = AtomicFile::create(&dir.file(&"n".repeat(256))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidFilename);
    assert_eq!(dir.names().len(), 2);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_told_at_once() {
    let dir = TestDir::new("folder");
    fs::create_dir(dir.file("summary.json")).unwrap();
    let error = AtomicFile::create(&dir.file("summary.json")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    assert_eq!(dir.names(), ["summary.json"]);
}

/// No file has its name before all are on the disk: the second does not fit.
#[test]
fn of_several_files_all_are_there_or_none() {
    let Some(disk) = TinyDisk::new("several") else { return };
    let file = |name: &str, bytes: usize| {
        let mut file = AtomicFile::create(&disk.0.file(name)).unwrap();
        file.write_all(&vec![1; bytes]).unwrap();
        file
    };
    // Both stay in their buffers until the commit, and the disk can hold one.
    let (path, error) = commit_all(vec![file("a", 40_000), file("b", 40_000)]).unwrap_err();
    assert_eq!((path, error.kind()), (disk.0.file("b"), io::ErrorKind::StorageFull));
    assert_eq!(disk.0.names(), [""; 0]);
}

/// A separate file system of 64 KiB. Needs root.
struct TinyDisk(TestDir);

impl TinyDisk {
    fn new(name: &str) -> Option<Self> {
        let dir = TestDir::new(name);
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "lastmile-test"])
            .arg(&dir.0)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: mounting a tmpfs needs root");
            return None;
        }
        Some(Self(dir))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg("--lazy").arg(&self.0.0).status().unwrap().success());
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_the_old_file() {
    let Some(disk) = TinyDisk::new("full") else { return };
    let path = disk.0.file("capture.pcapng");
    write(&path, b"old").unwrap();
    let error = write(&path, &[1; 200_000]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.0.names(), ["capture.pcapng"]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

/// The data fit the buffer, so the full disk shows only at the end.
#[test]
fn a_disk_found_full_at_the_end_is_an_error_too() {
    let Some(disk) = TinyDisk::new("full-at-the-end") else { return };
    let path = disk.0.file("a");
    fs::write(disk.0.file("filler"), [0; 60_000]).unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&[1; 30_000]).unwrap();
    assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.0.names(), ["filler"]);
}
