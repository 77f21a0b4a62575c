//! Where the daemon's socket is (contract §1).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

const SYSTEM: &str = "/run/schedd/schedd.sock";

/// The socket to use: the one named, else the user's own if there is one, else the system's.
pub(crate) fn find(named: Option<&Path>, runtime_dir: Option<OsString>) -> PathBuf {
    if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
        return path.to_owned();
    }
    let own = runtime_dir
        .filter(|dir| !dir.is_empty())
        .map(|dir| PathBuf::from(dir).join("schedd/schedd.sock"));
    match own {
        Some(path) if path.exists() => path,
        Some(_) | None => PathBuf::from(SYSTEM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_socket_wins_then_the_users_own_then_the_systems() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = Some(dir.path().as_os_str().to_owned());
        assert_eq!(find(None, runtime.clone()), Path::new(SYSTEM));
        let own = dir.path().join("schedd/schedd.sock");
        std::fs::create_dir(dir.path().join("schedd")).unwrap();
        std::fs::write(&own, "").unwrap();
        assert_eq!(find(None, runtime.clone()), own);
        assert_eq!(find(Some(Path::new("/x.sock")), runtime.clone()), Path::new("/x.sock"));
        assert_eq!(find(Some(Path::new("")), runtime), own);
        assert_eq!(find(None, Some(OsString::new())), Path::new(SYSTEM));
        assert_eq!(find(None, None), Path::new(SYSTEM));
    }
}
