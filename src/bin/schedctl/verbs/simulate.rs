//! `simulate`: what the scheduler is going to do, by the scheduler itself on a virtual clock.
//!
//! The daemon only says what it remembers; the work is done here, so that no question about the
//! future holds up the present.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sched::access::client::Target;
use sched::access::spec_yaml::{self, SpecContext};
use sched::config::Config;
use sched::limits;
use sched::model::event::SpecFile;
use sched::model::id::TaskId;
use sched::model::record::Row;
use sched::model::simulation::{Basis, DeadlineTime, Deadlines, SimulationView};
use sched::model::suggest;
use sched::model::time::Timestamp;
use sched::scheduling::{Scenario, check_set, simulate as run};

use super::validate;
use crate::cli::{By, SimulateArgs};
use crate::exit::{Exit, Failure};
use crate::gantt;
use crate::output::note;
use crate::render;
use crate::session::{Session, usage};
use crate::spec_files;
use crate::time_text::{Direction, When};

/// How long a task without a history takes, if nothing else is said.
const ASSUMED: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// Rows of a timeline for which nobody gave a limit.
const TABLE_LIMIT: usize = 50;

/// Shows it; exit 6 if a spec is wrong.
pub(crate) fn simulate(session: &Session, args: &SimulateArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let Some(scenario) = scenario(session, args)? else { return Ok(Exit::Refused) };
    let deadlines = scenario.deadlines.clone();
    let view = run(scenario).map_err(|e| Failure::said(Exit::Refused, e.to_string()))?;
    if let Some(file) = &args.svg {
        let text = gantt::svg(&view, &deadlines, &output.zone);
        std::fs::write(file, text).map_err(|error| {
            Failure::said(Exit::Failed, format!("cannot write {}: {error}", file.display()))
        })?;
    }
    if output.is_json() {
        let body = serde_json::to_vec(&view).map_err(|e| {
            Failure::said(Exit::Failed, format!("the outcome has no JSON form: {e}"))
        })?;
        output.json(&body)?;
        return Ok(Exit::Good);
    }
    show(session, args, &view)?;
    Ok(Exit::Good)
}

fn show(session: &Session, args: &SimulateArgs, view: &SimulationView) -> Result<(), Failure> {
    let output = &session.output;
    let limit = match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => TABLE_LIMIT,
    };
    output.line(&render::simulation::pages(view, limit, output))?;
    for line in render::simulation::notes(view, limit) {
        output.note(&line);
    }
    Ok(())
}

/// What to simulate; `None`: a spec is wrong, and that has been said.
fn scenario(session: &Session, args: &SimulateArgs) -> Result<Option<Scenario>, Failure> {
    let output = &session.output;
    let asked_from = match args.from {
        Some(when) => Some(resolve(when, output.now, session, "--from")?),
        None => None,
    };
    let (basis, now) = basis(session, args, asked_from.unwrap_or(output.now))?;
    let from = asked_from.unwrap_or(now);
    let to = match args.to {
        Some(when) => resolve(when, from, session, "--to")?,
        None => from.plus(DAY),
    };
    if to <= from {
        return Err(usage(format!("--to {to} is not after --from {from}")));
    }
    let longest = DAY * limits::SIMULATION_DAYS_MAX;
    if to.since(from) > longest {
        let days = limits::SIMULATION_DAYS_MAX;
        return Err(usage(format!("--from {from} to --to {to} is longer than {days} days")));
    }
    let specs = match specs(args, &basis)? {
        Read::Wrong => return Ok(None),
        Read::None => None,
        Read::Good(files) => Some(files),
    };
    let known = known(&basis, specs.as_deref());
    let mut assume = ASSUMED;
    let mut assume_of = BTreeMap::new();
    for one in &args.assume {
        match &one.task {
            Some(task) => drop(assume_of.insert(task_id(task, &known)?, one.length)),
            None => assume = one.length,
        }
    }
    let mut deadlines = Deadlines { zone: output.zone.clone(), ..Deadlines::none() };
    for one in &args.deadline {
        let by = match one.by {
            By::Daily(time) => DeadlineTime::Daily(time),
            By::Once(when) => DeadlineTime::At(resolve(when, from, session, "--deadline")?),
        };
        match &one.task {
            Some(task) => drop(deadlines.of.insert(task_id(task, &known)?, by)),
            None => deadlines.all = Some(by),
        }
    }
    let event = |one: &crate::cli::EventArg| {
        let at = resolve(one.at, from, session, "--event")?;
        if !(from..to).contains(&at) {
            let name = &one.name;
            return Err(usage(format!("--event {name}={at} is not between {from} and {to}")));
        }
        Ok((at, one.name.clone()))
    };
    let events = args.event.iter().map(event).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Some(Scenario {
        basis,
        specs,
        from,
        to,
        percentile: args.percentile,
        assume,
        assume_of,
        deadlines,
        events,
        instances_max: limits::SIMULATION_INSTANCES_MAX,
    }))
}

fn resolve(
    when: When,
    from: Timestamp,
    session: &Session,
    option: &str,
) -> Result<Timestamp, Failure> {
    when.resolve(from, &session.output.zone, Direction::Hence)
        .ok_or_else(|| usage(format!("{option} lies outside the calendar's years")))
}

/// What the daemon remembers, as of when; with definitions of its own the simulation needs none.
fn basis(
    session: &Session,
    args: &SimulateArgs,
    from: Timestamp,
) -> Result<(Basis, Timestamp), Failure> {
    let configured = |file| -> Result<_, Failure> {
        let config = Config::load(file)
            .map_err(|e| Failure::said(validate::exit_of(&e), validate::in_full(&e)))?;
        Ok(sched::model::settings::Settings::clone(&config.settings))
    };
    match session.view::<Basis>(&Target::new("/simulation-basis")) {
        Ok(mut basis) => {
            if let Some(file) = &args.config {
                basis.settings = configured(Some(file.as_path()))?;
                basis.task_types = basis.settings.task_types.keys().cloned().collect();
            }
            let at = basis.at;
            Ok((basis, at))
        }
        Err(failure) if failure.exit() == Exit::Unreachable && !args.specs.is_empty() => {
            note(&format!(
                "{}; without a daemon there is no history: every task takes as long as --assume says",
                failure.text()
            ));
            Ok((Basis::bare(from, configured(args.config.as_deref())?), from))
        }
        Err(failure) => Err(failure),
    }
}

/// What came of reading the definitions that were named.
enum Read {
    /// None were.
    None,
    /// Something is wrong with them, and that has been said.
    Wrong,
    /// All of them.
    Good(Vec<SpecFile>),
}

fn specs(args: &SimulateArgs, basis: &Basis) -> Result<Read, Failure> {
    if args.specs.is_empty() {
        return Ok(Read::None);
    }
    let context = SpecContext {
        task_types: basis.task_types.iter().cloned().collect(),
        timezone: basis.settings.timezone.clone(),
        queues: basis.settings.queues.iter().map(|q| q.name.as_str().to_owned()).collect(),
        now: None,
    };
    let given = spec_files::gather(&args.specs, &mut std::io::stdin());
    if given.is_missing {
        let first = given.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(Failure::said(Exit::NotFound, first));
    }
    let read = |file: &spec_files::Given| spec_yaml::read(&file.shown, &file.bytes, &context);
    let files: Vec<SpecFile> = given.files.iter().map(read).collect();
    let of_files = files.iter().flat_map(|file| &file.errors);
    let set = check_set(files.clone());
    let errors: Vec<String> =
        given.errors.iter().chain(of_files).chain(&set.errors).map(ToString::to_string).collect();
    for error in &errors {
        note(&render::clean(error));
    }
    Ok(if errors.is_empty() { Read::Good(files) } else { Read::Wrong })
}

/// The tasks that there are.
fn known(basis: &Basis, specs: Option<&[SpecFile]>) -> BTreeSet<TaskId> {
    if let Some(files) = specs {
        let specs = files.iter().flat_map(|file| &file.specs);
        return specs.map(|spec| spec.task_id.clone()).collect();
    }
    let in_force = |row: &Row| {
        if let Row::Task(task) = row { task.revision.map(|_| task.task_id.clone()) } else { None }
    };
    basis.rows.iter().filter_map(in_force).collect()
}

fn task_id(text: &str, known: &BTreeSet<TaskId>) -> Result<TaskId, Failure> {
    if let Some(task) = known.iter().find(|task| task.as_str() == text) {
        return Ok(task.clone());
    }
    let near = suggest::nearest(text, known.iter().map(TaskId::as_str));
    let near = near.map(|id| format!("; did you mean {id}?")).unwrap_or_default();
    Err(Failure::said(Exit::NotFound, format!("no task {text}{near}")))
}
