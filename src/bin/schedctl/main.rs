//! `schedctl`: the client of the daemon's HTTP/JSON interface.

mod cli;
mod clock;
mod exit;
mod gantt;
mod json_text;
mod output;
mod render;
mod session;
mod socket;
mod spec_files;
mod time_text;
mod verbs;
mod xml_text;
mod yaml_text;

use std::process::ExitCode;

use clap::Parser as _;
use sched::access::client::Client;
use sched::config::Places;

use crate::cli::{Cli, StatusArgs, Verb};
use crate::exit::{Exit, Failure};
use crate::output::{Output, note};
use crate::session::Session;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => {
            // Help and version are no errors; where the text cannot go, nobody reads it.
            let _nobody_there = refusal.print();
            return if refusal.use_stderr() { Exit::Usage } else { Exit::Good }.into();
        }
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Good.into(),
        Err(failure) => {
            note(&format!("schedctl: {}", failure.text()));
            failure.exit().into()
        }
    }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let output = Output::new(&cli, clock::now());
    let verb = cli.verb.unwrap_or(Verb::Status(StatusArgs { task: None }));
    // What needs no daemon.
    if let Verb::Validate(args) = &verb {
        return verbs::validate::validate(&output, args);
    }
    if let Verb::Schema = &verb {
        return verbs::schema::schema(&output);
    }
    if let Verb::Next(args) = &verb
        && let Some(expr) = &args.expr
    {
        return verbs::next::of_expression(&output, args, expr);
    }
    let path = socket::find(cli.socket.as_deref(), &Places::own());
    let session = Session { client: Client::at(&path)?, output };
    ask(&session, &verb)
}

fn ask(session: &Session, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Status(args) => verbs::status::status(session, args),
        Verb::List(args) => verbs::list::list(session, args),
        Verb::Show(args) => verbs::show::show(session, args),
        Verb::Ps(args) => verbs::ps::ps(session, args),
        Verb::Run(args) => verbs::run::run(session, args),
        Verb::Wait(args) => verbs::wait::wait(session, args),
        Verb::Logs(args) => verbs::logs::logs(session, args),
        Verb::Cancel(args) => verbs::change::cancel(session, args),
        Verb::Skip(args) => verbs::change::skip(session, args),
        Verb::Retry(args) => verbs::change::retry(session, args),
        Verb::Pause(args) => verbs::change::pause(session, args),
        Verb::Resume(args) => verbs::change::resume(session, args),
        Verb::Priority(args) => verbs::change::priority(session, args),
        Verb::Emit(args) => verbs::emit::emit(session, args),
        Verb::Backfill(args) => verbs::backfill::backfill(session, args),
        Verb::Next(args) => verbs::next::next(session, args),
        Verb::Simulate(args) => verbs::simulate::simulate(session, args),
        Verb::Fires(args) => verbs::fires::fires(session, args),
        Verb::Explain(args) => verbs::explain::explain(session, args),
        Verb::Graph(args) => verbs::graph::graph(session, args),
        Verb::Events(args) => verbs::events::events(session, args),
        Verb::Validate(args) => verbs::validate::validate(&session.output, args),
        Verb::Plan(args) => verbs::plan::plan(session, args),
        Verb::Apply(args) => verbs::apply::apply(session, args),
        Verb::Remove(args) => verbs::remove::remove(session, args),
        Verb::History(args) => verbs::history::history(session, args),
        Verb::Rollback(args) => verbs::rollback::rollback(session, args),
        Verb::Unpin(args) => verbs::rollback::unpin(session, args),
        Verb::Schema => verbs::schema::schema(&session.output),
        Verb::Reload => verbs::daemon::reload(session),
        Verb::Executors => verbs::daemon::executors(session),
        Verb::Queues => verbs::daemon::queues(session),
        Verb::Shutdown(args) => verbs::daemon::shutdown(session, args),
        Verb::Version => verbs::daemon::version(session),
    }
}
