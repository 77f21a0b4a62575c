//! What jumps of the clock left behind at a time trigger: which nominal times it went past, and
//! which it will show again (requirement E2; design, 'Clock, disk, faults' T3).

use serde::{Deserialize, Serialize};

use super::id::{LogSeq, TaskId};
use super::record::Fire;
use super::time::Timestamp;

/// A stretch of time: its start is not in it, its end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// What lies after this time
    pub after: Timestamp,
    /// … and not after this one.
    pub to: Timestamp,
}

impl Span {
    /// Whether a time lies in it.
    #[must_use]
    pub fn holds(&self, at: Timestamp) -> bool {
        self.after < at && at <= self.to
    }

    /// What is left of it without another: at most two.
    #[must_use]
    pub fn without(&self, other: &Self) -> Vec<Self> {
        let before = Self { after: self.after, to: self.to.min(other.after) };
        let behind = Self { after: self.after.max(other.to), to: self.to };
        [before, behind].into_iter().filter(|part| part.after < part.to).collect()
    }
}

/// A row of the ledger for fires that nobody saw become due (MISSED, COALESCED).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Where in the log the row is.
    pub seq: LogSeq,
    /// What it says.
    pub fire: Fire,
    /// Stretches of it whose times have rows of their own.
    pub but: Vec<Span>,
}

/// What jumps of the clock left behind at one time trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Jumps {
    /// The task.
    pub task_id: TaskId,
    /// The trigger's key.
    pub trigger: String,
    /// Times after this one are counted; earlier than the trigger itself if the clock was set back
    /// to before it.
    pub since: Timestamp,
    /// Rows to be taken back as far as the clock turns out to have been ahead; see
    /// [`Self::SKIPPED_MAX`].
    pub skipped: Vec<Skipped>,
    /// Times after the cursor that have had their row: the clock shows them a second time. In
    /// their order, apart from each other.
    pub done: Vec<Span>,
}

impl Jumps {
    /// Skipped rows that are remembered, the longest; shorter ones are final then.
    pub const SKIPPED_MAX: usize = 4;

    /// Nothing left behind yet.
    #[must_use]
    pub const fn none(task_id: TaskId, trigger: String, since: Timestamp) -> Self {
        Self { task_id, trigger, since, skipped: Vec::new(), done: Vec::new() }
    }

    /// Remembers one more skipped row, made now. One that is further back than it is long is
    /// final: a clock that was ahead by so much has been found out long ago.
    pub fn skip(&mut self, row: Skipped, now: Timestamp) {
        let age = |row: &Skipped| now.as_millis().saturating_sub(row.fire.to.as_millis());
        self.skipped.retain(|row| age(row) <= length(&row.fire));
        self.skipped.push(row);
        if self.skipped.len() > Self::SKIPPED_MAX {
            let shortest =
                (0..self.skipped.len()).min_by_key(|i| length(&self.skipped[*i].fire)).unwrap_or(0);
            self.skipped.remove(shortest);
        }
    }

    /// Notes that the times of a stretch have had their row.
    pub fn add_done(&mut self, span: Span) {
        self.done.push(span);
        self.done.sort_by_key(|span| span.after);
        let mut joined: Vec<Span> = Vec::new();
        for span in self.done.drain(..) {
            match joined.last_mut() {
                Some(last) if span.after <= last.to => last.to = last.to.max(span.to),
                Some(_) | None => joined.push(span),
            }
        }
        self.done = joined;
    }

    /// The end of the stretch of done times that holds `at`; `None`: it is not done.
    #[must_use]
    pub fn done_until(&self, at: Timestamp) -> Option<Timestamp> {
        self.done.iter().find(|span| span.holds(at)).map(|span| span.to)
    }
}

fn length(fire: &Fire) -> i64 {
    fire.to.as_millis().saturating_sub(fire.from.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(after: i64, to: i64) -> Span {
        Span { after: Timestamp::from_millis(after), to: Timestamp::from_millis(to) }
    }

    #[test]
    fn a_span_holds_its_end_and_not_its_start() {
        let held: Vec<i64> =
            (0..6).filter(|ms| span(1, 4).holds(Timestamp::from_millis(*ms))).collect();
        assert_eq!(held, [2, 3, 4]);
    }

    #[test]
    fn done_stretches_that_touch_are_one() {
        let mut jumps =
            Jumps::none(TaskId::parse("a.v1").unwrap(), String::new(), Timestamp::default());
        for (after, to) in [(5, 7), (0, 2), (7, 9), (1, 3)] {
            jumps.add_done(span(after, to));
        }
        assert_eq!(jumps.done, [span(0, 3), span(5, 9)]);
    }

    #[test]
    fn what_is_left_of_a_span_lies_before_and_behind() {
        assert_eq!(span(0, 9).without(&span(3, 5)), [span(0, 3), span(5, 9)]);
        assert_eq!(span(0, 9).without(&span(-1, 5)), [span(5, 9)]);
        assert_eq!(span(0, 9).without(&span(3, 9)), [span(0, 3)]);
        assert_eq!(span(0, 9).without(&span(-1, 10)), []);
        assert_eq!(span(0, 9).without(&span(20, 30)), [span(0, 9)]);
        assert_eq!(span(0, 9).without(&span(-5, -2)), [span(0, 9)]);
    }
}
