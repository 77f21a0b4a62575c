//! What a run leaves behind (`outputs`), and when it counts as being there (docs/waves.md, rule 8).
//!
//! Whoever looks at the file system tells what stands at each path; what that means is said here, so
//! that looking knows no rule.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::InstanceId;
use super::instance::Instance;
use super::record::FileIdentity;
use super::time::Timestamp;

/// By how much a file may seem older than the attempt that wrote it: the kernel stamps files by a
/// clock that is up to one of its ticks late.
const SLACK: Duration = Duration::from_millis(20);

/// Paths that are named of those that are not there.
const NAMED_MAX: usize = 3;

/// What a run that ended well was to leave behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outputs {
    /// When its attempt started: what was last changed before is of an earlier run.
    pub since: Timestamp,
    /// Absolute paths, as they were filled in at its end.
    pub paths: Vec<String>,
    /// Why they could not be filled in; then there are no paths.
    #[serde(default)]
    pub problem: Option<String>,
    /// When and as what all of them were found; `None`: not yet, or nobody has waited for them.
    #[serde(default)]
    pub found: Option<Found>,
}

/// All outputs of a run, as they were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// When.
    pub at: Timestamp,
    /// What stood at each path.
    pub files: Vec<FileIdentity>,
}

/// What stands at a path; links have been followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Nothing, or a link that leads nowhere.
    Absent,
    /// A regular file.
    File {
        /// Which, with size and time.
        identity: FileIdentity,
        /// When it, or what is known of it, was changed: nanoseconds since the epoch.
        ctime_ns: i64,
    },
    /// A directory.
    Directory {
        /// Which, with its own time.
        identity: FileIdentity,
        /// See above.
        ctime_ns: i64,
        /// Whether there is nothing in it.
        is_empty: bool,
    },
    /// Neither of the two.
    Other,
    /// It cannot be said, for this reason.
    Unknown(String),
}

/// What a look at the outputs of a run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputsLook {
    /// The run's instance.
    pub instance_id: InstanceId,
    /// What stands at each of its paths, in their order.
    pub sights: Vec<Sight>,
    /// The instance as it is stored, once everything is there: the core keeps no such rows.
    pub stored: Option<Box<Instance>>,
}

impl Outputs {
    /// Whether they have to be looked for, should somebody wait for them.
    #[must_use]
    pub const fn are_due(&self) -> bool {
        self.problem.is_none() && self.found.is_none()
    }

    /// What these sights, one for each path, lack: in words, one text for each path that is not as it
    /// has to be. Empty: everything is there.
    #[must_use]
    pub fn lacks(&self, sights: &[Sight]) -> Vec<String> {
        let pairs = self.paths.iter().zip(sights);
        let lack = |(path, sight)| Some(format!("{path} {}", self.lack(sight).err()?));
        pairs.filter_map(lack).collect()
    }

    /// These sights, one for each path, as what was found; `None`: something is not there.
    #[must_use]
    pub fn found(&self, at: Timestamp, sights: &[Sight]) -> Option<Found> {
        if sights.len() != self.paths.len() {
            return None;
        }
        let files = sights.iter().map(|sight| self.lack(sight)).collect::<Result<_, _>>().ok()?;
        Some(Found { at, files })
    }

    /// What stands there, if it counts; else what is wrong with it.
    fn lack(&self, sight: &Sight) -> Result<FileIdentity, String> {
        let (identity, ctime_ns) = match sight {
            Sight::Absent => return Err("is not there".to_owned()),
            Sight::Other => return Err("is neither a regular file nor a directory".to_owned()),
            Sight::Unknown(why) => return Err(format!("cannot be looked at: {why}")),
            Sight::File { identity, .. } if identity.size == 0 => {
                return Err("is empty".to_owned());
            }
            Sight::Directory { is_empty: true, .. } => {
                return Err("is a directory with nothing in it".to_owned());
            }
            Sight::File { identity, ctime_ns } | Sight::Directory { identity, ctime_ns, .. } => {
                (*identity, *ctime_ns)
            }
        };
        // A file that is moved or copied with its times keeps its mtime, but not its ctime.
        let changed_ns = identity.mtime_ns.max(ctime_ns);
        if changed_ns < nanoseconds(self.since.minus(SLACK)) {
            let changed = Timestamp::from_millis(changed_ns.div_euclid(1_000_000));
            let since = self.since;
            return Err(format!("was last changed at {changed}, before the run began at {since}"));
        }
        Ok(identity)
    }
}

/// What is lacking in one text, the first few paths by name.
#[must_use]
pub fn told(lacks: &[String]) -> String {
    let mut text = lacks.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    if lacks.len() > NAMED_MAX {
        text.push_str(&format!("; and {} more", lacks.len() - NAMED_MAX));
    }
    text
}

fn nanoseconds(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T02:00:00Z.
    const START: i64 = 1_796_004_000_000;

    fn outputs() -> Outputs {
        let since = Timestamp::from_millis(START);
        Outputs { since, paths: vec!["/out/a".to_owned()], problem: None, found: None }
    }

    /// Times in milliseconds after the start.
    fn file(size: u64, mtime: i64, ctime: i64) -> Sight {
        let [mtime_ns, ctime_ns] = [mtime, ctime].map(|ms| (START + ms) * 1_000_000);
        Sight::File { identity: FileIdentity { device: 1, inode: 2, size, mtime_ns }, ctime_ns }
    }

    fn directory(is_empty: bool, mtime: i64) -> Sight {
        let mtime_ns = (START + mtime) * 1_000_000;
        let identity = FileIdentity { device: 1, inode: 2, size: 4096, mtime_ns };
        Sight::Directory { identity, ctime_ns: mtime_ns, is_empty }
    }

    fn lack(sight: Sight) -> String {
        outputs().lacks(&[sight]).concat()
    }

    #[test]
    fn rule_8_a_file_of_the_run_with_something_in_it_is_there() {
        assert_eq!(lack(file(1, 0, 0)), "");
        assert_eq!(lack(file(1, 3_600_000, 3_600_000)), "");
        // 20 ms of slack, and not one more.
        assert_eq!(lack(file(1, -20, -20)), "");
        assert_ne!(lack(file(1, -21, -21)), "");
        // Moved or copied with its times: only the inode's change tells.
        assert_eq!(lack(file(1, -86_400_000, 5)), "");
        assert_eq!(lack(file(1, 5, -86_400_000)), "");
    }

    #[test]
    fn rule_8_what_is_missing_is_told_with_its_time() {
        assert_eq!(lack(Sight::Absent), "/out/a is not there");
        assert_eq!(lack(file(0, 5, 5)), "/out/a is empty");
        assert_eq!(lack(Sight::Other), "/out/a is neither a regular file nor a directory");
        let refused = Sight::Unknown("Permission denied (os error 13)".to_owned());
        assert_eq!(lack(refused), "/out/a cannot be looked at: Permission denied (os error 13)");
        assert_eq!(
            lack(file(1, -3_600_000, -60_000)),
            "/out/a was last changed at 2026-11-30T01:59:00.000Z, before the run began at \
             2026-11-30T02:00:00.000Z"
        );
    }

    #[test]
    fn rule_8_a_directory_needs_an_entry_and_a_time_of_its_own() {
        assert_eq!(lack(directory(false, 0)), "");
        assert_eq!(lack(directory(true, 0)), "/out/a is a directory with nothing in it");
        assert_ne!(lack(directory(false, -1000)), "");
    }

    #[test]
    fn rule_8_all_of_them_or_nothing_is_found() {
        let paths = ["/out/a", "/out/b"].map(str::to_owned).to_vec();
        let both = Outputs { paths, ..outputs() };
        let at = Timestamp::from_millis(START + 9);
        assert_eq!(both.found(at, &[file(1, 0, 0), Sight::Absent]), None);
        assert_eq!(both.found(at, &[file(1, 0, 0)]), None);
        let found = both.found(at, &[file(1, 0, 0), directory(false, 0)]).unwrap();
        assert_eq!((found.at, found.files.len()), (at, 2));
    }

    #[test]
    fn of_many_missing_paths_three_are_named() {
        let lacks: Vec<String> = (1..=5).map(|n| format!("/{n} is not there")).collect();
        assert_eq!(told(&lacks), "/1 is not there; /2 is not there; /3 is not there; and 2 more");
        assert_eq!(told(&lacks[..1]), "/1 is not there");
    }
}
