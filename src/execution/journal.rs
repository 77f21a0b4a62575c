//! The executor's memory of its attempts: one small file each, in `executors/<id>/attempts`.
//!
//! A line is added at each step (accepted, started, finished) and the file emptied, and kept for
//! another attempt, once the end is acknowledged. Nothing is synced: the file outlives the process, which is what it is for,
//! and of another boot of the machine it says that the attempt is lost (design, 'Executors').
//! A damaged or half-written line counts as not written.
//!
//! Each file names the directory in which it was written, by device and inode. In a copy of the
//! state directory it says what was accepted, but its processes are the original's.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::session::Identity;
use crate::model::event::{AttemptRef, Finished};
use crate::model::id::{InstanceId, Lease};

/// Files that are kept for further attempts: a file system looks long for a free inode where many
/// were given back a moment ago (ext4 passes over those of the last seconds, one by one).
const SPARES_MAX: usize = 256;

/// Where the files are.
#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
    place: Place,
    /// Numbers of empty files.
    spares: RefCell<BTreeSet<usize>>,
}

/// A directory and no copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    device: u64,
    inode: u64,
}

/// One attempt's file, open to be added to.
#[derive(Debug)]
pub(super) struct Entry {
    file: File,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "step")]
enum Line {
    Accepted {
        boot_id: Arc<str>,
        #[serde(default)]
        place: Option<Place>,
    },
    Started {
        leader: Identity,
    },
    Seen {
        process: Identity,
    },
    Finished {
        end: Box<Finished>,
    },
}

/// What an earlier process left.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Left {
    /// Which dispatch.
    pub(super) of: AttemptRef,
    /// The boot in which it was accepted; `None`: the line is damaged.
    pub(super) boot_id: Option<Arc<str>>,
    /// Whether it was written where it lies. Otherwise its processes are none of ours.
    pub(super) is_own: bool,
    /// Its process, if one came to be.
    pub(super) leader: Option<Identity>,
    /// Processes that had left its session and lost their parents when they were seen.
    pub(super) seen: Vec<Identity>,
    /// Its end, if that was seen.
    pub(super) finished: Option<Box<Finished>>,
}

impl Journal {
    /// Opens the directory, made if need be.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let about = fs::metadata(&dir)?;
        let place = Place { device: about.dev(), inode: about.ino() };
        let spares = (0..SPARES_MAX).filter(|n| spare(&dir, *n).exists()).collect();
        Ok(Self { dir, place, spares: RefCell::new(spares) })
    }

    /// Notes that an attempt was accepted.
    ///
    /// # Errors
    /// The system's; the attempt must not be started then.
    pub(super) fn accept(&self, of: &AttemptRef, boot_id: &Arc<str>) -> io::Result<Entry> {
        let path = self.path(of)?;
        if let Some(number) = self.spares.borrow_mut().pop_first()
            && let Err(error) = fs::rename(spare(&self.dir, number), &path)
        {
            tracing::debug!(%error, "a spare file of the journal is of no use");
        }
        let file = plain(OpenOptions::new().write(true).create(true).mode(0o600), &path)?;
        file.set_len(0)?;
        let entry = Entry { file };
        let (boot_id, place) = (Arc::clone(boot_id), Some(self.place));
        entry.write(&Line::Accepted { boot_id, place })?;
        Ok(entry)
    }

    /// Forgets an attempt; one that is not there is forgotten already.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn forget(&self, of: &AttemptRef) -> io::Result<()> {
        let path = self.path(of)?;
        if self.keep(&path).is_ok() {
            return Ok(());
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes an attempt's file a spare one, empty, so that it never speaks of another attempt.
    fn keep(&self, path: &Path) -> io::Result<()> {
        let mut spares = self.spares.borrow_mut();
        let free = (0..SPARES_MAX).find(|n| !spares.contains(n));
        let number = free.ok_or_else(|| io::Error::other("there are spare files enough"))?;
        plain(OpenOptions::new().write(true), path)?.set_len(0)?;
        fs::rename(path, spare(&self.dir, number))?;
        spares.insert(number);
        Ok(())
    }

    /// All that an earlier process left; files that name no attempt are not looked at.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(super) fn left(&self) -> io::Result<Vec<Left>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let Some(of) = entry.file_name().to_str().and_then(named) else { continue };
            // What cannot be read was accepted, and that is what its name says.
            all.push(read(of, &content(&entry.path()).unwrap_or_default(), self.place));
        }
        all.sort_by(|a, b| a.of.cmp(&b.of));
        Ok(all)
    }

    fn path(&self, of: &AttemptRef) -> io::Result<PathBuf> {
        let id = of.instance_id.as_str();
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            return Err(io::Error::other(format!("{id:?} is no instance id")));
        }
        Ok(self.dir.join(format!("{id}.{}.{}", of.attempt, of.lease.0)))
    }
}

impl Entry {
    /// Notes the process.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn started(&self, leader: Identity) -> io::Result<()> {
        self.write(&Line::Started { leader })
    }

    /// Notes a process that belongs to the attempt and whose parents do not show it.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn seen(&self, process: Identity) -> io::Result<()> {
        self.write(&Line::Seen { process })
    }

    /// Notes the end.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn finished(&self, end: &Finished) -> io::Result<()> {
        self.write(&Line::Finished { end: Box::new(end.clone()) })
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        // The newline comes first too: a line that was cut off by a full disk spoils no other.
        let mut bytes = vec![b'\n'];
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        (&self.file).write_all(&bytes)
    }
}

/// The name of a spare file, which names no attempt.
fn spare(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("spare-{number}"))
}

/// Opens a regular file and nothing else: a pipe would be waited on, a link lead elsewhere.
fn plain(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = how.custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    Ok(file)
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    plain(OpenOptions::new().read(true), path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn named(file: &str) -> Option<AttemptRef> {
    let mut parts = file.split('.');
    let (id, attempt, lease) = (parts.next()?, parts.next()?, parts.next()?);
    Some(AttemptRef {
        instance_id: InstanceId::from_text(id),
        attempt: attempt.parse().ok()?,
        lease: Lease(lease.parse().ok()?),
    })
    .filter(|_| parts.next().is_none())
}

fn read(of: AttemptRef, bytes: &[u8], here: Place) -> Left {
    let mut left =
        Left { of, boot_id: None, is_own: false, leader: None, seen: Vec::new(), finished: None };
    for line in bytes.split(|b| *b == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Accepted { boot_id, place }) => {
                left.boot_id = Some(boot_id);
                left.is_own = place == Some(here);
            }
            Ok(Line::Started { leader }) => left.leader = Some(leader),
            Ok(Line::Seen { process }) => left.seen.push(process),
            Ok(Line::Finished { end }) if end.of == left.of => left.finished = Some(end),
            Ok(Line::Finished { .. }) | Err(_) => {}
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{Outcome, TaskResult};
    use crate::model::time::Timestamp;

    fn of(lease: u64) -> AttemptRef {
        AttemptRef { instance_id: InstanceId::from_text("0abc"), attempt: 1, lease: Lease(lease) }
    }

    fn end(of: AttemptRef) -> Finished {
        Finished {
            of,
            started_at: None,
            finished_at: Timestamp::from_millis(5),
            outcome: Outcome::Exited { code: 3 },
            result: TaskResult::default(),
            killed: false,
            user_ms: None,
            system_ms: None,
            max_rss_bytes: None,
            output_bytes: None,
        }
    }

    #[test]
    fn each_step_is_found_again_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        let boot: Arc<str> = "b".into();
        let leader = Identity { pid: 9, start_ticks: 8 };
        let entry = journal.accept(&of(1), &boot).unwrap();
        let accepted = Left {
            of: of(1),
            boot_id: Some(boot),
            is_own: true,
            leader: None,
            seen: Vec::new(),
            finished: None,
        };
        assert_eq!(journal.left().unwrap(), std::slice::from_ref(&accepted));
        entry.started(leader).unwrap();
        let started = Left { leader: Some(leader), ..accepted };
        assert_eq!(journal.left().unwrap(), std::slice::from_ref(&started));
        let orphan = Identity { pid: 7, start_ticks: 9 };
        entry.seen(orphan).unwrap();
        let started = Left { seen: vec![orphan], ..started };
        assert_eq!(journal.left().unwrap(), std::slice::from_ref(&started));
        entry.finished(&end(of(1))).unwrap();
        let finished = Left { finished: Some(Box::new(end(of(1)))), ..started };
        assert_eq!(journal.left().unwrap(), [finished]);
        journal.forget(&of(1)).unwrap();
        journal.forget(&of(1)).unwrap();
        assert_eq!(journal.left().unwrap(), []);
    }

    #[test]
    fn a_damaged_file_is_an_accepted_attempt_and_a_cut_line_was_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().to_owned()).unwrap();
        fs::write(dir.path().join("0abc.1.1"), b"\0\0\xff{").unwrap();
        fs::write(dir.path().join("notes.txt"), b"x").unwrap();
        drop(journal.accept(&of(2), &"b".into()).unwrap());
        let path = dir.path().join("0abc.1.2");
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"\n{\"step\":\"started\",\"leader\":{\"pid\":1");
        fs::write(&path, bytes).unwrap();
        let left = journal.left().unwrap();
        let seen: Vec<_> = left.iter().map(|l| (l.of.lease.0, l.boot_id.is_some())).collect();
        assert_eq!(seen, [(1, false), (2, true)]);
        assert!(left.iter().all(|l| l.leader.is_none() && l.finished.is_none()));
    }

    #[test]
    fn a_pipe_or_a_link_in_a_files_place_is_neither_waited_on_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
        nix::unistd::mkfifo(&journal.path(&of(1)).unwrap(), mode).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "kept").unwrap();
        std::os::unix::fs::symlink(&elsewhere, journal.path(&of(2)).unwrap()).unwrap();
        let left = journal.left().unwrap();
        assert_eq!(left.len(), 2, "what cannot be read was accepted");
        assert!(left.iter().all(|l| l.boot_id.is_none() && !l.is_own));
        assert!(journal.accept(&of(1), &"b".into()).is_err());
        assert!(journal.accept(&of(2), &"b".into()).is_err());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
        journal.forget(&of(1)).unwrap();
        journal.forget(&of(2)).unwrap();
        assert_eq!(journal.left().unwrap(), []);
    }

    #[test]
    fn a_copied_file_is_not_its_own_directorys_and_a_renamed_directory_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("original")).unwrap();
        drop(journal.accept(&of(1), &"b".into()).unwrap());
        let copy = Journal::open(dir.path().join("copy")).unwrap();
        fs::copy(journal.path(&of(1)).unwrap(), copy.path(&of(1)).unwrap()).unwrap();
        let left = copy.left().unwrap();
        assert_eq!((left.len(), left[0].is_own), (1, false));
        fs::rename(dir.path().join("original"), dir.path().join("renamed")).unwrap();
        let renamed = Journal::open(dir.path().join("renamed")).unwrap();
        assert!(renamed.left().unwrap()[0].is_own);
    }

    #[test]
    fn a_file_serves_one_attempt_after_the_other_and_speaks_of_one_only() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        for lease in 1..=3 {
            let entry = journal.accept(&of(lease), &"b".into()).unwrap();
            entry.started(Identity { pid: 9, start_ticks: lease }).unwrap();
            entry.finished(&end(of(lease))).unwrap();
            journal.forget(&of(lease)).unwrap();
        }
        let files = || fs::read_dir(dir.path().join("attempts")).unwrap().count();
        assert_eq!(files(), 1);
        // The next process finds it, and what it takes up has no earlier lines.
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        drop(journal.accept(&of(4), &"b".into()).unwrap());
        assert_eq!(files(), 1);
        let left = journal.left().unwrap();
        assert_eq!((left.len(), left[0].of.lease.0), (1, 4));
        assert!(left[0].leader.is_none() && left[0].finished.is_none());
    }

    #[test]
    fn an_id_that_leaves_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().to_owned()).unwrap();
        let of = AttemptRef { instance_id: InstanceId::from_text("../x"), ..of(1) };
        assert!(journal.accept(&of, &"b".into()).is_err());
    }
}
