//! The configuration file: read, checked, defaults filled. No globals.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::settings::Settings;

/// The whole configuration (contract §4). All paths are absolute.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file it came from; `None`: there is none and these are the defaults.
    pub file: Option<PathBuf>,
    /// Where specs are read.
    pub spec_dir: PathBuf,
    /// Where the store, the executors' journals and the lock live.
    pub state_dir: PathBuf,
    /// Where task logs live.
    pub log_dir: PathBuf,
    /// The door.
    pub socket: Socket,
    /// Whether an acknowledgement waits for the disk.
    pub durability: Durability,
    /// What the core needs of it.
    pub settings: Arc<Settings>,
}

/// The door's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Its path, at most [`crate::limits::SOCKET_PATH_BYTES_MAX`] bytes.
    pub path: PathBuf,
    /// Its mode, such as 0o660.
    pub mode: u32,
    /// Its group; `None`: the daemon's.
    pub group: Option<String>,
}

/// Whether an acknowledgement waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged means synced to disk.
    Strict,
    /// Acknowledged means written; synced within this time.
    Relaxed {
        /// The time.
        sync_within: std::time::Duration,
    },
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The file is wrong; every fault has a line.
    #[error("the configuration is wrong:\n{}", .0.iter().map(|e| format!("  {e}")).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<crate::model::event::SpecError>),
}

impl Config {
    /// Reads `file`, or the standard place, or takes the defaults if nothing is there.
    ///
    /// # Errors
    /// [`ConfigError`], naming the place of each fault.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let _ = file;
        Err(ConfigError::Invalid(Vec::new()))
    }
}
