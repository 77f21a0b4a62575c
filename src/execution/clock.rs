//! The clocks of the execution layer: the only file of it that reads one.
//!
//! Bounds of attempts count on CLOCK_BOOTTIME, which no step of the wall clock moves and which
//! goes on while the machine is suspended (contract §2, `timeoutMs`).

use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::model::time::Timestamp;

/// Longest nap between two looks at CLOCK_BOOTTIME: the runtime's timers stand still while the
/// machine is suspended, so a deadline that passed meanwhile is seen this late at most.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The wall clock, for what people read.
pub(super) fn now() -> Timestamp {
    let since = read(ClockId::CLOCK_REALTIME);
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Time since boot, suspended time included.
pub(super) fn since_boot() -> Duration {
    read(ClockId::CLOCK_BOOTTIME)
}

/// Time that no step and no suspension moves; what a stall of this process is measured with.
pub(super) fn monotonic() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Sleeps until a point of [`since_boot`]. Cancel safe: a new call goes on.
pub(super) async fn sleep_until(deadline: Duration) {
    loop {
        let left = deadline.saturating_sub(since_boot());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}

/// What names this boot of the machine; empty where the kernel does not say.
pub(super) fn boot_id() -> Arc<str> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

fn read(clock: ClockId) -> Duration {
    // These clocks exist on every kernel that runs this; zero stands for the impossible.
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}
