//! Task logs: `<logDir>/<taskId>/<instanceId>.<attempt>.log`, read whole, from the end, or followed.
//!
//! Follows the file, not the process: the executor writes, this only reads. The reader pulls; a
//! slow one holds up nobody but itself (known fault B144).

use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use nix::unistd::Whence;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::{LogRecord, Record};

use super::problem::Problem;
use super::query::{read, resolve};
use super::state::App;

/// Bytes read and sent at a time.
const CHUNK: usize = 64 * 1024;
/// Characters of a line of a log's end.
const TAIL_CHARACTERS: usize = 300;
/// Period at which a followed file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What of which log is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// Go on until the instance is final.
    pub(super) follow: bool,
    /// Only so many of the last lines of what is there.
    pub(super) tail: Option<u64>,
    /// Of which attempt; `None`: the newest, and when following those after it.
    pub(super) attempt: Option<u32>,
}

/// The log of the instance that `text` names.
pub(super) async fn open(app: &App, text: &str, wanted: Wanted) -> Result<Body, Problem> {
    // Before the row is read, so that no move after it is missed.
    let feed = app.feed.subscribe();
    let row = resolve(app, text).await?;
    let current = wanted.attempt.unwrap_or(row.attempt);
    let path = log_path(&app.log_dir, &row.task_id, &row.instance_id, current);
    let mut file = open_file(&path).await.map_err(|error| unreadable(&path, &error))?;
    let over = is_over(&row, wanted.attempt);
    if file.is_none() && (over || !wanted.follow) {
        return Err(no_log(&row, current));
    }
    let mut left = None;
    if let Some(file) = &mut file {
        let sought = place(file, wanted.tail).await;
        left = Some(sought.map_err(|error| unreadable(&path, &error))?);
    }
    if !wanted.follow {
        let end = match &file {
            Some(file) => file.metadata().await.map_or(0, |m| m.len()),
            None => 0,
        };
        let left = left.unwrap_or(0);
        let whole = Whole { file, left, end };
        return Ok(stream(whole, Whole::next));
    }
    let follower = Follower {
        app: Arc::clone(app),
        feed,
        over,
        attempt: wanted.attempt,
        current: current.max(1),
        row,
        file,
    };
    Ok(stream(follower, Follower::next))
}

fn stream<S, F>(state: S, next: fn(S) -> F) -> Body
where
    S: Send + 'static,
    F: Future<Output = Option<(std::io::Result<Bytes>, S)>> + Send + 'static,
{
    Body::from_stream(futures_util::stream::unfold(state, next))
}

/// The last lines of an attempt's log, each cut to a bounded length; none if it cannot be read.
pub(super) async fn tail(
    log_dir: &Path,
    task: &TaskId,
    instance: &InstanceId,
    attempt: u32,
    lines: u64,
) -> Vec<String> {
    let path = log_path(log_dir, task, instance, attempt);
    let Ok(Some(mut file)) = open_file(&path).await else { return Vec::new() };
    let Ok(left) = place(&mut file, Some(lines)).await else { return Vec::new() };
    let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
    let back = i64::try_from(most).unwrap_or(0);
    if file.seek(SeekFrom::End(-back)).await.is_err() {
        return Vec::new();
    }
    let bytes = read_some(&mut file, most).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().map(|line| line.chars().take(TAIL_CHARACTERS).collect()).collect()
}

fn log_path(log_dir: &Path, task: &TaskId, instance: &InstanceId, attempt: u32) -> PathBuf {
    log_dir.join(task.as_str()).join(format!("{instance}.{attempt}.log"))
}

/// The file, or `None` if there is none (yet).
async fn open_file(path: &Path) -> std::io::Result<Option<File>> {
    match File::open(path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::unavailable(format!("the log {} cannot be read: {error}", path.display()))
}

fn no_log(row: &Instance, attempt: u32) -> Problem {
    let id = &row.instance_id;
    Problem::not_found(if row.attempt == 0 {
        format!("instance {id} has no log: it is {} and was never started", row.state)
    } else if attempt == 0 || attempt > row.attempt {
        format!("instance {id} has no attempt {attempt}; its newest is {}", row.attempt)
    } else {
        format!("there is no log of attempt {attempt} of instance {id}, which is {}", row.state)
    })
}

/// Whether nothing more will be written to what is followed.
fn is_over(row: &Instance, attempt: Option<u32>) -> bool {
    match attempt {
        None => !row.is_open(),
        Some(n) if n == row.attempt => row.state != InstanceState::Running,
        Some(n) => n < row.attempt || !row.is_open(),
    }
}

/// Moves to where the reading begins and says how many bytes there are from there.
async fn place(file: &mut File, tail: Option<u64>) -> std::io::Result<u64> {
    let end = file.metadata().await?.len();
    let start = match tail {
        Some(lines) => last_lines(file, end, lines).await?,
        None => 0,
    };
    file.seek(SeekFrom::Start(start)).await?;
    Ok(end.saturating_sub(start))
}

/// Where the last `lines` lines before `end` begin, read backwards.
async fn last_lines(file: &mut File, end: u64, lines: u64) -> std::io::Result<u64> {
    if lines == 0 {
        return Ok(end);
    }
    let mut block = vec![0_u8; CHUNK];
    let mut at = end;
    let mut seen = 0;
    while at > 0 {
        let length = at.min(CHUNK as u64);
        at -= length;
        let part = &mut block[..usize::try_from(length).unwrap_or(CHUNK)];
        file.seek(SeekFrom::Start(at)).await?;
        file.read_exact(part).await?;
        for index in (0..part.len()).rev().filter(|&index| part[index] == b'\n') {
            let offset = at + index as u64;
            // The newline that ends the last line is not between two lines.
            if offset + 1 == end {
                continue;
            }
            seen += 1;
            if seen == lines {
                return Ok(offset + 1);
            }
        }
    }
    Ok(0)
}

/// Reads at most `most` bytes on. Where the executor cut out the middle of a long log there is a
/// hole in the file: it is passed over, not read as zero bytes. Zeros that a task wrote are data.
async fn read_some(file: &mut File, most: usize) -> std::io::Result<Vec<u8>> {
    loop {
        let from = file.stream_position().await?;
        let mut bytes = vec![0; most];
        let n = file.read(&mut bytes).await?;
        bytes.truncate(n);
        if !bytes.contains(&0) {
            return Ok(bytes);
        }
        let Some(data) = next(file, from, Whence::SeekData)? else {
            // Nothing but a hole up to the end.
            file.seek(SeekFrom::End(0)).await?;
            return Ok(Vec::new());
        };
        if data > from {
            file.seek(SeekFrom::Start(data)).await?;
            continue;
        }
        let hole = next(file, from, Whence::SeekHole)?.unwrap_or(u64::MAX);
        let kept = usize::try_from(hole.saturating_sub(from)).unwrap_or(usize::MAX);
        bytes.truncate(kept);
        file.seek(SeekFrom::Start(from + bytes.len() as u64)).await?;
        return Ok(bytes);
    }
}

/// Where data or a hole begins at or after `from`; `None`: nowhere.
///
/// Moves the descriptor's position; the caller seeks before it reads on.
fn next(file: &File, from: u64, what: Whence) -> std::io::Result<Option<u64>> {
    let offset = i64::try_from(from).map_err(std::io::Error::other)?;
    match nix::unistd::lseek(file, offset, what) {
        Ok(found) => Ok(u64::try_from(found).ok()),
        Err(nix::errno::Errno::ENXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is there now, to its end and no further.
struct Whole {
    file: Option<File>,
    left: u64,
    end: u64,
}

impl Whole {
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        let file = self.file.as_mut().filter(|_| self.left > 0)?;
        let most = usize::try_from(self.left).map_or(CHUNK, |left| left.min(CHUNK));
        match read_some(file, most).await {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                let at = file.stream_position().await.unwrap_or(self.end);
                self.left = self.end.saturating_sub(at);
                Some((Ok(Bytes::from(bytes)), self))
            }
            Err(error) => {
                self.file = None;
                Some((Err(error), self))
            }
        }
    }
}

/// What is there and what comes, until the instance is final and its file read to the end.
struct Follower {
    app: App,
    feed: broadcast::Receiver<Arc<LogRecord>>,
    /// Nothing more will be written: decided before the file is read to its end, never after.
    over: bool,
    attempt: Option<u32>,
    current: u32,
    row: Instance,
    file: Option<File>,
}

/// What ended a follower's wait.
enum Woken {
    /// The file may have grown.
    Look,
    /// The instance moved, or records were missed.
    Moved,
    /// The door stops.
    Stop,
}

impl Follower {
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        loop {
            match self.read_on().await {
                Ok(Some(bytes)) => return Some((Ok(bytes), self)),
                Ok(None) => {}
                Err(error) => {
                    self.over = true;
                    self.file = None;
                    return Some((Err(error), self));
                }
            }
            if self.attempt.is_none() && self.current < self.row.attempt {
                self.current += 1;
                self.file = None;
                continue;
            }
            if self.over {
                return None;
            }
            match self.wait().await {
                Woken::Look => {}
                Woken::Moved => match self.refresh().await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => {
                        self.over = true;
                        return Some((Err(error), self));
                    }
                },
                Woken::Stop => return None,
            }
        }
    }

    /// Bytes that are there, or `None` at the end of the file or while there is none.
    async fn read_on(&mut self) -> std::io::Result<Option<Bytes>> {
        if self.file.is_none() {
            let (task, id) = (&self.row.task_id, &self.row.instance_id);
            self.file = open_file(&log_path(&self.app.log_dir, task, id, self.current)).await?;
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        let bytes = read_some(file, CHUNK).await?;
        if !bytes.is_empty() {
            return Ok(Some(Bytes::from(bytes)));
        }
        // A file cut to its bounds meanwhile goes on from its new end.
        let end = file.metadata().await?.len();
        if file.stream_position().await? > end {
            file.seek(SeekFrom::Start(end)).await?;
        }
        Ok(None)
    }

    /// Waits for a reason to look again; without an attempt under way only the feed gives one.
    async fn wait(&mut self) -> Woken {
        let look = tokio::time::sleep(LOOK_EVERY);
        tokio::pin!(look);
        let running = self.row.state == InstanceState::Running;
        loop {
            let received = tokio::select! {
                biased;
                () = self.app.stop.cancelled() => return Woken::Stop,
                () = &mut look, if running => return Woken::Look,
                received = self.feed.recv() => received,
            };
            match received {
                Ok(record) if is_move_of(&record, &self.row.instance_id) => return Woken::Moved,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Woken::Moved,
                Err(RecvError::Closed) => return Woken::Stop,
            }
        }
    }

    /// Reads the row again; false: it is gone and so is its log.
    async fn refresh(&mut self) -> std::io::Result<bool> {
        let id = self.row.instance_id.clone();
        let row = read(&self.app, move |history| history.instance(&id)).await;
        let Some(row) = row.map_err(std::io::Error::other)? else { return Ok(false) };
        self.over = is_over(&row, self.attempt);
        self.row = row;
        Ok(true)
    }
}

fn is_move_of(record: &LogRecord, id: &InstanceId) -> bool {
    match &record.what {
        Record::Moved { instance_id, .. } | Record::Started { instance_id, .. } => {
            instance_id == id
        }
        Record::Created { .. }
        | Record::Updated { .. }
        | Record::Fire(_)
        | Record::FireAmended { .. }
        | Record::ClockStepped { .. }
        | Record::DefinitionLoaded { .. }
        | Record::DefinitionRemoved { .. }
        | Record::DefinitionPinned { .. }
        | Record::DefinitionUnpinned { .. }
        | Record::DefinitionRefused(_)
        | Record::Paused { .. }
        | Record::Resumed { .. }
        | Record::PriorityChanged { .. }
        | Record::Emitted { .. }
        | Record::ExecutorConnected { .. }
        | Record::ExecutorLost { .. }
        | Record::DaemonStarted { .. }
        | Record::DaemonStopping => false,
    }
}

#[cfg(test)]
mod tests;
