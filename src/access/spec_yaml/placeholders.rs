//! Which placeholders may stand where: a name that cannot have a value there is refused at load.
//!
//! The grammar of a template is `model::template`'s; this file knows only names and places.

use super::Reading;
use super::scheduling::cycle_unit;
use crate::access::yaml::fields::{self, suggestion};
use crate::model::cycle::CycleUnit;
use crate::model::params::ParamType;
use crate::model::spec::{TaskSpec, TriggerKind};
use crate::model::template::Template;

/// When a template is filled in, which decides what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At the start of an attempt: all that belongs to it.
    Start,
    /// When the instance is made: no attempt, no upstream's output.
    Dedup,
    /// A parameter's default: no attempt, and not itself.
    Default,
    /// A trigger's parameters, with the kind of that trigger.
    Trigger(Source),
}

/// What a trigger knows beside the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The file.
    File,
    /// What was emitted.
    Event,
    /// Nothing.
    Time,
}

/// One template of the document, with what a message needs.
pub(super) struct Use {
    pub(super) at: fields::Place,
    pub(super) template: Template,
    pub(super) place: Place,
}

impl Reading<'_> {
    /// Checks the names in all templates of a document.
    ///
    /// Where the document has faults already, a trigger or an edge may be missing from `spec` for
    /// that reason; `whole: false` leaves out what hangs on these.
    pub(super) fn check_placeholders(&mut self, spec: &TaskSpec, whole: bool) {
        for used in std::mem::take(&mut self.uses) {
            for name in used.template.names() {
                let linked = ["file.", "event.", "deps."].iter().any(|p| name.starts_with(p));
                if linked && !whole {
                    continue;
                }
                if let Err(problem) = known(&name, used.place, spec) {
                    self.findings.error(&used.at, format!("{{{name}}} {problem}"));
                }
            }
            self.check_cycle_as_date(&used, spec);
        }
    }

    /// A cycle that is no day is no date either (docs/waves.md, rule 14).
    fn check_cycle_as_date(&mut self, used: &Use, spec: &TaskSpec) {
        let parameter = match used.place {
            Place::Trigger(_) => used.at.path.rsplit('.').next(),
            Place::Default => used.at.path.split('.').nth(1),
            Place::Start | Place::Dedup => None,
        };
        let is_date = parameter
            .and_then(|name| spec.runtime_params.get(name))
            .is_some_and(|schema| schema.kind == ParamType::Date);
        let unit = cycle_unit(spec);
        if is_date
            && used.template.names().contains("cycle")
            && unit.is_some_and(|unit| unit != CycleUnit::Day)
        {
            let message =
                "{cycle} is not a date here, because the cycle's unit is not DAY; use {date}";
            self.findings.error(&used.at, message);
        }
    }
}

/// Whether a name can have a value in a place; else why not.
fn known(name: &str, place: Place, spec: &TaskSpec) -> Result<(), String> {
    let never = |what: &str| Err(format!("cannot be known here: {what}"));
    match name {
        "taskId" | "version" | "instanceId" | "cycle" | "date" | "scheduledTime" | "handler" => {
            return Ok(());
        }
        "attempt" if place == Place::Start => return Ok(()),
        "attempt" => return never("there is no attempt yet"),
        _ => {}
    }
    if let Some(param) = name.strip_prefix("params.") {
        return match place {
            Place::Start | Place::Dedup | Place::Default => declared(param, spec),
            Place::Trigger(_) => never("the parameters are only being made"),
        };
    }
    if let Some(param) = name.strip_prefix("static.") {
        if spec.static_params.contains_key(param) {
            return Ok(());
        }
        let near = suggestion(param, spec.static_params.keys().map(String::as_str));
        return Err(format!("names no key of staticParams{near}"));
    }
    if name.starts_with("file.") || name.starts_with("event.") {
        return source(name, place, spec);
    }
    if let Some(rest) = name.strip_prefix("deps.") {
        if !matches!(place, Place::Start | Place::Default) {
            return never("the upstream has not run yet");
        }
        let upstream = rest.split_once(".output.").map_or(rest, |(id, _)| id);
        if spec.depends_on.iter().any(|edge| edge.task_id.as_str() == upstream) {
            return Ok(());
        }
        let near = suggestion(upstream, spec.depends_on.iter().map(|e| e.task_id.as_str()));
        return Err(format!("names a task that is not in dependsOn{near}"));
    }
    Err("is not a placeholder".to_owned())
}

fn declared(param: &str, spec: &TaskSpec) -> Result<(), String> {
    if spec.runtime_params.contains_key(param) {
        return Ok(());
    }
    let near = suggestion(param, spec.runtime_params.keys().map(String::as_str));
    Err(format!("names no parameter of runtimeParams{near}"))
}

/// `{file.…}` and `{event.…}`: only where such a trigger can have made the instance.
fn source(name: &str, place: Place, spec: &TaskSpec) -> Result<(), String> {
    let (wanted, word) =
        if name.starts_with("file.") { (Source::File, "file") } else { (Source::Event, "event") };
    let has = match place {
        Place::Trigger(source) => source == wanted,
        Place::Start | Place::Dedup | Place::Default => spec.triggers.iter().any(|t| {
            matches!(
                (&t.when, wanted),
                (TriggerKind::File(_), Source::File) | (TriggerKind::Event(_), Source::Event)
            )
        }),
    };
    if has { Ok(()) } else { Err(format!("cannot be known here: this is no {word} trigger's")) }
}
