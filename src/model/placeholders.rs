//! What placeholders stand for (contract §2): one table, wherever they are filled in.

use super::cycle::Cycle;
use super::deps::Deps;
use super::id::InstanceId;
use super::instance::{Cause, Instance};
use super::params::{self, placeholder_text};
use super::spec::{JsonMap, TaskSpec};
use super::template::{Budget, Template};
use super::time::Timestamp;

/// What is known where placeholders are filled in.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The definition.
    pub spec: &'a TaskSpec,
    /// The instance's id, also before the instance is there.
    pub instance_id: &'a InstanceId,
    /// The attempt, once there is one.
    pub attempt: Option<u32>,
    /// Its cycle.
    pub cycle: &'a Cycle,
    /// Its nominal time.
    pub scheduled_time: Timestamp,
    /// Runtime parameters, as far as known.
    pub params: &'a JsonMap,
    /// What made it: the file's path, the event's parameters.
    pub trigger: &'a Cause,
    /// The direct upstreams, once they have ended.
    pub deps: Option<&'a Deps>,
}

impl<'a> Known<'a> {
    /// What is known of an instance and its parameters.
    #[must_use]
    pub fn of(
        spec: &'a TaskSpec,
        i: &'a Instance,
        params: &'a JsonMap,
        deps: Option<&'a Deps>,
    ) -> Self {
        Self {
            spec,
            instance_id: &i.instance_id,
            attempt: (i.attempt > 0).then_some(i.attempt),
            cycle: &i.cycle,
            scheduled_time: i.scheduled_time,
            params,
            trigger: &i.trigger,
            deps,
        }
    }

    /// The value of a placeholder; `None`: it has none here.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        match name {
            "taskId" => return Some(self.spec.task_id.to_string()),
            "version" => return Some(self.spec.version.to_string()),
            "instanceId" => return Some(self.instance_id.to_string()),
            "attempt" => return self.attempt.map(|n| n.to_string()),
            "handler" => return Some(self.spec.handler.clone()),
            "cycle" => return Some(self.cycle.label().to_owned()),
            "date" => return Some(self.cycle.date().to_owned()),
            "scheduledTime" => return Some(self.scheduled_time.to_string()),
            _ => {}
        }
        let (group, rest) = name.split_once('.')?;
        match (group, self.trigger) {
            ("params", _) => self.params.get(rest).map(placeholder_text),
            ("static", _) => self.spec.static_params.get(rest).map(placeholder_text),
            ("event", Cause::Event { params, .. }) => params.get(rest).map(placeholder_text),
            ("file", Cause::File { path }) if rest == "path" => Some(path.clone()),
            ("file", Cause::File { path }) if rest == "name" => {
                path.rsplit('/').next().map(str::to_owned)
            }
            ("deps", _) => upstream_output(self.deps?, rest),
            _ => None,
        }
    }

    /// Fills a text.
    ///
    /// # Errors
    /// In words, which placeholder has no value here.
    pub fn text(&self, template: &Template) -> Result<String, String> {
        template.fill(&|name| self.value(name)).map_err(|unfilled| unfilled.to_string())
    }

    /// Fills every text inside a JSON object.
    ///
    /// # Errors
    /// In words, which placeholder has no value here.
    pub fn map(&self, map: &JsonMap) -> Result<JsonMap, String> {
        let budget = Budget::new();
        let fill = |value| params::fill_value(value, &|name: &str| self.value(name), &budget);
        map.iter()
            .map(|(key, value)| {
                let filled = fill(value).map_err(|error| format!("{key}: {error}"))?;
                Ok((key.clone(), filled))
            })
            .collect()
    }
}

/// `TASKID.output.NAME`; a task id may itself hold dots and the word `output`.
fn upstream_output(deps: &Deps, rest: &str) -> Option<String> {
    rest.match_indices(".output.").find_map(|(at, between)| {
        let name = rest.get(at + between.len()..)?;
        let task = rest.get(..at)?;
        let dep = deps.0.iter().find(|dep| dep.task_id.as_str() == task)?;
        dep.output.as_ref()?.get(name).map(placeholder_text)
    })
}
