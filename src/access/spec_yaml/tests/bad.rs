//! Bad specs with exactly what is said about them.

use super::{BASE, file};

/// What is said about a whole text, without the file's name.
fn said(text: &str) -> Vec<String> {
    let file = file(text);
    if !file.errors.is_empty() {
        assert!(file.specs.is_empty(), "{text}");
    }
    let strip = |e: &crate::model::event::SpecError| {
        e.to_string().strip_prefix("/etc/sched.d/x.yaml:").unwrap().to_owned()
    };
    file.errors.iter().map(strip).collect()
}

/// `BASE` has five lines, so what is added starts on line 6.
fn check(table: &[(&str, &str)]) {
    for (more, expected) in table {
        assert_eq!(said(&format!("{BASE}{more}")), [*expected], "{more}");
    }
}

#[test]
fn required_keys_are_missed() {
    for (without, expected) in [
        ("taskId: a.b.v1\n", "1:1: taskId: is missing; it is required"),
        ("version: 1\n", "1:1: version: is missing; it is required"),
        ("owner: o\n", "1:1: owner: is missing; it is required"),
        ("taskType: SHELL\n", "1:1: taskType: is missing; it is required"),
        ("handler: 'true'\n", "1:1: handler: is missing; it is required"),
    ] {
        assert_eq!(said(&BASE.replace(without, "")), [expected], "{without}");
    }
    assert_eq!(said(&BASE.replace("a.b.v1", "null")), ["1:1: taskId: is missing; it is required"]);
    assert_eq!(said("just words\n"), ["1:1: found just words; expected a map"]);
}

#[test]
fn identity_is_checked() {
    for (from, to, expected) in [
        (
            "version: 1",
            "version: 2",
            "2:10: version: found 2; expected 1, because taskId ends in .v1",
        ),
        (
            "version: 1",
            "version: '1'",
            "2:10: version: found the text \"1\"; expected a whole number from 1 to 4294967295",
        ),
        (
            "a.b.v1",
            "../../etc/x.v1",
            "1:9: taskId: \"../../etc/x.v1\" has \"an empty word\"; expected words of a-z and 0-9 joined by '.', '-' or '_'",
        ),
        (
            "a.b.v1",
            "A.v1",
            "1:9: taskId: \"A.v1\" has \"A\"; expected words of a-z and 0-9 joined by '.', '-' or '_'",
        ),
        (
            "a.b.v1",
            "a.b.20261130.v1",
            "1:9: taskId: \"a.b.20261130.v1\" carries the run time \"20261130\"; a task id is the same for every run, put the time in a parameter",
        ),
        (
            "owner: o",
            "owner: ''",
            "3:8: owner: found the text \"\"; expected a text of one line that is not empty",
        ),
        (
            "SHELL",
            "SHEL",
            "4:11: taskType: found SHEL; expected SHELL, EXEC, BATCH_SETTLE (or a type from taskTypes in the configuration); did you mean SHELL?",
        ),
        ("SHELL", "SPARK", "4:11: taskType: the type SPARK is not supported by this version yet"),
        ("'true'", "' '", "5:10: handler: found the text \" \"; expected something to run"),
    ] {
        assert_eq!(said(&BASE.replace(from, to)), [expected], "{to}");
    }
}

#[test]
fn unknown_keys_get_the_nearest_known_one_at_every_depth() {
    check(&[
        ("retires: 3\n", "6:1: retires: unknown key \"retires\"; did you mean retry?"),
        ("timeoutms: 5\n", "6:1: timeoutms: unknown key \"timeoutms\"; did you mean timeoutMs?"),
        (
            "retry: {maxAttempt: 3}\n",
            "6:9: retry.maxAttempt: unknown key \"maxAttempt\"; did you mean maxAttempts?",
        ),
        (
            "triggers: [{corn: '* * * * *'}]\n",
            "6:13: triggers[0].corn: unknown key \"corn\"; did you mean cron?",
        ),
        (
            "limits: {memroy: 1}\n",
            "6:10: limits.memroy: unknown key \"memroy\"; did you mean memory?",
        ),
        (
            "log: {maxByte: 1}\n",
            "6:7: log.maxByte: unknown key \"maxByte\"; did you mean maxBytes?",
        ),
        (
            "dependsOn: [{taskId: c.v1, depTyp: SUCCESS}]\n",
            "6:28: dependsOn[0].depTyp: unknown key \"depTyp\"; did you mean depType?",
        ),
        (
            "runtimeParams: {d: {typ: date, type: date}}\n",
            "6:21: runtimeParams.d.typ: unknown key \"typ\"; did you mean type?",
        ),
        ("xyz: 1\n", "6:1: xyz: unknown key \"xyz\""),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn values_say_what_was_found_and_what_is_expected() {
    check(&[
        (
            "timeoutMs: -5\n",
            "6:12: timeoutMs: found -5; expected milliseconds or a text such as \"30s\" or \"1h30m\"",
        ),
        ("timeoutMs: 0\n", "6:12: timeoutMs: found 0; expected at least 1 ms"),
        (
            "timeoutMs: 99999999999999999999999\n",
            "6:12: timeoutMs: found 99999999999999999999999; expected milliseconds or a text such as \"30s\" or \"1h30m\"",
        ),
        (
            "timeoutMs: 9223372036854775807\n",
            "6:12: timeoutMs: found 9223372036854775807; expected at most 36500 days",
        ),
        (
            "timeoutMs: 1 month\n",
            "6:12: timeoutMs: found 1 month; expected milliseconds or a text such as \"30s\" or \"1h30m\"",
        ),
        ("umask: 999\n", "6:8: umask: found 999; expected octal digits in quotes, such as \"022\""),
        ("umask: 18\n", "6:8: umask: found 18; expected octal digits in quotes, such as \"022\""),
        (
            "umask: \"01777\"\n",
            "6:8: umask: found the text \"01777\"; expected octal digits in quotes, such as \"022\"",
        ),
        ("nice: 20\n", "6:7: nice: found 20; expected a whole number from -20 to 19"),
        (
            "limits: {memory: 1Q}\n",
            "6:18: limits.memory: found 1Q; expected bytes, such as 1000000, 2G or 512Mi",
        ),
        ("enabled: yes\n", "6:10: enabled: found yes; expected true or false"),
        ("args: x\n", "6:7: args: found x; expected a list"),
        ("args: [[x]]\n", "6:8: args[0]: found a list; expected a text"),
        ("staticParams: [x]\n", "6:15: staticParams: found a list; expected a map"),
        ("labels: {a: {b: c}}\n", "6:13: labels.a: found a map; expected a text"),
        (
            "timezone: Mars/Olympus\n",
            "6:11: timezone: found Mars/Olympus; expected an IANA zone such as Asia/Shanghai",
        ),
        (
            "queue: nightyl\n",
            "6:8: queue: found nightyl; expected a queue of the configuration: default, nightly; did you mean nightly?",
        ),
        (
            "maxConcurrent: 0\n",
            "6:16: maxConcurrent: found 0; expected a whole number from 1 to 4294967295",
        ),
        (
            "priority: 10\n",
            "6:11: priority: found 10; expected 0 (first) to 9 (last), or one of CRITICAL, HIGH, NORMAL, LOW, BACKGROUND",
        ),
        (
            "priority: -1\n",
            "6:11: priority: found -1; expected 0 (first) to 9 (last), or one of CRITICAL, HIGH, NORMAL, LOW, BACKGROUND",
        ),
        (
            "priority: 5.5\n",
            "6:11: priority: found 5.5; expected 0 (first) to 9 (last), or one of CRITICAL, HIGH, NORMAL, LOW, BACKGROUND",
        ),
        (
            "priority: 08\n",
            "6:11: priority: found 08; expected 0 (first) to 9 (last), or one of CRITICAL, HIGH, NORMAL, LOW, BACKGROUND",
        ),
        (
            "priority: HIHG\n",
            "6:11: priority: found HIHG; expected 0 (first) to 9 (last), or one of CRITICAL, HIGH, NORMAL, LOW, BACKGROUND; did you mean HIGH?",
        ),
        ("cycle: {unit: WEEK}\n", "6:15: cycle.unit: found WEEK; expected DAY, HOUR, MINUTE, RUN"),
        (
            "cycle: {unit: RUN, offset: -1}\n",
            "6:28: cycle.offset: found -1; expected no offset: a RUN has none before it",
        ),
        (
            "exitCodes: {256: X}\n",
            "6:13: exitCodes.256: found the key \"256\"; expected an exit status, 1 to 255",
        ),
        (
            "exitCodes: {75: a b}\n",
            "6:17: exitCodes.75: found a b; expected an error code such as TIMEOUT or CONN_RESET",
        ),
    ]);
}

#[test]
fn retry_and_idempotence_must_agree() {
    check(&[
        (
            "retry: {maxAttempts: 0}\n",
            "6:22: retry.maxAttempts: found 0; expected a whole number from 1 to 4294967295",
        ),
        ("retry: {jitter: 1.5}\n", "6:17: retry.jitter: found 1.5; expected a number from 0 to 1"),
        (
            "retry: {backoff: LINEAR}\n",
            "6:18: retry.backoff: found LINEAR; expected FIXED, EXPONENTIAL",
        ),
        (
            "retry: {retryOn: ['']}\n",
            "6:19: retry.retryOn[0]: found the text \"\"; expected an error code such as TIMEOUT or CONN_RESET",
        ),
        (
            "idempotent: false\nretry: {maxAttempts: 2, intervalMs: 1}\n",
            "7:22: retry.maxAttempts: found 2 with idempotent: false; expected 1, because a task that is not idempotent is never started twice, or a dedupKey",
        ),
        (
            "idempotent: false\npreemptible: true\n",
            "7:14: preemptible: preemptible: true means that it may be started again, which idempotent: false forbids; drop one of the two",
        ),
    ]);
}

#[test]
fn the_environment_is_checked() {
    check(&[
        ("env:\n  A: 1\n  A: 2\n", "8:3: env.A: the key \"A\" is written twice; first on line 7"),
        ("env: [A=1, A=2]\n", "6:12: env[1]: A is set twice"),
        ("env: [A]\n", "6:7: env[0]: found A; expected NAME=value"),
        (
            "env: {1A: x}\n",
            "6:7: env.1A: \"1A\" is no name for a variable; expected letters, digits and _",
        ),
        (
            "env: {SCHED_X: x}\n",
            "6:7: env.SCHED_X: SCHED_X is set by the scheduler; choose another name",
        ),
        ("env:\n  A:\n", "7:3: env.A: found nothing; expected a text (\"\" for an empty one)"),
        (
            "env: {A: {date}}\n",
            "6:10: env.A: found a map; a value that starts with a brace needs quotes: \"{date}\"; expected a text",
        ),
    ]);
}

#[test]
fn dependencies_are_checked() {
    check(&[
        ("dependsOn: [a.b.v1]\n", "6:13: dependsOn[0]: a.b.v1 waits for itself; remove the edge"),
        (
            "dependsOn:\n- c.v1\n- {taskId: c.v1}\n",
            "8:12: dependsOn[1].taskId: c.v1 stands here twice; first on line 7",
        ),
        (
            "dependsOn: [c]\n",
            "6:13: dependsOn[0]: \"c\" does not end in a version; expected domain.key.vN, such as order.settle.v2",
        ),
        (
            "dependsOn: [{depType: SUCCESS}]\n",
            "6:13: dependsOn[0].taskId: is missing; it is required",
        ),
        (
            "dependsOn: [{taskId: c.v1, strength: STRNG}]\n",
            "6:38: dependsOn[0].strength: found STRNG; expected STRONG, WEAK; did you mean STRONG?",
        ),
    ]);
}

#[test]
fn what_comes_with_a_later_version_is_refused_honestly() {
    check(&[
        (
            "dependsOn: [{taskId: c.v1, when: 'output.x > 1'}]\n",
            "6:34: dependsOn[0].when: when is not supported by this version yet",
        ),
        (
            "dependsOn: [{taskId: c.v1, cycleOffset: -1}]\n",
            "6:41: dependsOn[0].cycleOffset: cycleOffset is not supported by this version yet",
        ),
        (
            "onUpstream: LATEST\n",
            "6:13: onUpstream: onUpstream: LATEST is not supported by this version yet",
        ),
        ("outputs: [/x]\n", "6:10: outputs: outputs is not supported by this version yet"),
        ("rollout: 10\n", "6:10: rollout: rollout is not supported by this version yet"),
        (
            "retention: {days: 3}\n",
            "6:12: retention: retention is not supported by this version yet",
        ),
        ("python: {interpreter: x}\n", "6:9: python: python is not supported by this version yet"),
    ]);
}

#[test]
fn triggers_are_checked() {
    check(&[
        (
            "triggers: [{}]\n",
            "6:12: triggers[0]: says nothing that starts it; expected one of cron, every, boot, file, event, task",
        ),
        (
            "triggers: [{boot: true, every: 5s}]\n",
            "6:19: triggers[0].boot: every and boot are two triggers; write two list entries",
        ),
        (
            "triggers: [{boot: false}]\n",
            "6:19: triggers[0].boot: found false; expected true, or no such trigger",
        ),
        (
            "triggers: [{every: 999}]\n",
            "6:20: triggers[0].every: found 999; expected at least 1000 ms",
        ),
        (
            "triggers: [{every: 5m, settleMs: 1}]\n",
            "6:34: triggers[0].settleMs: settleMs belongs to file triggers, not to every",
        ),
        (
            "triggers: [{event: e, overlap: SKIP}]\n",
            "6:32: triggers[0].overlap: overlap belongs to cron and every triggers, not to event",
        ),
        (
            "triggers: [{event: 'a b'}]\n",
            "6:20: triggers[0].event: found the text \"a b\"; expected an event's name of letters, digits, '.', '-' and '_'",
        ),
        (
            "triggers: [{task: a.b.v1, states: [FAILED]}]\n",
            "6:19: triggers[0].task: a.b.v1 would start itself for ever; name another task",
        ),
        (
            "triggers: [{task: c.v1, states: [RUNNING]}]\n",
            "6:34: triggers[0].states[0]: found RUNNING; expected SUCCEEDED, FAILED, TIMEOUT, CANCELLED",
        ),
        (
            "triggers: [{task: c.v1, states: []}]\n",
            "6:33: triggers[0].states: found an empty list; expected at least one state",
        ),
        (
            "triggers:\n- every: 5m\n- every: 300s\n",
            "8:3: triggers[1]: is the same trigger as one before; remove it",
        ),
        (
            "triggers: [{every: 5m, params: {d: 1}}]\n",
            "6:33: triggers[0].params.d: d is not declared; the task has no runtimeParams",
        ),
        (
            "triggers: [{file: '/in/[a'}]\n",
            "6:19: triggers[0].file: \"/in/[a\" is not a pattern: invalid range pattern",
        ),
    ]);
}

/// The words of `model::cron` are its own; here only that they come with their place.
#[test]
fn cron_expressions_are_refused_where_they_stand() {
    for (expression, word) in
        [("0 0 30 2 *", "30"), ("* * * *", "4"), ("*/0 * * * *", "0"), ("61 * * * *", "61")]
    {
        let said = said(&format!("{BASE}triggers: [{{cron: '{expression}'}}]\n"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("6:19: triggers[0].cron: "), "{said:?}");
        assert!(said[0].contains(word), "{said:?}");
    }
}

#[test]
fn placeholders_must_be_knowable_where_they_stand() {
    check(&[
        (
            "args: ['{params.nope}']\n",
            "6:8: args[0]: {params.nope} names no parameter of runtimeParams",
        ),
        (
            "args: ['{params.bizDat}']\nruntimeParams: {bizDate: date}\n",
            "6:8: args[0]: {params.bizDat} names no parameter of runtimeParams; did you mean bizDate?",
        ),
        (
            "args: ['{static.x}']\nstaticParams: {y: 1}\n",
            "6:8: args[0]: {static.x} names no key of staticParams",
        ),
        (
            "args: ['{file.path}']\n",
            "6:8: args[0]: {file.path} cannot be known here: this is no file trigger's",
        ),
        (
            "args: ['{deps.c.v1.output.n}']\n",
            "6:8: args[0]: {deps.c.v1.output.n} names a task that is not in dependsOn",
        ),
        (
            "dedupKey: '{attempt}'\n",
            "6:11: dedupKey: {attempt} cannot be known here: there is no attempt yet",
        ),
        (
            "dedupKey: '{deps.c.v1.output.n}'\ndependsOn: [c.v1]\n",
            "6:11: dedupKey: {deps.c.v1.output.n} cannot be known here: the upstream has not run yet",
        ),
        (
            "runtimeParams: {a: int, b: int}\ntriggers: [{event: e, params: {a: '{params.b}'}}]\n",
            "7:35: triggers[0].params.a: {params.b} cannot be known here: the parameters are only being made",
        ),
        (
            "runtimeParams: {a: string}\ntriggers: [{every: 5m, params: {a: '{event.x}'}}]\n",
            "7:36: triggers[0].params.a: {event.x} cannot be known here: this is no event trigger's",
        ),
        (
            "runtimeParams: {d: date}\ntriggers: [{event: e, params: {d: '{cycle}'}}]\n",
            "7:35: triggers[0].params.d: {cycle} is not a date here, because the cycle's unit is not DAY; use {date}",
        ),
    ]);
    for good in [
        "args: ['{params.a}{static.s}{attempt}{{x}}']\nruntimeParams: {a: int}\nstaticParams: {s: 1}\n",
        "args: ['{file.path}', '{event.n}']\ntriggers: [{file: /x}, {event: e}]\n",
        "args: ['{deps.c.v1.output.n}']\ndependsOn: [c.v1]\n",
        "runtimeParams: {d: date}\ntriggers: [{cron: '0 2 * * *', params: {d: '{cycle}'}}]\n",
    ] {
        assert_eq!(said(&format!("{BASE}{good}")), Vec::<String>::new(), "{good}");
    }
}

/// The words for a bad value are those of `model::params`; here the place counts.
#[test]
fn parameters_are_checked() {
    for (more, place, word) in [
        ("runtimeParams: {d: dat}\n", "6:20: runtimeParams.d: ", "did you mean date?"),
        (
            "runtimeParams: {n: {type: int, default: abc}}\n",
            "6:41: runtimeParams.n.default: ",
            "abc",
        ),
        ("runtimeParams: {n: {type: int, enum: [1, x]}}\n", "6:38: runtimeParams.n.enum: ", "x"),
        ("runtimeParams: {n: {type: int, min: 5, max: 1}}\n", "6:37: runtimeParams.n.min: ", "max"),
        (
            "runtimeParams: {n: {type: string, pattern: '('}}\n",
            "6:44: runtimeParams.n.pattern: ",
            "regular",
        ),
        ("runtimeParams: {n: {required: true}}\n", "6:20: runtimeParams.n.type: ", "is missing"),
        ("runtimeParams: {1n: int}\n", "6:17: runtimeParams.1n: ", "no parameter name"),
        (
            "runtimeParams: {n: int}\ntriggers: [{every: 5m, params: {n: x}}]\n",
            "7:33: triggers[0].params.n: ",
            "x",
        ),
    ] {
        let said = said(&format!("{BASE}{more}"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(place) && said[0].contains(word), "{said:?}");
    }
}

#[test]
fn a_files_documents_have_different_ids() {
    assert_eq!(
        said(&format!("{BASE}---\n{BASE}")),
        ["7:1: taskId: a.b.v1 is defined twice in this file; first at line 1"]
    );
}

#[test]
fn all_faults_of_a_file_are_told_in_the_order_of_its_lines() {
    let text = format!("{BASE}priority: 10\nretires: 3\nretry: {{maxAttempts: 0, jitter: 2}}\n");
    let lines: Vec<String> = said(&text).iter().map(|s| s[..4].to_owned()).collect();
    assert_eq!(lines, ["6:11", "7:1:", "8:22", "8:33"]);
}

#[test]
fn yaml_faults_carry_their_place_too() {
    assert_eq!(
        said(&format!("{BASE}triggers:\n  - cron: * * * * *\n")),
        ["7:11: triggers[0].cron: starts with *, which YAML takes for a reference; references \
             are not used here. Put the value in quotes, such as cron: \"* * * * *\""]
    );
}
