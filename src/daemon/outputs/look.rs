//! Looks at one path. Blocking; files are only stat'ed, never opened, so that a FIFO or a device does
//! no harm, and of a folder no more than the first entry is read.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::daemon::arrivals::{identity, is_absence};
use crate::model::output::Sight;

/// What stands at a path. Links are followed.
pub(super) fn look_at(path: &Path) -> Sight {
    seen(path).unwrap_or_else(|error| {
        if is_absence(&error) { Sight::Absent } else { Sight::Unknown(error.to_string()) }
    })
}

fn seen(path: &Path) -> io::Result<Sight> {
    let meta = std::fs::metadata(path)?;
    let identity = identity(&meta);
    let ctime_ns = meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec());
    if meta.is_file() {
        return Ok(Sight::File { identity, ctime_ns });
    }
    if !meta.is_dir() {
        return Ok(Sight::Other);
    }
    let first = std::fs::read_dir(path)?.next().transpose()?;
    Ok(Sight::Directory { identity, ctime_ns, is_empty: first.is_none() })
}
