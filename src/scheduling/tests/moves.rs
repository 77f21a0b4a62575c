//! The one place that makes moves: requirements B1 and B2.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::build::{id, settings};
use super::fixture;
use crate::model::id::{InstanceId, LogSeq};
use crate::model::instance::InstanceState::{
    self, Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded, Timeout,
};
use crate::model::time::Timestamp;
use crate::scheduling::Process;
use crate::scheduling::state::State;
use crate::scheduling::turn::Turn;

/// Requirement B1, written out once more.
const LEGAL: [(InstanceState, InstanceState); 15] = [
    (Pending, Ready),
    (Pending, Blocked),
    (Pending, Cancelled),
    (Blocked, Pending),
    (Blocked, Ready),
    (Blocked, Cancelled),
    (Ready, Running),
    (Ready, Cancelled),
    (Running, Succeeded),
    (Running, Failed),
    (Running, Timeout),
    (Failed, Ready),
    (Failed, Cancelled),
    (Timeout, Ready),
    (Timeout, Cancelled),
];

#[test]
fn a_turn_makes_the_moves_of_the_table_and_breaks_off_at_any_other() {
    let now = Timestamp::from_millis(super::bench::MIDNIGHT);
    for from in InstanceState::ALL {
        for to in InstanceState::ALL {
            let process = Process {
                version: "0".to_owned(),
                pid: 1,
                boot_id: "boot".into(),
                started_at: now,
            };
            let settings = settings(&[("local", 1)], &[("default", 1, None)]);
            let mut state = State::new(settings, process, LogSeq(0));
            let instance = InstanceId::from_text("0a");
            let mut turn = Turn::new(&mut state, now, None);
            turn.revive(fixture::instance(instance.clone(), &id("a"), from, now));
            let mv = || turn.transition(&instance, to, None, |_| {});
            let became = catch_unwind(AssertUnwindSafe(mv)).is_ok();
            assert_eq!(became, LEGAL.contains(&(from, to)), "{from} -> {to}");
        }
    }
}
