//! Whether and when a failed attempt is tried again (requirement F2; design, 'Attempts').

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::model::id::InstanceId;
use crate::model::spec::{Backoff, RetryPolicy};

/// Whether an error code is on the list of those tried again.
///
/// Without a list every code but CANCEL_REQUESTED is; `EXIT_*` stands for all that begin so.
pub(super) fn is_listed(policy: &RetryPolicy, code: &str) -> bool {
    match &policy.retry_on {
        None => code != "CANCEL_REQUESTED",
        Some(list) => list.iter().any(|entry| match entry.strip_suffix('*') {
            Some(prefix) => code.starts_with(prefix),
            None => entry == code,
        }),
    }
}

/// The wait before the attempt that follows the `nth` failure, from 1.
///
/// Jitter varies it by up to ± the policy's share; the same instance and failure always get the
/// same wait, so that a replay decides the same.
pub(super) fn delay(policy: &RetryPolicy, nth: u32, instance: &InstanceId) -> Duration {
    let wait = match policy.backoff {
        Backoff::Fixed => policy.interval,
        Backoff::Exponential => {
            let factor = 1_u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX);
            policy.interval.checked_mul(factor).unwrap_or(Duration::MAX)
        }
    };
    let wait = wait.min(policy.max_interval);
    if policy.jitter <= 0.0 {
        return wait;
    }
    let share = 1.0 + policy.jitter.min(1.0) * (2.0 * seed(instance, nth) - 1.0);
    Duration::try_from_secs_f64(wait.as_secs_f64() * share).unwrap_or(wait)
}

/// A number in 0..1 that depends on the instance and the failure only.
fn seed(instance: &InstanceId, nth: u32) -> f64 {
    let digest = Sha256::digest(format!("{instance}/{nth}").as_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(number) / f64::from(u32::MAX)
}

/// The wait before a start that failed for want of resources is tried again: 1, 2, 4 … 60 s.
pub(super) fn spawn_delay(nth: u32) -> Duration {
    Duration::from_secs(1_u64.checked_shl(nth.saturating_sub(1)).unwrap_or(60).min(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(backoff: Backoff, retry_on: Option<&[&str]>) -> RetryPolicy {
        RetryPolicy {
            max_attempts: 9,
            backoff,
            interval: Duration::from_secs(1),
            max_interval: Duration::from_secs(5),
            jitter: 0.0,
            retry_on: retry_on.map(|l| l.iter().map(|s| (*s).to_owned()).collect()),
        }
    }

    #[test]
    fn waits_grow_as_the_source_document_says() {
        let id = InstanceId::from_text("x");
        let wait = |b, n| delay(&policy(b, None), n, &id).as_secs();
        assert_eq!([1, 2, 3].map(|n| wait(Backoff::Fixed, n)), [1, 1, 1]);
        assert_eq!([1, 2, 3, 4, 99].map(|n| wait(Backoff::Exponential, n)), [1, 2, 4, 5, 5]);
        assert_eq!([1, 2, 3, 7, 80].map(|n| spawn_delay(n).as_secs()), [1, 2, 4, 60, 60]);
    }

    #[test]
    fn jitter_stays_within_its_share_and_repeats() {
        let mut policy = policy(Backoff::Fixed, None);
        policy.jitter = 0.2;
        for n in 1..50 {
            let id = InstanceId::from_text("x");
            let wait = delay(&policy, n, &id);
            assert!((800..=1200).contains(&wait.as_millis()), "{wait:?}");
            assert_eq!(wait, delay(&policy, n, &id));
        }
    }

    #[test]
    fn the_list_decides_and_without_one_everything_but_a_cancel_is_tried_again() {
        let all = policy(Backoff::Fixed, None);
        assert!(is_listed(&all, "EXIT_1") && is_listed(&all, "TIMEOUT"));
        assert!(!is_listed(&all, "CANCEL_REQUESTED"));
        let some = policy(Backoff::Fixed, Some(&["EXIT_*", "CONN_RESET"]));
        assert!(is_listed(&some, "EXIT_75") && is_listed(&some, "CONN_RESET"));
        assert!(!is_listed(&some, "TIMEOUT") && !is_listed(&some, "CONN_RESETS"));
        assert!(!is_listed(&policy(Backoff::Fixed, Some(&[])), "EXIT_1"));
    }
}
