//! Processes at the level of the system: start one, signal exactly one, reap whatever ended.
//!
//! The only file with `unsafe`: what must be set between fork and exec (session, limits, user,
//! directory, dispositions, descriptors) has no safe way in std, whose own fork waits until the
//! program has begun, however long that takes; wait4 is the one call that gives
//! exit status and resource use together, and a pidfd is the one way to signal a process that is
//! not our child without the risk of hitting another that took its number.
//! It knows nothing of tasks, attempts or messages for people.
//!
//! It is longer than 400 lines because all `unsafe` of the house stands here.

#![expect(unsafe_code, reason = "the one place of fork, exec and wait4; each block says why")]

use std::ffi::{CString, c_char, c_int};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, chdir, setgroups, setresgid, setresuid, setsid, setuid};

use super::session::{self, Identity};

/// Signals there are, the real-time ones included.
const SIGNAL_MAX: c_int = 64;
/// Where a child that has no program yet keeps the pipe on which it reports a failed start.
const REPORT: c_int = 3;
/// Where close_range is missing, descriptors below this one are closed one by one.
const CLOSED_ONE_BY_ONE: c_int = 1024;

/// All that a new process is to be; made before the fork, because nothing may be allocated after.
pub(super) struct Plan {
    /// Paths tried in this order until one can be executed.
    pub(super) programs: Vec<CString>,
    /// Argument vector, the program's name first.
    pub(super) argv: Vec<CString>,
    /// `NAME=value`.
    pub(super) env: Vec<CString>,
    /// Where it starts.
    pub(super) cwd: CString,
    /// Whether a missing `cwd` is forgiven, with `/` in its place.
    pub(super) cwd_optional: bool,
    /// Who it becomes; `None`: whoever we are.
    pub(super) ids: Option<Ids>,
    /// File mode mask.
    pub(super) umask: Mode,
    /// Niceness.
    pub(super) nice: Option<i32>,
    /// Resource, soft and hard bound.
    pub(super) limits: Vec<(Resource, u64, u64)>,
}

/// Who a process becomes, looked up before the fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids {
    /// User.
    pub(super) uid: Uid,
    /// Primary group.
    pub(super) gid: Gid,
    /// All groups.
    pub(super) groups: Vec<Gid>,
}

/// What failed between the decision to start and the new program's first instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Making the process.
    Fork,
    /// Its session.
    Session,
    /// Resource bounds.
    Limits,
    /// Niceness.
    Nice,
    /// Becoming the user.
    User,
    /// The directory.
    Directory,
    /// The program.
    Exec,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Fork,
        Self::Session,
        Self::Limits,
        Self::Nice,
        Self::User,
        Self::Directory,
        Self::Exec,
    ];

    /// This step's failure. No allocation: it is made in the child.
    fn failed(self) -> impl Fn(nix::errno::Errno) -> SpawnError {
        move |errno| SpawnError { step: self, source: errno.into() }
    }
}

/// A start that failed.
#[derive(Debug)]
pub(super) struct SpawnError {
    /// Where.
    pub(super) step: Step,
    /// The system's word.
    pub(super) source: io::Error,
}

impl SpawnError {
    /// Longest form of [`Self::to_bytes`].
    pub(super) const BYTES: usize = 5;

    /// What the child writes into its pipe.
    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.source.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
        [self.step as u8, a, b, c, d]
    }

    /// What the parent reads from it; nothing at all says that the program has begun, or that the
    /// process ended before.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (step, errno) = bytes.split_first()?;
        let step = Step::ALL.get(usize::from(*step)).copied().unwrap_or(Step::Fork);
        let errno = errno.try_into().map_or(libc::EIO, i32::from_ne_bytes);
        Some(Self { step, source: io::Error::from_raw_os_error(errno) })
    }
}

/// C strings together with the null-terminated vector of pointers that execve wants.
struct Pointers {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead into the heap buffers of `_strings`, which live as long as this value
// and are never written; moving the value to another thread moves neither.
unsafe impl Send for Pointers {}
// SAFETY: as above; shared reads of immutable bytes.
unsafe impl Sync for Pointers {}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let mut pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { _strings: strings, pointers }
    }
}

/// All that a fork needs, so that it waits for nothing.
pub(super) struct Ready {
    plan: Plan,
    argv: Pointers,
    env: Pointers,
    input: File,
    log: File,
}

impl Ready {
    /// Makes everything before the fork: the process is to be the leader of its own session, with
    /// /dev/null as its input and `log` as its output and error output.
    ///
    /// # Errors
    /// [`SpawnError`] of [`Step::Fork`].
    pub(super) fn new(mut plan: Plan, log: File) -> Result<Self, SpawnError> {
        let input =
            File::open("/dev/null").map_err(|source| SpawnError { step: Step::Fork, source })?;
        let argv = Pointers::new(std::mem::take(&mut plan.argv));
        let env = Pointers::new(std::mem::take(&mut plan.env));
        Ok(Self { plan, argv, env, input, log })
    }

    /// Makes the process and does not wait for its program to begin, which may take for ever: on
    /// a mount that hangs, behind a lease. The child writes a [`SpawnError`] into `report`, the
    /// writing end of a pipe that closes at exec, or at its end. It must be reaped with [`reap`].
    ///
    /// # Errors
    /// [`SpawnError`] of [`Step::Fork`]; no process is left then.
    pub(super) fn fork(&self, report: &OwnedFd) -> Result<u32, SpawnError> {
        let failed = Step::Fork.failed();
        // A signal to the child must not run our handlers, which write to pipes that it shares.
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))
            .map_err(&failed)?;
        // SAFETY: other threads may hold locks, so the child makes system calls only, on memory
        // that was filled before; it neither allocates nor frees and never comes back from here.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            self.become_task(report);
        }
        let pid = nix::errno::Errno::result(pid);
        // Setting a mask that was there cannot fail.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None).ok();
        Ok(pid.map_err(failed)?.unsigned_abs())
    }

    /// The child's whole life before the program, or its end.
    fn become_task(&self, report: &OwnedFd) -> ! {
        let error =
            match self.take_descriptors(report.as_raw_fd()).and_then(|()| prepare(&self.plan)) {
                Err(error) => error,
                Ok(()) => {
                    let source = exec(&self.plan.programs, &self.argv, &self.env);
                    SpawnError { step: Step::Exec, source }
                }
            };
        let bytes = error.to_bytes();
        // SAFETY: the bytes live on this stack; `_exit` runs nothing of ours.
        unsafe {
            libc::write(REPORT, bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127)
        }
    }

    /// Puts the four descriptors in their places and closes all others first thing: as long as
    /// this child hangs it must hold neither the executor's lock nor its connection.
    fn take_descriptors(&self, report: c_int) -> Result<(), SpawnError> {
        let (input, log) = (self.input.as_raw_fd(), self.log.as_raw_fd());
        for (from, to) in [(input, 0), (log, 1), (log, 2), (report, REPORT)] {
            // 0 to 2 are open in every process of ours, so `from` is none of them, and it is the
            // last of the four that may take another's number.
            // SAFETY: a system call on numbers.
            if from != to && unsafe { libc::dup3(from, to, 0) } < 0 {
                return Err(Step::Fork.failed()(nix::errno::Errno::last()));
            }
        }
        // SAFETY: system calls on numbers; nothing of ours uses these descriptors again.
        unsafe {
            libc::fcntl(REPORT, libc::F_SETFD, libc::FD_CLOEXEC);
            let first = REPORT.unsigned_abs() + 1;
            if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
                // An old kernel. What is above is closed by exec.
                for other in REPORT + 1..CLOSED_ONE_BY_ONE {
                    libc::close(other);
                }
            }
        }
        Ok(())
    }
}

/// In the child: everything but the exec itself, in the order that rights demand.
fn prepare(plan: &Plan) -> Result<(), SpawnError> {
    let at = Step::failed;
    setsid().map_err(at(Step::Session))?;
    reset_signals();
    for (resource, soft, hard) in &plan.limits {
        setrlimit(*resource, *soft, *hard).map_err(at(Step::Limits))?;
    }
    if let Some(nice) = plan.nice {
        // SAFETY: a plain system call without pointers.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
            return Err(at(Step::Nice)(nix::errno::Errno::last()));
        }
    }
    if let Some(ids) = &plan.ids {
        setgroups(&ids.groups).map_err(at(Step::User))?;
        setresgid(ids.gid, ids.gid, ids.gid).map_err(at(Step::User))?;
        setresuid(ids.uid, ids.uid, ids.uid).map_err(at(Step::User))?;
        // What was given up must not come back.
        if !ids.uid.is_root() && setuid(Uid::from_raw(0)).is_ok() {
            return Err(at(Step::User)(nix::errno::Errno::EPERM));
        }
    }
    umask(plan.umask);
    // As the user: a directory that only root may enter is not for this task.
    match chdir(plan.cwd.as_c_str()) {
        Ok(()) => {}
        Err(_) if plan.cwd_optional => chdir(c"/").map_err(at(Step::Directory))?,
        Err(errno) => return Err(at(Step::Directory)(errno)),
    }
    Ok(())
}

/// Every signal at its default and none blocked: a disposition to ignore survives exec.
fn reset_signals() {
    for number in 1..=SIGNAL_MAX {
        // SAFETY: SIG_DFL installs no code of ours; numbers that cannot be set are refused.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    // Setting a mask that exists cannot fail.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).ok();
}

/// Marks every descriptor above 2 to be closed by exec, those we inherited included. They cannot
/// be closed here: one is the pipe on which std reports a failed start.
fn close_on_exec() {
    // SAFETY: a system call on numbers; an old kernel refuses it, and then only descriptors that
    // were inherited by us without the flag remain.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
}

/// Tries the paths in turn; comes back only if none could be executed, with the error that tells
/// most, as a shell's search does. Without a `#!` line a script is refused, not guessed at.
fn exec(programs: &[CString], argv: &Pointers, env: &Pointers) -> io::Error {
    let mut told = io::Error::from_raw_os_error(libc::ENOENT);
    for program in programs {
        // SAFETY: the path is a C string, both vectors end in null and outlive the call.
        unsafe {
            libc::execve(program.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) if programs.len() > 1 => {}
            Some(libc::EACCES) => told = error,
            _ => return error,
        }
    }
    told
}

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reaped {
    /// Its process id, free for others from now on.
    pub(super) pid: u32,
    /// How it ended.
    pub(super) end: End,
    /// Processor time in user mode, its waited-for children's included.
    pub(super) user: Duration,
    /// Processor time in the kernel, likewise.
    pub(super) system: Duration,
    /// Peak memory of the largest of them.
    pub(super) max_rss_bytes: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Takes one ended child of this process, if there is one; never waits.
pub(super) fn reap() -> Option<Reaped> {
    let mut status: c_int = 0;
    // SAFETY: an all-zero rusage is a valid value of that plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers lead to live values of the right type.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let end = if libc::WIFSIGNALED(status) {
        End::Signalled(libc::WTERMSIG(status))
    } else {
        End::Exited(libc::WEXITSTATUS(status))
    };
    Some(Reaped {
        pid,
        end,
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Sends a signal to this very process; false if it is gone or may not be signalled.
///
/// The descriptor is taken first and the identity looked at second, so a number that was given to
/// another process in between is never signalled.
pub(super) fn signal(to: Identity, signal: Signal) -> bool {
    let Ok(pid) = libc::pid_t::try_from(to.pid) else { return false };
    // SAFETY: a system call on numbers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Some(raw) = c_int::try_from(raw).ok().filter(|fd| *fd >= 0) else { return false };
    // SAFETY: the kernel has just given us this descriptor and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    if session::identify(to.pid) != Some(to) {
        return false;
    }
    // SAFETY: the descriptor is open, and a null siginfo asks for the one that kill would make.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            fd.as_raw_fd(),
            signal as c_int,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    sent == 0
}

/// Sends a signal to the group of a leader that has not been reaped yet: its number is still its.
pub(super) fn signal_group(leader: Identity, signal: Signal) {
    if let Ok(pid) = libc::pid_t::try_from(leader.pid) {
        // A group that is gone already is what a signal is for.
        nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), signal).ok();
    }
}

/// Holds a lease on a file, as a file server does: whoever executes it waits for
/// `/proc/sys/fs/lease-break-time`, or until the file is closed.
#[cfg(test)]
pub(super) fn lease(file: &File) {
    /// fcntl(2); the libc crate does not name it.
    const F_SETSIG: c_int = 10;
    // SAFETY: system calls on numbers. The signal for the holder is one that is ignored.
    unsafe {
        assert_eq!(libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG), 0);
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK), 0);
    }
}

/// Starts an executor's process: its own session, nothing of ours but `PATH` and the log.
///
/// # Errors
/// The system's.
pub(super) fn spawn_executor(program: &Path, args: &[String], log: File) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(args).env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let leave = || {
        setsid()?;
        reset_signals();
        close_on_exec();
        Ok(())
    };
    // SAFETY: as in `spawn`: system calls only, no memory is touched.
    unsafe { command.pre_exec(leave) };
    command.spawn()
}
