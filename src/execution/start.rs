//! From an assignment to a process: user, directories, log, start; and words for what failed.
//!
//! Start failures are told apart by step, object and system error (known fault B080): the kernel
//! says "No such file or directory" of a program, a directory and an interpreter alike.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::resource::Resource;
use nix::sys::stat::Mode;
use nix::unistd::{chown, pipe2};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::account::{Account, OwnUser, account};
use super::process::{Plan, Ready, SpawnError, Step};
use super::session::{self, Identity};
use super::wire::Assignment;
use crate::model::spec::Limits;

/// Variables every user's task finds, unless the spec sets them (contract §3).
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Those of root.
pub(super) const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const UMASK: u32 = 0o022;
/// Time in which the reason for a failed start is looked for.
const EXPLAIN_WITHIN: Duration = Duration::from_secs(5);

/// A leader that was started.
#[derive(Debug)]
pub(super) struct Leader {
    /// Which process.
    pub(super) identity: Identity,
    /// Its output, to measure and to bound.
    pub(super) log: File,
    /// Bytes that were in the log before.
    pub(super) log_from: u64,
    /// The log's name as the kernel has it.
    pub(super) log_name: Option<PathBuf>,
}

/// A start that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartError {
    /// Step, object and system error.
    pub(super) message: String,
    /// For want of resources.
    pub(super) transient: bool,
}

impl StartError {
    pub(super) fn io(what: &str, error: &io::Error) -> Self {
        Self { message: format!("{what}: {error}"), transient: is_transient(error) }
    }

    pub(super) fn plain(message: String) -> Self {
        Self { message, transient: false }
    }
}

fn is_transient(error: &io::Error) -> bool {
    use libc::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    matches!(error.raw_os_error(), Some(EAGAIN | ENOMEM | EMFILE | ENFILE))
}

/// A start of which everything that may take its time is done, but for the program's own file.
pub(super) struct Prepared {
    ready: Ready,
    log: File,
    log_from: u64,
    log_name: Option<PathBuf>,
    account: String,
    cwd: String,
}

/// A process that is there; its program may have begun, or not yet, or never will.
pub(super) struct Launched {
    /// It.
    pub(super) leader: Leader,
    /// Whether its program begins.
    pub(super) verdict: Verdict,
}

/// What a process says of the start of its program.
pub(super) struct Verdict {
    report: pipe::Receiver,
    account: String,
    cwd: String,
}

/// Prepares an assignment's start. Blocks, for ever if a mount or the user database hangs: not for
/// the thread on which an executor lives.
///
/// # Errors
/// [`StartError`].
pub(super) fn prepare(assignment: &Assignment, own: &OwnUser) -> Result<Prepared, StartError> {
    let account = account(assignment.user.as_deref(), assignment.group.as_deref(), own)?;
    let log = open_log(&assignment.log_path)?;
    let log_from = log.metadata().map_or(0, |m| m.len());
    let log_name = std::fs::read_link(format!("/proc/self/fd/{}", log.as_raw_fd())).ok();
    result_place(assignment, &account)?;
    let env = environment(&assignment.env, &account);
    let cwd = assignment.cwd.clone().unwrap_or_else(|| account.home.clone());
    let plan = Plan {
        programs: candidates(&assignment.program, env.get("PATH").map_or("", String::as_str))?,
        argv: std::iter::once(&assignment.program)
            .chain(&assignment.args)
            .map(|a| c_string(a))
            .collect::<Result<_, _>>()?,
        env: env.iter().map(|(k, v)| c_string(&format!("{k}={v}"))).collect::<Result<_, _>>()?,
        cwd: c_string(&cwd)?,
        cwd_optional: assignment.cwd.is_none(),
        ids: account.ids.clone(),
        umask: Mode::from_bits_truncate(assignment.umask.unwrap_or(UMASK)),
        nice: assignment.nice,
        limits: limits(&assignment.limits),
    };
    let account = account.name;
    let output = log.try_clone().map_err(|e| StartError::io("cannot start a process", &e))?;
    let ready = Ready::new(plan, output).map_err(|e| explain(&e, assignment, &account, &cwd))?;
    Ok(Prepared { ready, log, log_from, log_name, account, cwd })
}

impl Prepared {
    /// Makes the process and waits for nothing. Nobody may reap before its number is known to
    /// whoever does: call it on the thread that reaps.
    ///
    /// # Errors
    /// [`StartError`]; no process is left then.
    pub(super) fn launch(self, assignment: &Assignment) -> Result<Launched, StartError> {
        let Self { ready, log, log_from, log_name, account, cwd } = self;
        let failed = |e: io::Error| StartError::io("cannot start a process", &e);
        let (reader, writer) =
            pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(|errno| failed(errno.into()))?;
        let report = pipe::Receiver::from_owned_fd(reader).map_err(failed)?;
        let pid = ready.fork(&writer).map_err(|e| explain(&e, assignment, &account, &cwd))?;
        // It is not reaped before this thread turns to that, so its entry is there.
        let identity = session::identify(pid).unwrap_or(Identity { pid, start_ticks: 0 });
        Ok(Launched {
            leader: Leader { identity, log, log_from, log_name },
            verdict: Verdict { report, account, cwd },
        })
    }
}

impl Verdict {
    /// Waits until the program has begun, or the process has ended before.
    ///
    /// # Errors
    /// [`StartError`]: the process ends without a program.
    pub(super) async fn told(self, assignment: &Arc<Assignment>) -> Result<(), StartError> {
        let mut bytes = Vec::with_capacity(SpawnError::BYTES);
        let Self { mut report, account, cwd } = self;
        if let Err(error) = report.read_to_end(&mut bytes).await {
            tracing::warn!(%error, "cannot hear how a start went");
        }
        let Some(error) = SpawnError::from_bytes(&bytes) else { return Ok(()) };
        let plain = StartError::io("cannot start a process", &error.source);
        let assignment = Arc::clone(assignment);
        // It looks at the program's file, which may be where everything hangs.
        let explained =
            tokio::task::spawn_blocking(move || explain(&error, &assignment, &account, &cwd));
        Err(match tokio::time::timeout(EXPLAIN_WITHIN, explained).await {
            Ok(Ok(explained)) => explained,
            Ok(Err(_)) | Err(_) => plain,
        })
    }
}

/// Opens the attempt's log to append; its directories are made. A symbolic link in the file's
/// place is refused: the task's user could have put it there.
fn open_log(path: &Path) -> Result<File, StartError> {
    let open = || {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
    };
    let opened = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().unwrap_or(path);
            DirBuilder::new().recursive(true).mode(0o750).create(dir).and_then(|()| open())
        }
        other => other,
    };
    opened.map_err(|e| StartError::io(&format!("cannot open the log {}", path.display()), &e))
}

/// Makes the place of the result file where it is not simply the executor's own: a directory that
/// belongs to the task's user. What an earlier attempt of the same name left is removed.
fn result_place(assignment: &Assignment, account: &Account) -> Result<(), StartError> {
    let path = &assignment.result_path;
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
        && error.kind() != io::ErrorKind::NotADirectory
    {
        return Err(StartError::io(&format!("cannot remove {}", path.display()), &error));
    }
    if assignment.user.is_none() {
        return Ok(());
    }
    let dir = path.parent().unwrap_or(path);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir).and_then(|()| {
        match &account.ids {
            Some(ids) => chown(dir, Some(account.uid), Some(ids.gid)).map_err(io::Error::from),
            None => Ok(()),
        }
    });
    made.map_err(|e| StartError::io(&format!("cannot make the directory {}", dir.display()), &e))
}

fn environment(given: &BTreeMap<String, String>, account: &Account) -> BTreeMap<String, String> {
    let path = if account.uid.is_root() { ROOT_PATH } else { PATH };
    let mut env = BTreeMap::from(
        [
            ("PATH", path),
            ("HOME", &account.home),
            ("USER", &account.name),
            ("LOGNAME", &account.name),
            ("SHELL", "/bin/sh"),
            ("LANG", "C.UTF-8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    env.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    env
}

/// The paths to try: the program as it is, or its name in each directory of `PATH`.
fn candidates(program: &str, path: &str) -> Result<Vec<CString>, StartError> {
    if program.is_empty() {
        return Err(StartError::plain("cannot start a program: its name is empty".to_owned()));
    }
    if program.contains('/') {
        return Ok(vec![c_string(program)?]);
    }
    path.split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| c_string(&format!("{dir}/{program}")))
        .collect()
}

fn limits(asked: &Limits) -> Vec<(Resource, u64, u64)> {
    [
        (Resource::RLIMIT_AS, asked.memory, 0),
        (Resource::RLIMIT_NOFILE, asked.open_files, 0),
        (Resource::RLIMIT_NPROC, asked.processes, 0),
        // One second between the two bounds, so that the end is XCPU, which tells, and not KILL.
        (Resource::RLIMIT_CPU, asked.cpu_seconds, 1),
        (Resource::RLIMIT_FSIZE, asked.file_size, 0),
    ]
    .into_iter()
    .filter_map(|(resource, value, more)| value.map(|v| (resource, v, v.saturating_add(more))))
    .collect()
}

pub(super) fn c_string(text: &str) -> Result<CString, StartError> {
    CString::new(text).map_err(|_source| {
        StartError::plain(format!("cannot start a program: {text:?} holds a NUL byte"))
    })
}

/// Says which object the system's error is about. Of a program's file, it blocks.
fn explain(error: &SpawnError, assignment: &Assignment, account: &str, cwd: &str) -> StartError {
    let what = match error.step {
        Step::Fork => "cannot make a process".to_owned(),
        Step::Session => "cannot make a session".to_owned(),
        Step::Limits => format!("cannot set the limits {}", named(&assignment.limits)),
        Step::Nice => format!("cannot set nice {}", assignment.nice.unwrap_or(0)),
        Step::User => match &assignment.group {
            Some(group) => format!("cannot become user {account} in group {group}"),
            None => format!("cannot become user {account}"),
        },
        Step::Directory => format!("cannot change to the directory {cwd} as {account}"),
        Step::Exec => return explain_exec(&error.source, &assignment.program, cwd),
    };
    StartError::io(&what, &error.source)
}

fn named(asked: &Limits) -> String {
    [
        ("memory", asked.memory),
        ("openFiles", asked.open_files),
        ("processes", asked.processes),
        ("cpuSeconds", asked.cpu_seconds),
        ("fileSize", asked.file_size),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|v| format!("{name}={v}")))
    .collect::<Vec<_>>()
    .join(" ")
}

fn explain_exec(error: &io::Error, program: &str, cwd: &str) -> StartError {
    let what = format!("cannot start the program {program}");
    let path: PathBuf = Path::new(cwd).join(program);
    let file = program.contains('/').then(|| std::fs::metadata(&path).ok()).flatten();
    let more = match (error.raw_os_error(), file) {
        (Some(libc::ENOENT), None) if !program.contains('/') => "; no directory of PATH holds it",
        (Some(libc::ENOENT), Some(_)) => {
            let interpreter = interpreter(&path).unwrap_or_else(|| "its loader".to_owned());
            let what = format!("{what}: it is there, but its interpreter {interpreter} is not");
            return StartError::io(&what, error);
        }
        (Some(libc::EACCES), Some(file)) if file.is_dir() => "; it is a directory",
        (Some(libc::EACCES), Some(file)) if file.mode() & 0o111 == 0 => "; it is not executable",
        (Some(libc::ENOEXEC), _) => "; a script needs a first line such as #!/bin/sh",
        (Some(libc::E2BIG), _) => "; arguments and environment are too large (128 KiB each)",
        _ => "",
    };
    StartError { message: format!("{what}: {error}{more}"), transient: is_transient(error) }
}

/// The interpreter that a script's first line names, with what cannot be seen made visible.
fn interpreter(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let word = line.trim_start_matches([' ', '\t']).split([' ', '\t']).next()?;
    if word.ends_with('\r') {
        return Some(format!("{word:?} (the line ends in a carriage return, as in DOS files)"));
    }
    Some(word.to_owned())
}

#[cfg(test)]
mod tests;
