use std::sync::Arc;

use serde_json::json;

use super::super::testing::dispatch;
use super::*;
use crate::model::deps::{Dep, Deps};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, InstanceState};
use crate::model::settings::TaskType;
use crate::model::spec::TaskSpec;

fn paths() -> Paths {
    Paths { log_dir: "/var/log/schedd".into(), state_dir: "/var/lib/schedd".into() }
}

fn with_spec(mut dispatch: Dispatch, change: impl FnOnce(&mut TaskSpec)) -> Dispatch {
    let mut spec = TaskSpec::clone(&dispatch.spec);
    change(&mut spec);
    dispatch.spec = spec.into();
    dispatch
}

fn argv(made: &Assignment) -> Vec<&str> {
    std::iter::once(&made.program).chain(&made.args).map(String::as_str).collect()
}

#[test]
fn the_type_makes_the_argument_vector() {
    let shell = dispatch("SHELL", "echo \"$1\" {date}", &["a b"]);
    let made = assignment(&shell, &paths()).unwrap();
    assert_eq!(argv(&made), ["/bin/sh", "-c", "echo \"$1\" {date}", "sh", "a b"]);

    let exec = dispatch("EXEC", "/bin/true", &["x"]);
    assert_eq!(argv(&assignment(&exec, &paths()).unwrap()), ["/bin/true", "x"]);

    let mut own = dispatch("BATCH", "settle", &["--now"]);
    let mut settings = crate::model::settings::Settings::clone(&own.settings);
    let run = ["java", "-jar"].map(|t| Template::parse(t).unwrap()).to_vec();
    let env = BTreeMap::from([("JAVA_HOME".to_owned(), Template::parse("/opt/j").unwrap())]);
    settings.task_types.insert("BATCH".to_owned(), TaskType { run, env });
    own.settings = settings.into();
    let made = assignment(&own, &paths()).unwrap();
    assert_eq!(argv(&made), ["java", "-jar", "--now"]);
    assert_eq!(made.env["JAVA_HOME"], "/opt/j");

    own.spec = with_spec(own.clone(), |s| s.task_type = "BATHC".to_owned()).spec;
    let error = assignment(&own, &paths()).unwrap_err();
    assert_eq!(error, "nothing here runs task type BATHC; known are EXEC, SHELL, BATCH");
}

#[test]
fn the_environment_is_the_contracts() {
    let mut given = dispatch("SHELL", "true", &[]);
    given.of.attempt = 3;
    let fixed = json!({"n": 1, "both": "static", "list": [1]});
    Arc::make_mut(&mut given.instance).static_params = fixed.as_object().unwrap().clone().into();
    let runtime = json!({"both": "run", "yes": true, "half": 0.5, "none": null, "a=b": 1});
    Arc::make_mut(&mut given.instance).runtime_params =
        Arc::new(runtime.as_object().unwrap().clone());
    Arc::make_mut(&mut given.instance).degraded = true;
    given.deps = upstream("up.v1", json!({}));
    let given = with_spec(given, |s| {
        s.env.insert("EXTRA".to_owned(), Template::parse("e").unwrap());
    });
    let id = given.of.instance_id.to_string();
    let result = format!("/var/lib/schedd/executors/local/results/{id}.3");
    let made = assignment(&given, &paths()).unwrap();
    let expected = [
        ("EXTRA", "e"),
        ("SCHED_ATTEMPT", "3"),
        ("SCHED_CYCLE", "2026-11-30"),
        ("SCHED_DATE", "2026-11-30"),
        ("SCHED_DEDUP_KEY", ""),
        ("SCHED_DEGRADED", "1"),
        (
            "SCHED_DEPS",
            r#"{"up.v1":{"instanceId":"01a","output":{},"outputs":[],"params":{},"satisfied":true,"state":"SUCCEEDED"}}"#,
        ),
        ("SCHED_HANDLER", "true"),
        ("SCHED_INSTANCE_ID", &id),
        (
            "SCHED_PARAMS",
            r#"{"a=b":1,"both":"run","half":0.5,"list":[1],"n":1,"none":null,"yes":true}"#,
        ),
        ("SCHED_PARAM_both", "run"),
        ("SCHED_PARAM_half", "0.5"),
        ("SCHED_PARAM_n", "1"),
        ("SCHED_PARAM_yes", "true"),
        ("SCHED_RESULT", &result),
        ("SCHED_RUNTIME_PARAMS", r#"{"a=b":1,"both":"run","half":0.5,"none":null,"yes":true}"#),
        ("SCHED_SCHEDULED_TIME", "2026-11-29T18:00:00.000Z"),
        ("SCHED_STATIC_PARAMS", r#"{"both":"static","list":[1],"n":1}"#),
        ("SCHED_TASK_ID", "order.settle.v2"),
        ("SCHED_TRIGGER", "submit"),
        ("SCHED_VERSION", "2"),
        ("TZ", "Asia/Shanghai"),
    ];
    let env: Vec<(&str, &str)> = made.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(env, expected);
    let log = format!("/var/log/schedd/order.settle.v2/{id}.3.log");
    assert_eq!(made.log_path, PathBuf::from(log));
}

/// One upstream that ended well with this output.
fn upstream(task: &str, output: Value) -> Deps {
    Deps(vec![Dep {
        task_id: TaskId::parse(task).unwrap(),
        instance_id: Some(InstanceId::from_text("01a")),
        state: Some(InstanceState::Succeeded),
        params: Some(Arc::default()),
        output: Some(output),
        outputs: None,
        satisfied: true,
    }])
}

fn placeholder(given: &Dispatch, name: &str) -> Option<String> {
    let instance = &given.instance;
    let fixed = (*instance.static_params).clone();
    let spec = TaskSpec { static_params: fixed, ..TaskSpec::clone(&given.spec) };
    Known::of(&spec, instance, &instance.runtime_params, Some(&given.deps)).value(name)
}

#[test]
fn every_placeholder_of_the_contract_has_its_value() {
    let mut given = dispatch("SHELL", "h", &[]);
    Arc::make_mut(&mut given.instance).runtime_params =
        Arc::new(json!({"d": "x y"}).as_object().unwrap().clone());
    Arc::make_mut(&mut given.instance).static_params =
        json!({"n": [1]}).as_object().unwrap().clone().into();
    Arc::make_mut(&mut given.instance).trigger =
        Cause::File { path: "/data/in/o 1.csv".to_owned() };
    given.deps = upstream("a.output.b.v1", json!({"rows": 5, "x.y": "z"}));
    for (name, value) in [
        ("taskId", Some("order.settle.v2")),
        ("version", Some("2")),
        ("attempt", Some("1")),
        ("cycle", Some("2026-11-30")),
        ("date", Some("2026-11-30")),
        ("scheduledTime", Some("2026-11-29T18:00:00.000Z")),
        ("handler", Some("h")),
        ("params.d", Some("x y")),
        ("params.none", None),
        ("static.n", Some("[1]")),
        ("file.path", Some("/data/in/o 1.csv")),
        ("file.name", Some("o 1.csv")),
        ("event.d", None),
        ("deps.a.output.b.v1.output.rows", Some("5")),
        ("deps.a.output.b.v1.output.x.y", Some("z")),
        ("deps.other.v1.output.rows", None),
        ("nonsense", None),
    ] {
        assert_eq!(placeholder(&given, name).as_deref(), value, "{name}");
    }
    Arc::make_mut(&mut given.instance).trigger = Cause::Event {
        name: "e".to_owned(),
        params: serde_json::from_str(r#"{"d": "x y"}"#).unwrap(),
    };
    assert_eq!(placeholder(&given, "event.d").as_deref(), Some("x y"));
    assert_eq!(placeholder(&given, "file.path"), None);
}

#[test]
fn what_no_process_can_have_is_refused_in_words() {
    let nul = dispatch("EXEC", "/bin/echo", &["a\0b"]);
    assert!(assignment(&nul, &paths()).unwrap_err().contains("argument 1 holds a NUL byte"));
    let mut nul = dispatch("SHELL", "true", &[]);
    Arc::make_mut(&mut nul.instance).runtime_params =
        Arc::new(json!({"p": "\0"}).as_object().unwrap().clone());
    let error = assignment(&nul, &paths()).unwrap_err();
    assert!(error.contains("SCHED_PARAM_p holds a NUL byte"), "{error}");
    let relative = with_spec(dispatch("SHELL", "true", &[]), |s| {
        s.working_dir = Some(Template::parse("data").unwrap());
    });
    assert!(assignment(&relative, &paths()).unwrap_err().contains("expected an absolute path"));
}

#[test]
fn another_users_result_file_has_a_directory_of_its_own() {
    let given = with_spec(dispatch("SHELL", "true", &[]), |s| s.user = Some("bob".to_owned()));
    let made = assignment(&given, &paths()).unwrap();
    assert!(made.result_path.ends_with(format!("{}.1/result", given.of.instance_id)));
}
