//! Where the daemon's socket is (contract §1).

use std::path::{Path, PathBuf};

use sched::config::Places;

/// The socket to use: the one named, else the user's own if there is one, else the system's.
pub(crate) fn find(named: Option<&Path>, own: &Places) -> PathBuf {
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        return path.to_owned();
    }
    if own.socket.exists() { own.socket.clone() } else { Places::system().socket }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_socket_wins_then_the_users_own_then_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().as_os_str().to_owned();
        let variable = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| run.clone());
        let places = Places::of_user(&variable, &|| PathBuf::from("/nonexistent"));
        let system = Path::new("/run/schedd/schedd.sock");
        assert_eq!(find(None, &places), system);
        let own = dir.path().join("schedd/schedd.sock");
        std::fs::create_dir(dir.path().join("schedd")).unwrap();
        std::fs::write(&own, "").unwrap();
        assert_eq!(find(None, &places), own);
        assert_eq!(find(Some(Path::new("/x.sock")), &places), Path::new("/x.sock"));
        assert_eq!(find(Some(Path::new("")), &places), own);
    }
}
