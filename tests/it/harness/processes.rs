//! Processes by what `/proc` says of them.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether a process runs; one that has ended and waits to be taken does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    !matches!(state, None | Some(b'Z' | b'X'))
}

/// Processes, other than this one, whose command line or environment names the directory: daemon,
/// executors and tasks of one test.
pub(crate) fn members_of(dir: &Path) -> Vec<u32> {
    let name = dir.as_os_str().as_encoded_bytes();
    let holds = |file: String| {
        fs::read(file).is_ok_and(|bytes| bytes.windows(name.len()).any(|part| part == name))
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id() && is_alive(*pid))
        .filter(|pid| {
            holds(format!("/proc/{pid}/cmdline")) || holds(format!("/proc/{pid}/environ"))
        })
        .collect()
}

/// Sends a signal; one that is gone gets none.
pub(super) fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).ok();
}
