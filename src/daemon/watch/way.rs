//! Which directories' events together tell what becomes of one.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode: the kernel watches a directory, not a name.
pub type DirIdentity = (u64, u64);

/// Which directory a path leads to; `None`: to none. Blocking.
#[must_use]
pub fn identity(dir: &Path) -> Option<DirIdentity> {
    let meta = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino()))
}

/// The directories whose events together tell that `dir` appears, goes, or is replaced, and what
/// changes in it: itself, the parent of every symbolic link on its way, and if it does not exist
/// its nearest existing parent. That a parent was renamed together with it is not among what
/// they tell. Blocking.
#[must_use]
pub fn on_the_way(dir: &Path) -> BTreeSet<PathBuf> {
    let mut watched = BTreeSet::new();
    let mut at = PathBuf::new();
    for part in dir.components() {
        let next = at.join(part);
        if std::fs::symlink_metadata(&next).is_ok_and(|meta| meta.is_symlink()) {
            watched.insert(at.clone());
        }
        if !next.is_dir() {
            watched.insert(at);
            return watched;
        }
        at = next;
    }
    watched.insert(at);
    watched
}
