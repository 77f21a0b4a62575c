//! The append-only log as a stream: history first, then the feed, without gap or double.
//!
//! The follower subscribes before it reads, so whatever history does not show yet is on the feed.
//! One that lags is brought back by history. It is pulled by its reader: a slow one waits alone.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::model::history::{History, HistoryError};
use crate::model::id::LogSeq;
use crate::model::record::LogRecord;
use crate::model::time::Timestamp;

use super::problem::Problem;
use super::query::read;
use super::state::App;

/// Records read from history at a time.
const CHUNK: usize = 256;

/// Where a reading of the log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// Strictly after this position.
    Seq(LogSeq),
    /// At or after this time.
    At(Timestamp),
}

/// The position strictly after which a reading begins.
pub(super) async fn start(app: &App, since: Since) -> Result<LogSeq, Problem> {
    match since {
        Since::Seq(seq) => Ok(seq),
        Since::At(at) => read(app, move |history| before(history, at)).await,
    }
}

/// The last position whose record is earlier than `at`, found by halving.
fn before(history: &dyn History, at: Timestamp) -> Result<LogSeq, HistoryError> {
    let tip = history.tip()?.0;
    let Some(first) = history.records(LogSeq(0), 1)?.into_iter().next() else {
        return Ok(LogSeq(tip));
    };
    // Everything up to `low` is earlier than `at`; nothing after `high` is.
    let (mut low, mut high) = (first.seq.0.saturating_sub(1), tip);
    while low < high {
        let middle = low + (high - low) / 2;
        match history.records(LogSeq(middle), 1)?.first() {
            Some(record) if record.at < at => low = record.seq.0.max(middle + 1),
            Some(_) | None => high = middle,
        }
    }
    Ok(LogSeq(low))
}

/// A body of JSON lines that goes on until the door stops or the reader leaves.
pub(super) async fn follow(app: &App, since: Option<Since>) -> Result<Body, Problem> {
    let feed = app.feed.subscribe();
    let last = match since {
        Some(since) => start(app, since).await?,
        None => read(app, |history| history.tip()).await?,
    };
    let follower = Follower { app: Arc::clone(app), feed, last, from_history: true };
    Ok(Body::from_stream(futures_util::stream::unfold(follower, |mut follower| async move {
        let lines = follower.next().await.transpose()?;
        Some((lines, follower))
    })))
}

struct Follower {
    app: App,
    feed: broadcast::Receiver<Arc<LogRecord>>,
    /// The last position given out.
    last: LogSeq,
    /// Whether history may hold records that the feed will not bring.
    from_history: bool,
}

impl Follower {
    /// The next lines; `None`: the end; an error breaks the answer off, so that it is not taken
    /// for complete.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if self.from_history {
                let last = self.last;
                let records = read(&self.app, move |h| h.records(last, CHUNK)).await;
                let records = records.map_err(io::Error::other)?;
                self.from_history = !records.is_empty();
                if let Some(newest) = records.last() {
                    self.last = newest.seq;
                    return Ok(Some(lines(&records)));
                }
            }
            let received = tokio::select! {
                biased;
                () = self.app.stop.cancelled() => return Ok(None),
                received = self.feed.recv() => received,
            };
            match received {
                Ok(record) if record.seq <= self.last => {}
                Ok(record) if record.seq.0 == self.last.0 + 1 => {
                    self.last = record.seq;
                    return Ok(Some(lines(&[record])));
                }
                // History is read again from the last position given out, this record included.
                Ok(_) | Err(RecvError::Lagged(_)) => self.from_history = true,
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }
}

fn lines(records: &[impl std::borrow::Borrow<LogRecord>]) -> Bytes {
    let mut text = Vec::new();
    for record in records {
        // Writing to memory cannot fail, and a record has no key that is not text.
        if serde_json::to_writer(&mut text, record.borrow()).is_ok() {
            text.push(b'\n');
        }
    }
    Bytes::from(text)
}

#[cfg(test)]
mod tests;
