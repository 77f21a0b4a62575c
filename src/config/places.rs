//! Where things stand by default: for root, and for anyone else (contract §1).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The standard places of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The configuration.
    pub config_file: PathBuf,
    /// Specs.
    pub spec_dir: PathBuf,
    /// State.
    pub state_dir: PathBuf,
    /// Task logs.
    pub log_dir: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// The socket's mode: a group's for the system, only the user's own otherwise.
    pub socket_mode: u32,
}

impl Places {
    /// Those of the user who runs this: the system's for root, else the user's own.
    #[must_use]
    pub fn standard() -> Self {
        if nix::unistd::geteuid().is_root() { Self::system() } else { Self::own() }
    }

    /// The system's.
    #[must_use]
    pub fn system() -> Self {
        Self {
            config_file: "/etc/schedd/schedd.yaml".into(),
            spec_dir: "/etc/sched.d".into(),
            state_dir: "/var/lib/schedd".into(),
            log_dir: "/var/log/schedd".into(),
            socket: "/run/schedd/schedd.sock".into(),
            socket_mode: 0o660,
        }
    }

    /// The calling user's own, by the XDG variables.
    #[must_use]
    pub fn own() -> Self {
        let home = || {
            let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
            user.map_or_else(|| PathBuf::from("/"), |user| user.dir)
        };
        Self::of_user(&|name| std::env::var_os(name), &home)
    }

    /// A user's, from variables; `home` is asked where `HOME` says nothing.
    ///
    /// As the XDG specification wants it, a relative path in a variable counts as none. Without
    /// `XDG_RUNTIME_DIR` the socket stands in the state folder.
    #[must_use]
    pub fn of_user(
        variable: &dyn Fn(&str) -> Option<OsString>,
        home: &dyn Fn() -> PathBuf,
    ) -> Self {
        let folder =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME").unwrap_or_else(home);
        let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let state = folder("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        let state_dir = state.join("schedd");
        let run = folder("XDG_RUNTIME_DIR").map(|path| path.join("schedd"));
        Self {
            config_file: config.join("schedd/schedd.yaml"),
            spec_dir: config.join("sched.d"),
            log_dir: state_dir.join("log"),
            socket: run.as_deref().map_or(state_dir.as_path(), Path::new).join("schedd.sock"),
            state_dir,
            socket_mode: 0o600,
        }
    }
}
