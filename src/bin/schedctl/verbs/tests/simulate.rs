//! `simulate`, with a daemon that tells what it remembers, and without one.

use std::path::Path;

use sched::model::simulation::Basis;
use sched::model::time::Timestamp;

use super::*;

const DAY: &str = "--from 2026-12-01T00:00:00Z --to 2026-12-02T00:00:00Z";

/// A directory of one spec file.
fn specs(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), text).unwrap();
    dir
}

fn nightly() -> tempfile::TempDir {
    specs(
        "taskId: a.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\n\
         triggers: [{cron: '0 2 * * *'}]\n",
    )
}

/// One executor of two slots.
fn config(dir: &Path) -> std::path::PathBuf {
    let file = dir.join("schedd.conf");
    std::fs::write(&file, "executors: [{id: local, slots: 2}]\ntimezone: UTC\n").unwrap();
    file
}

/// A daemon that remembers nothing but its configuration.
fn remembering() -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    let settings = sched::config::Config::load(Some(&config(dir.path()))).unwrap().settings;
    let at = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
    let basis = Basis::bare(at, sched::model::settings::Settings::clone(&settings));
    let body = serde_json::to_string(&basis).unwrap();
    daemon(move |_, stream| reply(stream, "200 OK", &body))
}

/// Runs a command line where no daemon is.
fn without_daemon(line: &str) -> Result<Exit, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
    let client = Client::at(&dir.path().join("s.sock")).unwrap();
    crate::ask(&Session { client, output: output(Format::Jsonl) }, &cli.verb.unwrap())
}

#[test]
fn the_daemon_is_asked_once_and_only_for_what_it_remembers() {
    let daemon = remembering();
    for format in [Format::Table, Format::Wide, Format::Json, Format::Jsonl] {
        assert_eq!(daemon.run_as("schedctl simulate", format).unwrap(), Exit::Good);
        assert_eq!(daemon.asked(), ["GET /v1/simulation-basis"]);
    }
}

#[test]
fn definitions_of_its_own_need_no_daemon_and_without_them_there_must_be_one() {
    let (dir, place) = (nightly(), tempfile::tempdir().unwrap());
    let (specs, config) = (dir.path().display(), config(place.path()));
    let line = format!("schedctl simulate {DAY} --specs {specs} --config {}", config.display());
    assert_eq!(without_daemon(&line).unwrap(), Exit::Good);
    let failure = without_daemon(&format!("schedctl simulate {DAY}")).unwrap_err();
    assert_eq!(failure.exit(), Exit::Unreachable);
    let failure = without_daemon(&format!("{line}.not")).unwrap_err();
    assert_eq!(failure.exit(), Exit::NotFound, "a configuration that is not there");
}

#[test]
fn wrong_specs_are_refused_as_by_validate() {
    let daemon = remembering();
    let wrong = specs("taskId: a.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\n");
    let line = |dir: &Path| format!("schedctl simulate {DAY} --specs {}", dir.display());
    assert_eq!(daemon.run(&line(wrong.path())).unwrap(), Exit::Refused);
    let task = |id: &str, of: &str| {
        format!(
            "taskId: {id}\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\ndependsOn: [{of}]\n"
        )
    };
    let circle = format!("{}---\n{}", task("a.t.v1", "b.t.v1"), task("b.t.v1", "a.t.v1"));
    assert_eq!(daemon.run(&line(specs(&circle).path())).unwrap(), Exit::Refused);
    let failure = daemon.run(&line(&wrong.path().join("nowhere"))).unwrap_err();
    assert_eq!(failure.exit(), Exit::NotFound);
}

#[test]
fn a_span_that_is_none_or_too_long_is_a_matter_of_usage() {
    let daemon = remembering();
    for (span, said) in [
        ("--from 2026-12-02T00:00:00Z --to 2026-12-02T00:00:00Z", "is not after"),
        ("--from 2026-12-02T00:00:00Z --to 2026-12-01T00:00:00Z", "is not after"),
        ("--from 2026-12-01T00:00:00Z --to 2027-01-01T00:00:01Z", "longer than 31 days"),
    ] {
        let failure = daemon.run(&format!("schedctl simulate {span}")).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage, "{span}");
        assert!(failure.text().contains(said), "{}", failure.text());
    }
    let good = "--from 2026-12-01T00:00:00Z --to 2027-01-01T00:00:00Z";
    assert_eq!(daemon.run(&format!("schedctl simulate {good}")).unwrap(), Exit::Good);
    let outside = "--event go=2027-01-01T00:00:00Z";
    let failure = daemon.run(&format!("schedctl simulate {good} {outside}")).unwrap_err();
    assert_eq!(failure.exit(), Exit::Usage);
    // A duration counts from the beginning.
    let good = "--from 2036-12-01T00:00:00Z --to 8h";
    assert_eq!(daemon.run(&format!("schedctl simulate {good}")).unwrap(), Exit::Good);
}

#[test]
fn a_task_that_is_not_there_is_told_with_the_one_that_may_be_meant() {
    let (daemon, dir) = (remembering(), nightly());
    for option in ["--deadline a.u.v1=06:00", "--assume a.u.v1=5m"] {
        let line = format!("schedctl simulate {DAY} --specs {} {option}", dir.path().display());
        let failure = daemon.run(&line).unwrap_err();
        assert_eq!(failure.exit(), Exit::NotFound);
        assert!(failure.text().contains("did you mean a.t.v1?"), "{}", failure.text());
    }
}

#[test]
fn a_chart_is_written_beside_it() {
    let (daemon, dir) = (remembering(), nightly());
    let file = dir.path().join("night.svg");
    let line = format!(
        "schedctl simulate {DAY} --specs {} --deadline 06:00 --svg {}",
        dir.path().display(),
        file.display()
    );
    assert_eq!(daemon.run_as(&line, Format::Table).unwrap(), Exit::Good);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("<svg") && text.contains("a.t.v1"), "{text}");
    let nowhere = line.replace("night.svg", "no/where.svg");
    assert_eq!(daemon.run(&nowhere).unwrap_err().exit(), Exit::Failed);
}
