use super::*;
use clap::CommandFactory as _;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_verb_has_its_sentence() {
    for verb in Cli::command().get_subcommands() {
        assert!(verb.get_about().is_some(), "{}", verb.get_name());
    }
}

#[test]
fn global_options_stand_before_or_behind_the_verb() {
    for line in ["schedctl --socket /s -o json ps", "schedctl ps --socket /s -o json"] {
        let cli = parse(line).unwrap();
        assert_eq!(cli.output, Format::Json, "{line}");
        assert_eq!(cli.socket.as_deref(), Some(std::path::Path::new("/s")), "{line}");
    }
    assert!(parse("schedctl").unwrap().verb.is_none());
}

#[test]
fn run_takes_what_the_contract_names() {
    let line = "schedctl run a.v1 -p x=1 -p y=a=b --cycle 2026-11-30 --request-id k --priority HIGH \
                --at 2h --ignore-deps --no-downstream --wait --timeout 5 -q";
    let Some(Verb::Run(args)) = parse(line).unwrap().verb else { panic!() };
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(args.param, [pair("x", "1"), pair("y", "a=b")]);
    assert_eq!(args.priority.map(Priority::value), Some(1));
    assert_eq!(args.timeout, Some(std::time::Duration::from_secs(5)));
    assert!(args.ignore_deps && args.no_downstream && args.wait && args.quiet);
}

#[test]
fn a_backfill_needs_both_ends_of_its_range() {
    let line = "schedctl backfill a.v1 --from 2026-11-01 --to 2026-11-30 --request-id k -q";
    let Some(Verb::Backfill(args)) = parse(line).unwrap().verb else { panic!() };
    assert_eq!((args.from.as_str(), args.to.as_str()), ("2026-11-01", "2026-11-30"));
    assert!(!args.again && !args.newest_first && !args.dry_run && args.quiet);
    assert!(parse("schedctl backfill a.v1 --from 2026-11-01").is_err());
    assert!(parse("schedctl backfill --from 2026-11-01 --to 2026-11-30").is_err());
}

#[test]
fn states_are_a_list_in_any_case() {
    let Some(Verb::Ps(args)) = parse("schedctl ps --state failed,RUNNING").unwrap().verb else {
        panic!()
    };
    assert_eq!(args.state, [InstanceState::Failed, InstanceState::Running]);
}

#[test]
fn wrong_usage_is_refused() {
    for line in [
        "schedctl run",
        "schedctl run a.v1 -p x",
        "schedctl run a.v1 -p =1",
        "schedctl run a.v1 --priority 10",
        "schedctl run a.v1 --dry-run --wait",
        "schedctl run a.v1 --cycle 2026-11-30 --date 2026-11-30",
        "schedctl ps --state FAIL",
        "schedctl ps --since yesterday",
        "schedctl pause",
        "schedctl pause a.v1 --all",
        "schedctl resume --queue q --all",
        "schedctl cancel",
        "schedctl skip",
        "schedctl retry --with-downstream",
        "schedctl pause --queue q --freeze",
        "schedctl pause --all --freeze",
        "schedctl wait",
        "schedctl next a.v1 --expr @daily",
        "schedctl next --tz Mars/Olympus",
        "schedctl shutdown --drain --cancel",
        "schedctl history",
        "schedctl history --diff a.b.v1",
        "schedctl history a.b.v1 --diff 1",
        "schedctl history a.b.v1 --diff 1..x",
        "schedctl rollback a.b.v1",
        "schedctl rollback a.b.v1 newest",
        "schedctl plan",
        "schedctl apply",
        "schedctl remove",
        "schedctl unpin",
        "schedctl no-such-verb",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
