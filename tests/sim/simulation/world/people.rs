//! What people and programs at the door do, and who brings files.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::checker::{self, Verdict};
use super::super::workload;
use super::World;
use crate::build;
use crate::model::backfill::BackfillBody;
use crate::model::cycle::CycleUnit;
use crate::model::event::{Event, FileArrival, FileIdentity};
use crate::model::id::{InstanceId, QueueName, ReplyTo};
use crate::model::instance::{Instance, InstanceState};
use crate::model::priority::Priority;
use crate::model::record::{Revision, Row, Target};
use crate::model::request::{Caller, PriorityText, Request, RequestKey, SubmitBody};
use crate::model::spec::{JsonMap, TaskSpec, Trigger, TriggerKind};

/// A kind of deed.
pub(super) struct Deed {
    /// Its name in the marks.
    pub(super) name: &'static str,
    /// Its greatest share.
    pub(super) most: u64,
    act: fn(&mut World) -> Verdict,
}

/// All kinds.
pub(super) const DEEDS: [Deed; 13] = [
    Deed { name: "edit files", most: 25, act: World::edit },
    Deed { name: "pause or resume", most: 15, act: World::hold },
    Deed { name: "cancel", most: 12, act: World::cancel },
    Deed { name: "skip", most: 5, act: World::skip },
    Deed { name: "freeze or thaw", most: 10, act: World::freeze },
    Deed { name: "submit", most: 30, act: World::submit },
    Deed { name: "retry", most: 15, act: World::retry },
    Deed { name: "emit", most: 15, act: World::emit },
    Deed { name: "file comes or goes", most: 15, act: World::file },
    Deed { name: "roll back or unpin", most: 10, act: World::rollback },
    Deed { name: "change priority", most: 15, act: World::priority },
    Deed { name: "backfill", most: 10, act: World::backfill },
    Deed { name: "question", most: 5, act: World::question },
];

impl World {
    pub(super) fn deed(&mut self) -> Verdict {
        let names: Vec<&'static str> = DEEDS.iter().map(|deed| deed.name).collect();
        let Some(n) = self.swarm.choose(&mut self.rng, &names) else { return Ok(()) };
        self.mark(DEEDS[n].name);
        (DEEDS[n].act)(self)
    }

    /// One of the instances for which that holds.
    pub(super) fn some(&mut self, which: impl Fn(&Instance) -> bool) -> Option<Instance> {
        let all: Vec<&Instance> = checker::instances(&self.rows).filter(|i| which(i)).collect();
        self.rng.pick(&all).map(|i| (*i).clone())
    }

    fn task(&mut self) -> crate::model::id::TaskId {
        build::id(&workload::name(self.rng.below(self.files.tasks)))
    }

    pub(super) fn ask_under(&mut self, key: Option<RequestKey>, request: Request) -> Verdict {
        let caller = Caller { uid: 1000, gid: 1000, pid: 9, key };
        self.feed(Event::Request { request, caller, reply: ReplyTo(0) })
    }

    fn edit(&mut self) -> Verdict {
        if !self.read {
            return Ok(());
        }
        // Fires due by now belong to the definitions so far.
        let edit = self.files.edit(&mut self.rng);
        let edit = self.plant.definitions(edit);
        self.edited = true;
        self.flush()?;
        if self.engine.is_none() {
            return Ok(());
        }
        self.feed_reading(edit)?;
        self.flush()?;
        // A reading lost in a crash is repeated in full at the next start.
        self.edited = self.engine.is_none();
        Ok(())
    }

    fn cancel(&mut self) -> Verdict {
        let open = self.rng.chance(80);
        let Some(i) = self.some(|i| i.is_open() || !open) else { return Ok(()) };
        let downstream = self.rng.chance(30);
        let instance = i.instance_id.clone();
        self.ask(Request::Cancel { instance, downstream, stored: Some(Box::new(i)) })
    }

    fn retry(&mut self) -> Verdict {
        let failed = |i: &Instance| {
            matches!(i.state, InstanceState::Failed | InstanceState::Timeout)
                && i.next_retry_at.is_none()
        };
        let all = checker::instances(&self.rows);
        let all: Vec<Instance> = all.filter(|i| failed(i)).cloned().collect();
        let ups = all.iter().flat_map(|i| i.edges.iter().filter_map(|e| e.instance_id.clone()));
        let ups: BTreeSet<InstanceId> = ups.collect();
        let with_downstream = self.rng.chance(50);
        let has_below = |i: &Instance| failed(i) && ups.contains(&i.instance_id);
        let found = self.some(has_below).filter(|_| with_downstream);
        let Some(i) = found.or_else(|| self.some(failed)) else { return Ok(()) };
        let instance = i.instance_id.clone();
        self.flush()?;
        // As the door does it: with the rows of those below.
        let below = with_downstream.then_some(all);
        let same_revision = self.rng.chance(30);
        self.ask(Request::Retry { instance, same_revision, stored: Some(Box::new(i)), below })
    }

    fn skip(&mut self) -> Verdict {
        let waits = self.rng.chance(80);
        let is_before = |i: &Instance| i.is_open() && i.state != InstanceState::Running;
        let Some(i) = self.some(|i| is_before(i) || !waits) else { return Ok(()) };
        let instance = i.instance_id.clone();
        self.ask(Request::Skip { instance, stored: Some(Box::new(i)) })
    }

    /// The processes of one that runs are stopped, or go on.
    fn freeze(&mut self) -> Verdict {
        let frozen = |i: &Instance| i.state == InstanceState::Running && i.paused.is_some();
        if self.rng.chance(40)
            && let Some(i) = self.some(frozen)
        {
            return self.ask(Request::Resume { target: Target::Instance(i.instance_id) });
        }
        let Some(i) = self.some(|i| i.state == InstanceState::Running) else { return Ok(()) };
        let wait = self.rng.range(500, 20_000);
        let until = self.rng.chance(70).then(|| self.after(wait));
        self.ask(Request::Freeze { instance: i.instance_id, reason: None, until })
    }

    fn emit(&mut self) -> Verdict {
        let name = format!("event{}", self.rng.below(2));
        let mut params = JsonMap::new();
        if self.rng.chance(60) {
            params.insert("n".to_owned(), self.rng.below(10).into());
        }
        self.ask(Request::Emit { name, params })
    }

    fn priority(&mut self) -> Verdict {
        let priority = self.any_priority();
        let target = self.target();
        self.ask(Request::SetPriority { target, priority })
    }

    fn any_priority(&mut self) -> Priority {
        let value = u8::try_from(self.rng.below(10)).unwrap_or(0);
        Priority::new(value).unwrap_or(Priority::NORMAL)
    }

    /// An earlier revision is put in force, or that ends. Fires due by now belong to the
    /// definitions so far.
    fn rollback(&mut self) -> Verdict {
        self.flush()?;
        if self.engine.is_none() || !self.read {
            return Ok(());
        }
        if self.rng.chance(40) {
            let task = self.task();
            self.ask(Request::Unpin { task })?;
            return self.flush();
        }
        let all: Vec<Revision> = self
            .rows
            .values()
            .filter_map(|row| if let Row::Revision(r) = row { Some(r.clone()) } else { None })
            .collect();
        let Some(revision) = self.rng.pick(&all).cloned() else { return Ok(()) };
        let (task, revision) = (revision.task_id.clone(), Box::new(revision));
        self.ask(Request::Rollback { task, revision })?;
        self.flush()
    }

    fn target(&mut self) -> Target {
        match self.rng.below(6) {
            0 => Target::All,
            1 => {
                let queues = ["default", "side", "night"];
                Target::Queue(QueueName::from(*self.rng.pick(&queues).unwrap_or(&"default")))
            }
            2 | 3 => Target::Task(self.task()),
            _ => match self.some(|i| i.state != InstanceState::Succeeded) {
                Some(i) => Target::Instance(i.instance_id),
                None => Target::All,
            },
        }
    }

    fn hold(&mut self) -> Verdict {
        if self.rng.chance(40) {
            let held = self.held();
            let target = self.rng.pick(&held).cloned().unwrap_or(Target::All);
            return self.ask(Request::Resume { target });
        }
        let target = self.target();
        let large = matches!(target, Target::All | Target::Queue(_));
        // Or nothing would happen for most of the time.
        let wait = self.rng.range(500, if large { 4000 } else { 20_000 });
        let until = (large || self.rng.chance(70)).then(|| self.after(wait));
        self.ask(Request::Pause { target, reason: None, until })
    }

    /// What is held now.
    pub(super) fn held(&self) -> Vec<Target> {
        let held = self.rows.values().filter_map(|row| match row {
            Row::Hold(hold) => Some(hold.target.clone()),
            Row::Task(task) if task.paused.is_some() => Some(Target::Task(task.task_id.clone())),
            Row::Instance(i) if i.paused.is_some() && i.is_open() => {
                Some(Target::Instance(i.instance_id.clone()))
            }
            _ => None,
        });
        held.collect()
    }

    fn submit(&mut self) -> Verdict {
        let task = self.task();
        let mut body = SubmitBody::default();
        if self.rng.chance(40) {
            let cycles = ["2026-11-29", "2026-11-30", "2026-12-01", "2026-11-30T23:59"];
            body.cycle = self.rng.pick(&cycles).map(|c| (*c).to_owned());
        }
        body.ignore_deps = self.rng.chance(15);
        body.no_downstream = self.rng.chance(15);
        body.dry_run = self.rng.chance(5);
        let declared = checker::in_force(&self.rows, &task)
            .is_some_and(|spec| spec.runtime_params.contains_key("n"));
        if self.rng.chance(if declared { 80 } else { 3 }) {
            body.params.insert("n".to_owned(), self.rng.below(10).into());
        }
        if self.rng.chance(15) {
            let wait = self.rng.range(-1000, 30_000);
            body.at = Some(self.after(wait));
        }
        if self.rng.chance(15) {
            body.priority = Some(PriorityText(self.any_priority()));
        }
        let key = self.rng.chance(20).then(|| format!("key{}", self.rng.below(5)));
        let key = key.as_deref().map(RequestKey::of);
        self.ask_under(key, Request::Submit { task, submission: Box::new(body) })
    }

    fn backfill(&mut self) -> Verdict {
        let ranges = [
            ("2026-11-29", "2026-12-01"),
            ("2026-11-30", "2026-11-30"),
            ("2026-11-30T23:58", "2026-11-30T23:59"),
        ];
        let (from, to) = *self.rng.pick(&ranges).unwrap_or(&ranges[0]);
        let task = self.task();
        let days = from.len() == 10;
        if self.is_frequent(&task, days) {
            // A day of it would be thousands.
            return Ok(());
        }
        let body = BackfillBody {
            from: from.to_owned(),
            to: to.to_owned(),
            again: self.rng.chance(30),
            newest_first: self.rng.chance(30),
            dry_run: self.rng.chance(20),
        };
        self.ask(Request::Backfill { task, body })
    }

    /// Whether the task has so many nominal times or cycles that whole days of it are too much.
    fn is_frequent(&self, task: &crate::model::id::TaskId, days: bool) -> bool {
        let unit = |spec: &Arc<TaskSpec>| spec.cycle.map(|rule| rule.unit);
        let spec = checker::in_force(&self.rows, task);
        let often = |t: &Trigger| matches!(t.when, TriggerKind::Every(_));
        let often = spec.is_some_and(|s| s.triggers.iter().any(often));
        let tasks = (0..self.files.tasks).map(|n| build::id(&workload::name(n)));
        let minutes = tasks
            .filter_map(|task| checker::in_force(&self.rows, &task).and_then(unit))
            .any(|unit| unit == CycleUnit::Minute);
        if days {
            often || minutes
        } else {
            often && spec.and_then(unit) != Some(CycleUnit::Minute)
        }
    }

    /// Asking changes nothing.
    fn question(&mut self) -> Verdict {
        let all = checker::instances(&self.rows).map(|i| i.instance_id.clone()).collect();
        let request = match self.rng.below(6) {
            0 => Request::Tasks,
            1 => Request::Live(all),
            2 => Request::Status,
            3 => Request::Queues,
            4 => Request::Executors,
            _ => Request::Next { task: None, from: None, count: 3 },
        };
        self.ask(request)
    }

    fn file(&mut self) -> Verdict {
        let n = self.rng.below(2);
        if self.rng.chance(20) {
            self.gone.insert(format!("/in/{n}"));
            return self.feed(Event::FilesGone(vec![format!("/in/{n}")]));
        }
        self.gone.remove(&format!("/in/{n}"));
        if self.rng.chance(60) {
            self.arrivals += 1;
        }
        // Otherwise the same arrival is told again.
        let identity = FileIdentity { device: 1, inode: self.arrivals, size: 1, mtime_ns: 7 };
        let (pattern, path) = (format!("/in/{n}"), format!("/in/{n}"));
        self.feed(Event::FilesArrived(vec![FileArrival { pattern, path, identity }]))
    }
}
