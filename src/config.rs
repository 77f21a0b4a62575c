//! The configuration file: read, checked, defaults filled. No globals.
//!
//! Where the standard places are is [`Places`]' affair; what each key may hold is `read`'s. Nothing
//! here creates a folder, opens a socket or looks at a spec.

mod places;
mod read;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::spec_yaml::SpecContext;
use crate::model::event::SpecError;
use crate::model::settings::Settings;

pub use self::places::Places;

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
    /// What was accepted but deserves a word, such as a setting that is not in force yet.
    pub warnings: Vec<SpecError>,
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
    Invalid(Vec<SpecError>),
}

impl Config {
    /// Reads `file`, or the standard place, or takes the defaults if nothing is there.
    ///
    /// # Errors
    /// [`ConfigError`], naming the place of each fault.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let places = Places::standard();
        let path = file.unwrap_or(&places.config_file);
        match std::fs::read(path) {
            Ok(bytes) => Self::read(path, &bytes, &places),
            Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Self::defaults(&places)
            }
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    /// Reads a configuration file's content; `places` gives the defaults, `path` is named in
    /// messages and is what relative paths start from.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with every fault.
    pub fn read(path: &Path, bytes: &[u8], places: &Places) -> Result<Self, ConfigError> {
        read::read(path, bytes, places).map_err(ConfigError::Invalid)
    }

    /// The configuration where there is no file.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if a standard place cannot serve, such as a socket path too long
    /// for the kernel.
    pub fn defaults(places: &Places) -> Result<Self, ConfigError> {
        let mut config = Self::read(&places.config_file, b"", places)?;
        config.file = None;
        Ok(config)
    }

    /// What specs may refer to.
    #[must_use]
    pub fn spec_context(&self) -> SpecContext {
        SpecContext {
            task_types: self.settings.task_types.keys().cloned().collect(),
            timezone: self.settings.timezone.clone(),
            queues: self
                .settings
                .queues
                .iter()
                .map(|queue| queue.name.as_str().to_owned())
                .collect::<BTreeSet<_>>(),
            now: None,
        }
    }
}

#[cfg(test)]
mod tests;
