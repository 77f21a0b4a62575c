//! What the daemon tells systemd, if systemd started it: datagrams to `$NOTIFY_SOCKET`.
//!
//! Without that variable every call does nothing. The variables stay in the daemon's own
//! environment; tasks get a clean one (contract §3).

use std::time::Duration;

use sd_notify::NotifyState;

/// Start-up is over; also the end of a reload.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// A reload has begun; [`ready`] ends it.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => ::tracing::debug!(%error, "no time for systemd's reload message"),
    }
}

/// The stop has begun.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The loop is alive.
pub fn watchdog() {
    tell(&[NotifyState::Watchdog]);
}

/// One line for `systemctl status`.
pub fn status(text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    tell(&[NotifyState::Status(&line)]);
}

/// Start-up (recovery) or stop takes longer: `by` from now.
pub fn extend_timeout(by: Duration) {
    tell(&[NotifyState::ExtendTimeoutUsec(u32::try_from(by.as_micros()).unwrap_or(u32::MAX))]);
}

/// How often to call [`watchdog`]: half of what systemd allows; `None`: it does not watch.
#[must_use]
pub fn watchdog_period() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|allowed| allowed / 2).filter(|period| !period.is_zero())
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        ::tracing::warn!(%error, "systemd cannot be told of the daemon's state");
    }
}
