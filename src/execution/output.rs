//! Keeps a task's log within its bound: head and tail stay, the middle is given back to the disk.
//!
//! Output goes straight into the file, without a pipe that a grandchild could hold open; so the
//! bound is kept from outside, by punching a hole. A reader finds the head, one line that says
//! what was cut, a run of zero bytes that takes no space, and the tail.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{FallocateFlags, fallocate};

/// How often a growing log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The file systems' block, to whose multiples holes are cut.
const BLOCK: u64 = 4096;

/// Bounds the log for as long as it is polled; ends only when the file cannot be bounded.
/// Cancel safe.
pub(super) async fn bound(log: &File, path: &Path, bytes_max: u64) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if !cut(log, path, bytes_max) {
            return;
        }
    }
}

/// Cuts the log once if it is too long; false if this file system cannot do that.
pub(super) fn cut(log: &File, path: &Path, bytes_max: u64) -> bool {
    let size = log.metadata().map_or(0, |m| m.len());
    let Some((from, to)) = hole(size, bytes_max) else { return true };
    match punch(path, from, to, bytes_max) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a log cannot be bounded");
            false
        }
    }
}

/// What to cut out of `size` bytes to keep about `bytes_max`: a quarter is head, the rest tail.
fn hole(size: u64, bytes_max: u64) -> Option<(u64, u64)> {
    if size <= bytes_max {
        return None;
    }
    let from = (bytes_max / 4).next_multiple_of(BLOCK);
    let tail = bytes_max - bytes_max / 4;
    let to = (size - tail) / BLOCK * BLOCK;
    (to > from).then_some((from, to))
}

fn punch(path: &Path, from: u64, to: u64, bytes_max: u64) -> io::Result<()> {
    // The task's own descriptor appends; this one writes where it is told.
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let line = format!("\n[schedd: output longer than {bytes_max} bytes: the middle is cut out]\n");
    let bytes = line.as_bytes();
    let at = from.saturating_sub(u64::try_from(bytes.len()).unwrap_or(0));
    file.write_all_at(bytes, at)?;
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let offset = |n: u64| libc::off_t::try_from(n).map_err(io::Error::other);
    fallocate(&file, flags, offset(from)?, offset(to - from)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_hole_leaves_head_and_tail() {
        assert_eq!(hole(1 << 20, 1 << 20), None);
        // 256 KiB of head; the tail's 768 KiB start at a block's border at or below.
        assert_eq!(hole(10 << 20, 1 << 20), Some((256 << 10, (10 << 20) - (768 << 10))));
        assert_eq!(hole(5000, 4096), None, "less than a block would be won");
    }

    #[test]
    fn a_long_log_takes_no_more_space_than_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut content = b"first\n".to_vec();
        content.resize(3 << 20, b'x');
        content.extend_from_slice(b"\nlast\n");
        std::fs::write(&path, &content).unwrap();
        let log = File::open(&path).unwrap();
        assert!(cut(&log, &path, 1 << 20));
        log.sync_all().unwrap();
        let about = log.metadata().unwrap();
        assert_eq!(about.len(), content.len() as u64);
        assert!(about.blocks() * 512 <= (1 << 20) + 3 * BLOCK, "{} blocks", about.blocks());
        let kept = std::fs::read(&path).unwrap();
        assert!(kept.starts_with(b"first\n"));
        assert!(kept.ends_with(b"\nlast\n"));
        assert!(String::from_utf8_lossy(&kept[..300 << 10]).contains("the middle is cut out"));
    }
}
