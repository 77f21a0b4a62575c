//! The order against a plain sorted vector that is looked through from its beginning.

use proptest::prelude::*;

use super::*;
use crate::model::fixture;
use crate::model::instance::InstanceState;

/// Which tasks and owners are full or paused.
#[derive(Debug, Clone, Default)]
struct Shut {
    tasks: BTreeSet<TaskId>,
    owners: BTreeSet<String>,
}

impl Room for Shut {
    fn task_is_open(&self, task: &TaskId, _: Option<u32>) -> bool {
        !self.tasks.contains(task)
    }

    fn owner_is_open(&self, owner: &str) -> bool {
        !self.owners.contains(owner)
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Of a task, with a priority, at a time.
    Insert(usize, u8, i64),
    /// The one put in so many steps ago.
    Remove(usize),
    /// Another priority for it.
    Change(usize, u8),
    Task(usize),
    Owner(usize),
}

const TASKS: usize = 4;

fn task(n: usize) -> TaskId {
    TaskId::parse(&format!("t{n}.v1")).unwrap()
}

/// Two tasks each share an owner.
fn owner(n: usize) -> String {
    format!("o{}", n / 2)
}

/// Odd tasks run on executor 0 only, even ones on both.
fn executors(n: usize) -> Vec<usize> {
    if n % 2 == 1 { vec![0] } else { vec![0, 1] }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..TASKS, 0..10_u8, 0..5_i64).prop_map(|(t, p, at)| Step::Insert(t, p, at)),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), 0..10_u8).prop_map(|(n, p)| Step::Change(n, p)),
        1 => (0..TASKS).prop_map(Step::Task),
        1 => (0..TASKS / 2).prop_map(Step::Owner),
    ]
}

/// What stands in the queue: task, instance, priority.
type Plain = Vec<(usize, Instance, Priority)>;

fn put(queue: &mut DispatchQueue, shut: &Shut, (n, i, priority): &(usize, Instance, Priority)) {
    let need = || Need { owner: owner(*n), max_concurrent: None, executors: executors(*n) };
    queue.insert(i, *priority, need, shut);
}

/// The first by priority, ready time and sequence that is not shut and fits the executor.
fn first(plain: &Plain, shut: &Shut, executor: usize, level: Option<Level>) -> Option<InstanceId> {
    let mut sorted: Vec<_> = plain.iter().collect();
    sorted.sort_by_key(|(_, i, p)| (*p, i.ready_at, i.ready_seq));
    let fits = sorted.into_iter().find(|(n, _, p)| {
        !shut.tasks.contains(&task(*n))
            && !shut.owners.contains(&owner(*n))
            && executors(*n).contains(&executor)
            && level.is_none_or(|level| level == p.level())
    });
    fits.map(|(_, i, _)| i.instance_id.clone())
}

proptest! {
    #[test]
    fn the_heads_are_those_of_a_sorted_vector(steps in prop::collection::vec(step(), 1..120)) {
        let (mut queue, mut plain, mut shut) = (DispatchQueue::default(), Plain::new(), Shut::default());
        let name = QueueName::from("default");
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(n, p, ready) => {
                    let id = InstanceId::derive(0, &[&at.to_string()]);
                    let made = Timestamp::from_millis(0);
                    let mut i = fixture::instance(id, &task(n), InstanceState::Ready, made);
                    i.ready_at = Some(Timestamp::from_millis(ready));
                    i.ready_seq = at as u64;
                    plain.push((n, i, Priority::new(p).unwrap()));
                    put(&mut queue, &shut, plain.last().unwrap());
                }
                Step::Remove(n) if !plain.is_empty() => {
                    let (_, i, priority) = plain.remove(n % plain.len());
                    queue.remove(&i, priority, &shut);
                }
                Step::Change(n, p) if !plain.is_empty() => {
                    let n = n % plain.len();
                    queue.remove(&plain[n].1, plain[n].2, &shut);
                    plain[n].2 = Priority::new(p).unwrap();
                    put(&mut queue, &shut, &plain[n]);
                }
                Step::Remove(_) | Step::Change(..) => {}
                Step::Task(n) => {
                    if !shut.tasks.remove(&task(n)) {
                        shut.tasks.insert(task(n));
                    }
                    queue.task_changed(&task(n), &shut);
                }
                Step::Owner(n) => {
                    let owner = owner(n * 2);
                    if !shut.owners.remove(&owner) {
                        shut.owners.insert(owner.clone());
                    }
                    queue.owner_changed(&owner, &shut);
                }
            }
            prop_assert_eq!(queue.len(&name), plain.len());
            for executor in 0..2 {
                let heads = queue.heads(&name, |class| class.executors.contains(&executor));
                let head = heads.first().map(|(entry, _)| entry.instance.clone());
                prop_assert_eq!(head, first(&plain, &shut, executor, None));
                let by_level: BTreeMap<Level, InstanceId> = heads
                    .iter()
                    .map(|(entry, class)| (class.level, entry.instance.clone()))
                    .collect();
                for level in Level::ALL {
                    let expected = first(&plain, &shut, executor, Some(level));
                    prop_assert_eq!(by_level.get(&level).cloned(), expected);
                }
            }
            let mut anew = DispatchQueue::default();
            plain.iter().rev().for_each(|one| put(&mut anew, &shut, one));
            prop_assert_eq!(&anew, &queue, "built anew in another order");
        }
    }
}

/// A thousand tasks each at its quota, and a thousand that no executor takes.
#[test]
fn what_cannot_start_is_not_looked_at() {
    let (mut queue, mut shut) = (DispatchQueue::default(), Shut::default());
    let name = QueueName::from("default");
    let insert = |n: usize, executors: Vec<usize>, shut: &Shut, queue: &mut DispatchQueue| {
        let id = InstanceId::derive(0, &[&n.to_string()]);
        let made = Timestamp::from_millis(0);
        let i = fixture::instance(id, &task(n), InstanceState::Ready, made);
        let need = || Need { owner: format!("o{n}"), max_concurrent: None, executors };
        queue.insert(&i, Priority::NORMAL, need, shut);
    };
    for n in 0..1000 {
        insert(n, vec![0], &shut, &mut queue);
        shut.tasks.insert(task(n));
        queue.task_changed(&task(n), &shut);
    }
    assert_eq!((queue.classes(&name).count(), queue.len(&name)), (0, 1000));
    for n in 1000..2000 {
        insert(n, Vec::new(), &shut, &mut queue);
    }
    assert_eq!(queue.classes(&name).count(), 1);
    shut.tasks.remove(&task(7));
    queue.task_changed(&task(7), &shut);
    assert_eq!(queue.heads(&name, |class| !class.executors.is_empty()).len(), 1);
}
