//! `schedd`: the daemon, its executors, and a check of the configuration.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use sched::access::spec_dir::SpecDir;
use sched::config::Config;
use sched::daemon;
use sched::daemon::print::Audience;
use sched::execution::executor::{self, ExecutorArgs};
use sched::model::id::ExecutorId;
use sched::scheduling::check_set;

/// A task scheduler for one machine.
///
/// Without a command it runs the daemon: in the foreground, as systemd or a terminal wants it.
#[derive(Debug, Parser)]
#[command(name = "schedd", version, subcommand_negates_reqs = true)]
struct Cli {
    /// Configuration file; default: /etc/schedd/schedd.yaml for root, else
    /// $XDG_CONFIG_HOME/schedd/schedd.yaml; without any file the defaults hold.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks the configuration and the specs it names, and says what is wrong.
    Check,
    /// Runs tasks for the daemon, which starts it; not for people.
    #[command(hide = true)]
    Executor {
        /// Its configured id.
        #[arg(long)]
        id: String,
        /// The daemon's state directory.
        #[arg(long)]
        state: PathBuf,
        /// Where task logs go.
        #[arg(long)]
        logs: PathBuf,
        /// The daemon's private socket.
        #[arg(long)]
        socket: PathBuf,
        /// Period of its heartbeat.
        #[arg(long)]
        heartbeat_ms: u64,
    },
}

/// Exit statuses of the contract, §5.
mod exit {
    pub(super) const USAGE: u8 = 64;
    pub(super) const INVARIANT: u8 = 70;
    pub(super) const CONFIG: u8 = 78;
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => {
            // Help and version are asked for, not mistakes.
            let status = if asked.use_stderr() { exit::USAGE } else { 0 };
            return if asked.print().is_ok() { status.into() } else { 1.into() };
        }
    };
    let audience = match daemon::tracing::init() {
        Ok(audience) => audience,
        Err(error) => return fail(&error, exit::INVARIANT),
    };
    if let Some(Command::Executor { id, state, logs, socket, heartbeat_ms }) = cli.command {
        let heartbeat = Duration::from_millis(heartbeat_ms);
        let id = ExecutorId::from(id.as_str());
        let args = ExecutorArgs { id, state_dir: state, log_dir: logs, socket, heartbeat };
        return match executor::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error, 1),
        };
    }
    let config = match Config::load(cli.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return fail(&error, exit::CONFIG),
    };
    match cli.command {
        Some(Command::Check) => check(&config),
        Some(Command::Executor { .. }) | None => run(config, audience),
    }
}

fn run(config: Config, audience: Audience) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return fail(&error, exit::INVARIANT),
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| daemon::run(config, program, audience))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&error, error.exit_status()),
        // The panic's text is on stderr already; nothing of its batch was made durable.
        Err(_panic) => exit::INVARIANT.into(),
    }
}

fn check(config: &Config) -> ExitCode {
    let found = SpecDir::new(config.spec_dir.clone(), config.spec_context()).scan_once();
    if let Some(problem) = found.unreadable {
        tracing::error!("{problem}");
        return exit::CONFIG.into();
    }
    let tasks: usize = found.changed.iter().map(|file| file.specs.len()).sum();
    let mut errors: Vec<_> = found.changed.iter().flat_map(|file| file.errors.clone()).collect();
    errors.extend(check_set(found.changed).errors);
    for error in &errors {
        tracing::error!("{error}");
    }
    tracing::info!("{tasks} tasks in {}, {} errors", config.spec_dir.display(), errors.len());
    if errors.is_empty() { ExitCode::SUCCESS } else { exit::CONFIG.into() }
}

/// Says an error with its causes and gives the status back.
fn fail(error: &dyn std::error::Error, status: u8) -> ExitCode {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    for line in text.lines() {
        tracing::error!("{line}");
    }
    status.into()
}
