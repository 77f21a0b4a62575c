//! Which placeholders may stand where: a name that cannot have a value there is refused at load.
//!
//! The grammar of a template is `model::template`'s; this file knows only names and places.

use std::collections::{BTreeMap, BTreeSet};

use super::scheduling::cycle_unit;
use super::{Broken, Reading};
use crate::access::yaml::fields::{self, suggestion};
use crate::model::cycle::CycleUnit;
use crate::model::params::ParamType;
use crate::model::spec::{Dependency, TaskSpec, TriggerKind};
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
    /// Its kind has a fault.
    Unknown,
}

/// One template of the document, with what a message needs.
pub(super) struct Use {
    pub(super) at: fields::Place,
    pub(super) template: Template,
    pub(super) place: Place,
}

impl Reading<'_> {
    /// Checks the names in all templates of a document, and tells which texts are no templates.
    pub(super) fn check_placeholders(&mut self, spec: &TaskSpec) {
        let uses = std::mem::take(&mut self.uses);
        self.tell_strangers(spec);
        self.check_circles(&uses);
        for used in uses {
            if self.findings.is_full() {
                return;
            }
            for name in used.template.names() {
                if let Err(problem) = known(&name, used.place, spec, self.broken) {
                    self.findings.error(&used.at, format!("{{{name}}} {problem}"));
                }
            }
            self.check_cycle_as_date(&used, spec);
        }
    }

    /// Texts with a name that is none, now that the names of the document can be offered.
    fn tell_strangers(&mut self, spec: &TaskSpec) {
        let params = spec.runtime_params.keys().map(|name| format!("params.{name}"));
        let fixed = spec.static_params.keys().map(|name| format!("static.{name}"));
        // More than anybody chooses from, and a bound of the work on a hostile file.
        let declared: Vec<String> = params.chain(fixed).take(200).collect();
        for (place, text, error) in std::mem::take(&mut self.strangers) {
            if self.findings.is_full() {
                self.findings.error(&place, "");
                continue;
            }
            let error = error.among(&declared);
            self.findings.error(&place, format!("found {text:?}: {error}"));
        }
    }

    /// Defaults that wait for each other never get a value.
    fn check_circles(&mut self, uses: &[Use]) {
        let mut defaults: BTreeMap<&str, (&fields::Place, BTreeSet<String>)> = BTreeMap::new();
        for used in uses.iter().filter(|used| used.place == Place::Default) {
            let Some(of) = parameter(used) else { continue };
            let own = |name: String| name.strip_prefix("params.").map(str::to_owned);
            let names = used.template.names().into_iter().filter_map(own);
            defaults.entry(of).or_insert_with(|| (&used.at, BTreeSet::new())).1.extend(names);
        }
        let edges: BTreeMap<&str, Vec<&str>> = defaults
            .iter()
            .map(|(of, (_, names))| (*of, names.iter().map(String::as_str).collect()))
            .collect();
        for circle in circles(&edges) {
            let Some((place, _)) = circle.first().and_then(|first| defaults.get(first)) else {
                continue;
            };
            let message = format!(
                "leads back to itself: {}; give one of these a value without the others",
                circle.join(" → ")
            );
            self.findings.error(place, message);
        }
    }

    /// A cycle that is no day is no date either (docs/waves.md, rule 14).
    fn check_cycle_as_date(&mut self, used: &Use, spec: &TaskSpec) {
        let is_date = parameter(used)
            .and_then(|name| spec.runtime_params.get(name))
            .is_some_and(|schema| schema.kind == ParamType::Date);
        let unit = cycle_unit(spec);
        if self.broken.cycle || self.broken.triggers || self.broken.depends_on {
            return;
        }
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

/// The parameter that a template is, or is part of, the value of.
fn parameter(used: &Use) -> Option<&str> {
    let place = match used.place {
        // `triggers[0].params.NAME…` and `runtimeParams.NAME.default…`; names hold no dots.
        Place::Trigger(_) => used.at.path.split('.').nth(2),
        Place::Default => used.at.path.split('.').nth(1),
        Place::Start | Place::Dedup => None,
    };
    place.map(|name| name.split('[').next().unwrap_or(name))
}

/// The circles of a graph, each once, beginning and ending with the same node; in linear time.
fn circles<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in edges.keys() {
        // The nodes from `start` on, each with the number of its edges that have been followed.
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        // Where each of them stands in it.
        let mut places: BTreeMap<&str, usize> = BTreeMap::from([(*start, 0)]);
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            let next = if done.contains(node) { None } else { edges.get(node) };
            let Some(next) = next.and_then(|nodes| nodes.get(*followed)).copied() else {
                done.insert(node);
                places.remove(node);
                path.pop();
                continue;
            };
            *followed += 1;
            match places.get(next) {
                Some(at) => {
                    let nodes = path.iter().skip(*at).map(|(node, _)| *node);
                    found.push(nodes.chain([next]).collect());
                }
                None => {
                    places.insert(next, path.len());
                    path.push((next, 0));
                }
            }
        }
    }
    found
}

/// Whether a name can have a value in a place; else why not. A name that a broken part may have
/// declared is known.
fn known(name: &str, place: Place, spec: &TaskSpec, broken: Broken) -> Result<(), String> {
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
            Place::Start | Place::Dedup | Place::Default if broken.runtime_params => Ok(()),
            Place::Start | Place::Dedup | Place::Default => declared(param, spec),
            Place::Trigger(_) => never("the parameters are only being made"),
        };
    }
    if let Some(param) = name.strip_prefix("static.") {
        if broken.static_params || spec.static_params.contains_key(param) {
            return Ok(());
        }
        let near = suggestion(param, spec.static_params.keys().map(String::as_str));
        return Err(format!("names no key of staticParams{near}"));
    }
    if name.starts_with("file.") || name.starts_with("event.") {
        return source(name, place, spec, broken);
    }
    if let Some(rest) = name.strip_prefix("deps.") {
        if !matches!(place, Place::Start | Place::Default) {
            return never("the upstream has not run yet");
        }
        let upstream = rest.split_once(".output.").map_or(rest, |(id, _)| id);
        let is_edge = |edge: &Dependency| edge.task_id.as_str() == upstream;
        if broken.depends_on || spec.depends_on.iter().any(is_edge) {
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
fn source(name: &str, place: Place, spec: &TaskSpec, broken: Broken) -> Result<(), String> {
    let (wanted, word) =
        if name.starts_with("file.") { (Source::File, "file") } else { (Source::Event, "event") };
    let has = match place {
        Place::Trigger(source) => source == wanted || source == Source::Unknown,
        Place::Start | Place::Dedup | Place::Default if broken.triggers => true,
        Place::Start | Place::Dedup | Place::Default => spec.triggers.iter().any(|t| {
            matches!(
                (&t.when, wanted),
                (TriggerKind::File(_), Source::File) | (TriggerKind::Event(_), Source::Event)
            )
        }),
    };
    if has { Ok(()) } else { Err(format!("cannot be known here: this is no {word} trigger's")) }
}
