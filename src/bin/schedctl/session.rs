//! One invocation: the daemon to ask and the output to write to.

use sched::access::client::{Client, ClientError, Response, Stream, Target};
use sched::model::view::StatusView;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Rows of one page, as the server bounds it.
const PAGE: usize = sched::limits::PAGE_MAX;

/// What every verb needs.
#[derive(Debug)]
pub(crate) struct Session {
    /// The daemon.
    pub(crate) client: Client,
    /// Where answers go.
    pub(crate) output: Output,
}

impl Session {
    /// Reads something.
    pub(crate) fn get(&self, target: &Target) -> Result<Response, Failure> {
        Ok(self.client.get(target)?)
    }

    /// Reads something of a known shape.
    pub(crate) fn view<T: DeserializeOwned>(&self, target: &Target) -> Result<T, Failure> {
        Ok(self.client.get(target)?.json()?)
    }

    /// Tells, beside a table, that everything is paused: easily done and easily forgotten.
    pub(crate) fn warn_if_all_is_paused(&self) -> Result<(), Failure> {
        if self.output.is_json() {
            return Ok(());
        }
        let status: StatusView = self.view(&Target::new("/status"))?;
        if status.paused.is_some() {
            self.output.note("everything is paused: nothing starts until schedctl resume --all");
        }
        Ok(())
    }

    /// Orders something.
    pub(crate) fn post(
        &self,
        target: &Target,
        body: &impl serde::Serialize,
    ) -> Result<Response, Failure> {
        Ok(self.client.post(target, body)?)
    }

    /// Opens something that comes bit by bit.
    pub(crate) fn stream(&self, target: &Target) -> Result<Stream<'_>, Failure> {
        Ok(self.client.stream(target)?)
    }

    /// Shows an answer: as it came to a program, rendered to a person.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        target: &Target,
        render: impl FnOnce(&T, &Output) -> String,
    ) -> Result<(), Failure> {
        let answer = self.get(target)?;
        if self.output.is_json() {
            return self.output.json(&answer.body);
        }
        self.output.line(&render(&answer.json()?, &self.output))
    }

    /// Shows a list that comes in one answer; `none` is said if it is empty.
    pub(crate) fn show_list<T: DeserializeOwned>(
        &self,
        target: &Target,
        none: &str,
        render: impl FnOnce(&[T], &Output) -> String,
    ) -> Result<(), Failure> {
        let answer = self.get(target)?;
        if self.output.is_json() {
            return self.output.json_list(&answer.json::<Vec<&RawValue>>()?);
        }
        let views: Vec<T> = answer.json()?;
        if views.is_empty() {
            self.output.note(none);
            return Ok(());
        }
        self.output.line(&render(&views, &self.output))
    }

    /// Reads a list page by page and gives each row to `each`, at most `limit` of them.
    /// Says whether there are more.
    pub(crate) fn pages(
        &self,
        first: Target,
        limit: Option<usize>,
        mut each: impl FnMut(&RawValue) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let mut left = limit.unwrap_or(usize::MAX);
        let mut target = first.query("limit", &left.min(PAGE).to_string());
        loop {
            let answer = self.get(&target)?;
            let rows: Vec<&RawValue> = answer.json()?;
            let more_here = rows.len() > left;
            for row in rows.into_iter().take(left) {
                each(row)?;
                left -= 1;
            }
            match answer.next {
                Some(next) if left > 0 => target = next,
                Some(_) => return Ok(true),
                None => return Ok(more_here),
            }
        }
    }
}

/// Reads one row of a list.
pub(crate) fn read_row<T: DeserializeOwned>(row: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(row.get()).map_err(|source| {
        Failure::Client(ClientError::Json { target: "a row of the list".to_owned(), source })
    })
}

/// Whether a name is an instance's (else a task's): task ids have dots, instance ids have none,
/// and only an instance has an `@`.
pub(crate) fn names_instance(name: &str) -> bool {
    name.contains('@') || !name.contains('.')
}

/// `/instances/{name}` or `/tasks/{name}`, whichever it names.
pub(crate) fn named(name: &str) -> Target {
    if names_instance(name) { instance(name) } else { task(name) }
}

/// `/instances/{name}`.
pub(crate) fn instance(name: &str) -> Target {
    Target::new("/instances").segment(name)
}

/// `/tasks/{name}`.
pub(crate) fn task(name: &str) -> Target {
    Target::new("/tasks").segment(name)
}

/// A failure of usage that only the surroundings can tell.
pub(crate) fn usage(text: impl Into<String>) -> Failure {
    Failure::said(Exit::Usage, text)
}
