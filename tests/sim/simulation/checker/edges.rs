//! Edges: who waits, who goes on, who is skipped; and the parameters that flow along them
//! (docs/waves.md, rules 2, 5, 6).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Blocked, Cancelled, Checker, Instance, InstanceId, Pending, Rows, Seen, Succeeded, Verdict,
    ensure, in_force, instance, instances, revision,
};
use crate::model::condition::Condition;
use crate::model::instance::{Edge, Reason};
use crate::model::spec::{DepType, OnDependencyTimeout, Strength, TaskSpec};

/// What the conditions of the workload mean, by hand. `None`: no answer.
fn holds(condition: &Condition, upstream: &Instance) -> Option<bool> {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64);
    match condition.as_str() {
        "output.n > 4" => Some(number(upstream.output.as_ref()?.get("n"))? > 4),
        "params.n > 2" => Some(number(upstream.runtime_params.get("n"))? > 2),
        _ => Some(upstream.state == Succeeded),
    }
}

fn condition<'a>(spec: &'a TaskSpec, edge: &Edge) -> Option<&'a Condition> {
    spec.depends_on.iter().find(|d| d.task_id == edge.task_id)?.when.as_ref()
}

fn is_skipped(seen: &Seen) -> bool {
    let reasons =
        [Reason::ConditionFalse, Reason::UpstreamSkipped, Reason::SkippedByUser, Reason::FileGone];
    seen.state == Cancelled && seen.reason.is_some_and(|reason| reasons.contains(&reason))
}

/// How an edge stands whose cycle the upstream fired for without making anything (rule 7): there is
/// a state, CANCELLED, and neither output nor parameters.
fn of_nothing(edge: &Edge, spec: &TaskSpec) -> Standing {
    if edge.strength == Strength::Strong {
        return Standing::Broken;
    }
    match condition(spec, edge).map(Condition::as_str) {
        None => Standing::Holds,
        Some("state == 'SUCCEEDED'") => Standing::Ends,
        Some(_) => Standing::Broken,
    }
}

/// How an edge stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Holds,
    Waits,
    Broken,
    /// Its instance must have ended without a start.
    Ends,
}

impl Checker {
    /// A dependent goes on only when every strong edge's instance SUCCEEDED, every weak one's is
    /// over, and every condition is true; or when its time to wait is over.
    pub(super) fn edges_hold(&mut self, id: &InstanceId, at: i64, rows: &Rows) -> Verdict {
        let row = instance(rows, id).ok_or("no row")?;
        let spec = self.spec(rows, row)?;
        if row.degraded {
            self.marks.hit("degraded");
            let due = row.dependency_deadline.is_some_and(|t| t.as_millis() <= at);
            let wanted = spec.on_dependency_timeout == OnDependencyTimeout::RunDegraded;
            return ensure(due && wanted, || format!("{id} is degraded before its time"));
        }
        for edge in row.edges.iter() {
            if self.standing(edge, row, &spec, rows) == Standing::Holds
                && edge.instance_id.is_none()
            {
                self.marks.hit("a fire that made nothing ended a wait");
                continue;
            }
            let up = edge.instance_id.as_ref().and_then(|up| self.seen.get(up));
            let written = spec.depends_on.iter().find(|d| d.task_id == edge.task_id);
            let holds_now = match written.map_or(edge.strength, |d| d.strength) {
                Strength::Strong => up.is_some_and(|s| s.state == Succeeded),
                Strength::Weak => up.is_some_and(|s| s.is_final),
            };
            let data = written.is_none_or(|d| d.dep_type == DepType::Success)
                || Self::data_is_there(edge, rows);
            ensure(data, || format!("{id} is READY but the data of {edge:?} is not there"))?;
            let when = written.and_then(|d| d.when.as_ref());
            let upstream = edge.instance_id.as_ref().and_then(|up| instance(rows, up));
            let yes = when.is_none_or(|w| upstream.and_then(|u| holds(w, u)) == Some(true));
            if when.is_some() {
                self.marks.hit("a condition was true");
            }
            ensure(holds_now && yes, || {
                format!("{id} is READY but its edge {edge:?} ({when:?}) is {up:?}")
            })?;
        }
        Ok(())
    }

    fn standing(&self, edge: &Edge, i: &Instance, spec: &TaskSpec, rows: &Rows) -> Standing {
        let Some(bound) = &edge.instance_id else {
            if Self::makes_nothing(rows, &i.cycle, &edge.task_id) {
                return of_nothing(edge, spec);
            }
            let known = in_force(rows, &edge.task_id).is_some_and(|s| s.enabled);
            return if known { Standing::Waits } else { Standing::Broken };
        };
        let strong = edge.strength == Strength::Strong;
        match self.seen.get(bound) {
            None => return if strong { Standing::Broken } else { Standing::Holds },
            Some(up) if !up.is_final => return Standing::Waits,
            Some(up) if strong && is_skipped(up) => return Standing::Ends,
            Some(up) if strong && up.state != Succeeded => return Standing::Broken,
            Some(_) => {}
        }
        let asks = edge.dep_type == DepType::DataReady;
        let there = if !asks || Self::data_is_there(edge, rows) {
            Standing::Holds
        } else {
            Standing::Waits
        };
        let Some(when) = condition(spec, edge) else { return there };
        match instance(rows, bound).and_then(|up| holds(when, up)) {
            Some(true) => there,
            Some(false) => Standing::Ends,
            None => Standing::Broken,
        }
    }

    /// Whether what an edge waits for besides its upstream's success was seen (rule 8).
    fn data_is_there(edge: &Edge, rows: &Rows) -> bool {
        let up = edge
            .instance_id
            .as_ref()
            .and_then(|up| instance(rows, up))
            .filter(|up| up.state == Succeeded);
        let outputs = up.and_then(|up| up.outputs.as_ref());
        outputs.is_none_or(|outputs| outputs.found.is_some())
    }

    /// Outputs are those that the definition names, and were found only if somebody saw them.
    pub(super) fn outputs_are_true(&mut self, i: &Instance, rows: &Rows) -> Verdict {
        let declares = i.state == Succeeded && !self.spec(rows, i)?.outputs.is_empty();
        ensure(declares == i.outputs.is_some(), || format!("outputs of {i:?}"))?;
        let found = i.outputs.as_ref().is_some_and(|outputs| outputs.found.is_some());
        if found {
            self.marks.hit("outputs were found");
        }
        ensure(!found || self.left_behind.contains(&i.instance_id), || {
            format!("nobody saw the data of {i:?}")
        })
    }

    /// Everything that waits stands where its upstreams put it, bound to its own cycle.
    pub(super) fn waiting(&self, rows: &Rows) -> Verdict {
        for id in &self.waiting {
            let i = instance(rows, id).ok_or_else(|| format!("{id} waits without a row"))?;
            for up in i.edges.iter().filter_map(|e| e.instance_id.as_ref()) {
                let cycle = instance(rows, up).map(|up| &up.cycle);
                ensure(cycle.is_none_or(|cycle| cycle.matches(&i.cycle)), || {
                    format!("{id} of {} is bound to {up}, which is of another cycle", i.cycle)
                })?;
            }
            if i.not_before.is_some() {
                continue;
            }
            let spec = revision(rows, &i.task_id, i.revision).ok_or("no revision")?;
            let all: Vec<Standing> =
                i.edges.iter().map(|edge| self.standing(edge, i, spec, rows)).collect();
            let any = |standing| all.contains(&standing);
            let right = if any(Standing::Broken) { Blocked } else { Pending };
            let may_wait = any(Standing::Broken) || any(Standing::Waits);
            ensure(i.state == right && may_wait && !any(Standing::Ends), || {
                format!("{id} is {}; its edges: {all:?}; {:?}", i.state, i.edges)
            })?;
        }
        Ok(())
    }

    pub(super) fn a_condition_is_false(&self, i: &Instance, rows: &Rows) -> Result<bool, String> {
        let spec = self.spec(rows, i)?;
        Ok(i.edges.iter().any(|edge| {
            if edge.instance_id.is_none() {
                return self.standing(edge, i, &spec, rows) == Standing::Ends;
            }
            let up = edge.instance_id.as_ref().and_then(|up| instance(rows, up));
            let when = condition(&spec, edge);
            when.zip(up).is_some_and(|(when, up)| holds(when, up) == Some(false))
        }))
    }

    pub(super) fn an_upstream_is_skipped(&self, i: &Instance) -> bool {
        i.edges.iter().any(|edge| {
            let up = edge.instance_id.as_ref().and_then(|up| self.seen.get(up));
            edge.strength == Strength::Strong && up.is_some_and(is_skipped)
        })
    }

    /// The runtime parameters that an instance must start with (rule 5); an error names the first
    /// that is missing.
    pub(super) fn expected_parameters(
        &self,
        i: &Instance,
        spec: &TaskSpec,
        rows: &Rows,
    ) -> Result<BTreeMap<String, Value>, String> {
        let mut expected = BTreeMap::new();
        for (name, schema) in &spec.runtime_params {
            let ups = i.edges.iter().filter_map(|e| instance(rows, e.instance_id.as_ref()?));
            let flows = ups.filter_map(|up| up.runtime_params.get(name)).next();
            let value = i.given_params.get(name).or(flows).or(schema.default.as_ref());
            match value {
                Some(value) => {
                    expected.insert(name.clone(), value.clone());
                }
                None if schema.required => return Err(name.clone()),
                None => {}
            }
        }
        Ok(expected)
    }

    pub(super) fn parameters_are_complete(&mut self, id: &InstanceId, rows: &Rows) -> Verdict {
        let row = instance(rows, id).ok_or("no row")?;
        let spec = self.spec(rows, row)?;
        let expected = self
            .expected_parameters(row, &spec, rows)
            .map_err(|name| format!("{id} is READY without its parameter {name}"))?;
        for (name, value) in &expected {
            let is = row.runtime_params.get(name);
            ensure(is == Some(value), || {
                format!("parameter {name} of {id} is {is:?}, not {value}")
            })?;
            if !row.given_params.contains_key(name) && !row.edges.is_empty() {
                self.marks.hit("a parameter flowed down an edge or was a default");
            }
        }
        Ok(())
    }

    /// A `dedupKey` is unique among what is open or SUCCEEDED.
    pub(super) fn key_is_its_own(&self, i: &Instance, rows: &Rows) -> Verdict {
        let holds = |i: &Instance| i.is_open() || i.state == Succeeded;
        let Some(key) = i.dedup_key.as_ref().filter(|_| holds(i)) else { return Ok(()) };
        let other = instances(rows).find(|o| {
            o.instance_id != i.instance_id
                && o.task_id.base() == i.task_id.base()
                && o.dedup_key.as_ref() == Some(key)
                && holds(o)
        });
        ensure(other.is_none(), || format!("{} has the dedupKey {key} of {other:?}", i.instance_id))
    }
}
