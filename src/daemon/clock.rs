//! The only file of the daemon that reads clocks.
//!
//! It knows what time it is and how to wait for a point in time. What a step of the clock means
//! for a schedule is decided elsewhere (design, 'Clock, disk, faults', T2 and T3).

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::limits;
use crate::model::time::Timestamp;

/// Two readings that took longer than this belong to two different moments: read again.
const READING: Duration = Duration::from_millis(50);

/// Times that a reading is tried again; the last one is taken as it is.
const READINGS_MAX: usize = 5;

/// Wait between two tries if the kernel refuses the timer.
const TIMER_REFUSED: Duration = Duration::from_secs(1);

/// Where the kernel tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Tells the time. Its clones agree with each other.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The latest time told, in milliseconds since the epoch.
    told_ms: Arc<AtomicI64>,
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The time has come, never earlier.
    Due,
    /// The wall clock was set: whatever depends on it deserves another look now.
    Stepped,
}

/// Notices steps of the wall clock: what it went that the time since the boot did not.
#[derive(Debug)]
pub struct Steps {
    offset_ms: i64,
}

/// Waits for points in time. It has one kernel timer, so one waiter at a time.
#[derive(Debug)]
pub struct Alarm {
    clock: Clock,
    timer: AsyncFd<Timer>,
}

/// The kernel's timer in the form that tokio can wait for.
#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Clock {
    /// A clock that has told no time yet.
    #[must_use]
    pub fn new() -> Self {
        Self { told_ms: Arc::new(AtomicI64::new(i64::MIN)) }
    }

    /// Now, in whole milliseconds; never before a time told earlier, unless the wall clock was set
    /// back by a second or more: that is a step, which [`Steps`] tells the core of. What is less
    /// is waited out.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.tell(wall_ms())
    }

    /// What notices steps from now on.
    #[must_use]
    pub fn steps(&self) -> Steps {
        Steps { offset_ms: offset_ms() }
    }

    /// Time since some fixed point in this boot. It never steps, so it measures quiet times and
    /// periods; it says nothing across restarts.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
            .map_or(Duration::ZERO, Duration::from)
    }

    /// An alarm on this clock.
    ///
    /// # Errors
    /// If the kernel gives no timer, for want of descriptors.
    ///
    /// # Panics
    /// Outside a tokio runtime with IO.
    pub fn alarm(&self) -> io::Result<Alarm> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_REALTIME, flags)?;
        #[expect(deprecated, reason = "its successor is unsafe; this timer owns its descriptor")]
        let timer = AsyncFd::new(Timer(timer))?;
        Ok(Alarm { clock: self.clone(), timer })
    }

    fn tell(&self, wall_ms: i64) -> Timestamp {
        let follow = |told: i64| {
            let put_back = told.saturating_sub(wall_ms);
            (put_back < 0 || put_back >= step_ms()).then_some(wall_ms)
        };
        match self.told_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, follow) {
            Ok(_) => Timestamp::from_millis(wall_ms),
            Err(told) => Timestamp::from_millis(told),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Steps {
    /// By how much the wall clock was set since this was last asked, in milliseconds, less than 0:
    /// back; `None`: by less than a second. A suspended machine is no step, for the time since
    /// the boot goes on.
    pub fn taken(&mut self) -> Option<i64> {
        self.see(offset_ms())
    }

    fn see(&mut self, offset_ms: i64) -> Option<i64> {
        let by_ms = offset_ms.saturating_sub(self.offset_ms);
        self.offset_ms = offset_ms;
        (by_ms.saturating_abs() >= step_ms()).then_some(by_ms)
    }
}

fn step_ms() -> i64 {
    i64::try_from(limits::CLOCK_STEP.as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
fn wall_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// The wall clock less the time since the boot, suspended times included.
fn offset_ms() -> i64 {
    let since_boot = || {
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME)
            .map_or(Duration::ZERO, Duration::from)
    };
    let mut offset = 0;
    for _ in 0..READINGS_MAX {
        let before = since_boot();
        let wall = wall_ms();
        offset = wall.saturating_sub(i64::try_from(before.as_millis()).unwrap_or(i64::MAX));
        if since_boot().saturating_sub(before) < READING {
            break;
        }
    }
    offset
}

impl Alarm {
    /// Sleeps until `at` (`None`: for ever) or until the wall clock is set, whichever is first.
    /// A clock set while nobody slept is told by the next sleep.
    ///
    /// Cancel safe: a dropped sleep leaves nothing behind that the next one does not replace.
    pub async fn sleep_until(&mut self, at: Option<Timestamp>) -> Wake {
        let at = at.unwrap_or(Timestamp::FAR);
        loop {
            if self.clock.now() >= at {
                return Wake::Due;
            }
            match self.arm(at) {
                Ok(()) => {}
                Err(Errno::ECANCELED) => return Wake::Stepped,
                Err(error) => {
                    ::tracing::warn!(%error, "the kernel refused a timer");
                    tokio::time::sleep(TIMER_REFUSED.min(at.since(self.clock.now()))).await;
                    continue;
                }
            }
            if self.rung().await == Err(Errno::ECANCELED) {
                return Wake::Stepped;
            }
        }
    }

    fn arm(&self, at: Timestamp) -> Result<(), Errno> {
        let due = Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0).max(1));
        self.timer.get_ref().0.set(
            Expiration::OneShot(TimeSpec::from(due)),
            TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET,
        )
    }

    /// Waits until the timer has run out, or for a reason to look again.
    async fn rung(&self) -> Result<(), Errno> {
        let Ok(mut ready) = self.timer.readable().await else {
            // The runtime is going away; the caller is about to be dropped.
            return std::future::pending().await;
        };
        let read = ready.try_io(|timer| {
            nix::unistd::read(&timer.get_ref().0, &mut [0; 8]).map_err(io::Error::from)
        });
        match read {
            Ok(Err(error)) => Err(Errno::from_raw(error.raw_os_error().unwrap_or(0))),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }
}

/// The id of this boot of the machine.
///
/// # Errors
/// If the kernel does not tell, as without `/proc`.
pub fn boot_id() -> io::Result<Arc<str>> {
    Ok(Arc::from(std::fs::read_to_string(BOOT_ID)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn time_stands_still_until_a_clock_put_back_a_little_has_caught_up() {
        let clock = Clock::new();
        let told = |ms| clock.tell(ms).as_millis();
        assert_eq!(told(10 * HOUR_MS), 10 * HOUR_MS);
        assert_eq!(told(10 * HOUR_MS - 1), 10 * HOUR_MS);
        assert_eq!(told(10 * HOUR_MS - 999), 10 * HOUR_MS);
        assert_eq!(told(10 * HOUR_MS + 1), 10 * HOUR_MS + 1);
    }

    #[test]
    fn a_clock_put_back_by_a_second_or_more_is_followed() {
        let clock = Clock::new();
        let told = |ms| clock.tell(ms).as_millis();
        assert_eq!(told(10 * HOUR_MS), 10 * HOUR_MS);
        assert_eq!(told(10 * HOUR_MS - 1000), 10 * HOUR_MS - 1000);
        assert_eq!(told(7 * HOUR_MS), 7 * HOUR_MS);
    }

    #[test]
    fn a_step_is_told_once_and_small_differences_are_none() {
        let mut steps = Steps { offset_ms: 1_000_000 };
        assert_eq!(steps.see(1_000_999), None);
        assert_eq!(steps.see(1_001_998), None);
        assert_eq!(steps.see(1_002_998), Some(1000));
        assert_eq!(steps.see(1_002_998), None);
        assert_eq!(steps.see(2_998), Some(-1_000_000));
        assert_eq!(steps.see(i64::MIN), Some(i64::MIN), "no overflow");
    }

    #[test]
    fn a_clock_that_nobody_sets_takes_no_step() {
        let mut steps = Clock::new().steps();
        assert_eq!(steps.taken(), None);
    }

    #[tokio::test]
    async fn a_sleep_is_never_early_and_ends_soon_after() {
        let clock = Clock::new();
        let mut alarm = clock.alarm().unwrap();
        for ms in 0..30_u64 {
            let at = clock.now().plus(Duration::from_millis(ms % 7));
            assert_eq!(alarm.sleep_until(Some(at)).await, Wake::Due);
            assert!(clock.now() >= at);
            assert!(clock.now().since(at) < Duration::from_secs(1), "woke much too late");
        }
    }

    #[tokio::test]
    async fn a_dropped_sleep_leaves_no_early_ring_behind() {
        let clock = Clock::new();
        let mut alarm = clock.alarm().unwrap();
        let soon = clock.now().plus(Duration::from_millis(5));
        tokio::select! {
            biased;
            _ = alarm.sleep_until(Some(soon)) => {}
            () = tokio::task::yield_now() => {}
        }
        let later = clock.now().plus(Duration::from_millis(40));
        assert_eq!(alarm.sleep_until(Some(later)).await, Wake::Due);
        assert!(clock.now() >= later);
    }

    #[tokio::test]
    async fn a_sleep_without_an_end_lasts() {
        let mut alarm = Clock::new().alarm().unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(20), alarm.sleep_until(None)).await;
        assert!(ended.is_err());
    }

    #[test]
    fn elapsed_time_goes_forward() {
        let clock = Clock::new();
        let before = clock.elapsed();
        assert!(before > Duration::ZERO && clock.elapsed() >= before);
    }

    #[test]
    fn the_boot_has_a_stable_id() {
        let id = boot_id().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(boot_id().unwrap(), id);
    }
}
