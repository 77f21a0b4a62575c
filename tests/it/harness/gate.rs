//! Where tasks under test stand until the test lets them go on: a FIFO.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

/// A FIFO that is held open for both ways: whoever reads from it stands until a line comes, and
/// goes on if the test is over.
#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    fifo: File,
}

impl Gate {
    pub(crate) fn new(path: &Path) -> Self {
        nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o600)).unwrap();
        let fifo = OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self { path: path.to_owned(), fifo }
    }

    /// A shell command that stands here.
    pub(crate) fn stand(&self) -> String {
        format!("read -r _ < '{}'", self.path.display())
    }

    /// Lets this many through, now or when they come.
    pub(crate) fn pass(&self, count: usize) {
        (&self.fifo).write_all(&vec![b'\n'; count]).unwrap();
    }
}
