//! `remove`: a task's file out of the spec directory.

use std::io::IsTerminal as _;

use sched::access::client::Response;
use serde::Deserialize;

use crate::cli::RemoveArgs;
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, task};

/// What goes, or would.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Removal {
    file: String,
    #[serde(default)]
    broken_dependents: Vec<String>,
}

/// Removes it, and says which file that was and who has lost an upstream.
pub(crate) fn remove(session: &Session, args: &RemoveArgs) -> Result<Exit, Failure> {
    let target = || task(&args.task);
    if !args.yes && std::io::stdin().is_terminal() {
        let planned = read(&session.client.delete(&target().query("dryRun", "true"))?)?;
        confirm(&question(&args.task, &planned), false)?;
    }
    let answer = session.client.delete(&target())?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    let Removal { file, broken_dependents } = read(&answer)?;
    note(&format!("{} removed with {file}; what exists of it ends by itself", args.task));
    if !broken_dependents.is_empty() {
        note(&format!(
            "no file defines {} now; waiting for it: {}",
            args.task,
            broken_dependents.join(", ")
        ));
    }
    Ok(Exit::Good)
}

fn read(answer: &Response) -> Result<Removal, Failure> {
    Ok(answer.json()?)
}

fn question(task: &str, Removal { file, broken_dependents }: &Removal) -> String {
    let question = format!("remove {task} and delete {file}?");
    if broken_dependents.is_empty() {
        return question;
    }
    format!("{question} {} would lose this upstream.", broken_dependents.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_file_and_those_who_would_lose_their_upstream() {
        let removal = |broken: &[&str]| Removal {
            file: "/srv/a.yaml".to_owned(),
            broken_dependents: broken.iter().map(|&id| id.to_owned()).collect(),
        };
        assert_eq!(question("a.v1", &removal(&[])), "remove a.v1 and delete /srv/a.yaml?");
        let text = "remove a.v1 and delete /srv/a.yaml? b.v1, c.v1 would lose this upstream.";
        assert_eq!(question("a.v1", &removal(&["b.v1", "c.v1"])), text);
    }
}
