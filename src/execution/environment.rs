//! From a dispatch to what a process is made of: argument vector, environment, paths (contract §3).
//!
//! Pure: no user database, no file, no clock. Parameters reach a task as arguments and variables
//! only; nothing that came from a parameter is ever given to a shell to parse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::wire::Assignment;
use crate::limits;
use crate::model::command::Dispatch;
use crate::model::placeholders::Known;
use crate::model::spec::JsonMap;
use crate::model::template::Template;

/// Where an assignment's files lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Task logs.
    pub log_dir: PathBuf,
    /// The daemon's state; executors keep theirs in `executors/<id>` below it.
    pub state_dir: PathBuf,
}

/// Resolves a dispatch: argument vector, environment, directory, log and result file.
///
/// # Errors
/// In words for the person who wrote the task: a type that nobody knows, a placeholder without a
/// value, a NUL byte, a directory that is not absolute.
pub fn assignment(dispatch: &Dispatch, paths: &Paths) -> Result<Assignment, String> {
    let spec = &dispatch.spec;
    let of = &dispatch.of;
    let (program, args) = command(dispatch)?;
    let file = format!("{}.{}", of.instance_id, of.attempt);
    let results = paths
        .state_dir
        .join("executors")
        .join(dispatch.executor.as_str())
        .join("results")
        .join(&file);
    // Another user's task gets a directory of its own, in which it may also rename.
    let result_path = if spec.user.is_some() { results.join("result") } else { results };
    let cwd = spec.working_dir.as_ref().map(|t| fill(dispatch, "workingDir", t)).transpose()?;
    if let Some(cwd) = cwd.as_deref().filter(|c| !c.starts_with('/')) {
        return Err(format!("workingDir is {cwd:?}; expected an absolute path"));
    }
    let made = Assignment {
        of: of.clone(),
        task_id: spec.task_id.clone(),
        program,
        args,
        env: environment(dispatch, &result_path)?,
        cwd,
        user: spec.user.clone(),
        group: spec.group.clone(),
        umask: spec.umask,
        nice: spec.nice,
        limits: spec.limits,
        timeout: spec.timeout,
        kill_grace: spec.kill_grace,
        log_path: paths.log_dir.join(spec.task_id.as_str()).join(format!("{file}.log")),
        log_bytes_max: spec.log.max_bytes,
        result_path,
    };
    refuse_nul(&made)?;
    Ok(made)
}

/// The argument vector, by type: types are data.
fn command(dispatch: &Dispatch) -> Result<(String, Vec<String>), String> {
    let spec = &dispatch.spec;
    let mut own = Vec::with_capacity(spec.args.len());
    let mut bytes = 0;
    for argument in &spec.args {
        let filled = fill(dispatch, "args", argument)?;
        bytes += filled.len();
        if bytes > limits::ARGUMENTS_BYTES_MAX {
            let max = limits::ARGUMENTS_BYTES_MAX;
            return Err(format!("args: are longer than {max} bytes once they are filled in"));
        }
        own.push(filled);
    }
    let configured = &dispatch.settings.task_types;
    if let Some(kind) = configured.get(&spec.task_type) {
        let mut argv = kind
            .run
            .iter()
            .map(|t| fill(dispatch, &format!("taskTypes.{}.run", spec.task_type), t))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let program = argv.next().ok_or_else(|| {
            format!("task type {} has an empty `run`; expected a program", spec.task_type)
        })?;
        return Ok((program, argv.chain(own).collect()));
    }
    match spec.task_type.as_str() {
        "SHELL" => {
            let script = ["-c".to_owned(), spec.handler.clone(), "sh".to_owned()];
            Ok(("/bin/sh".to_owned(), script.into_iter().chain(own).collect()))
        }
        "EXEC" => Ok((spec.handler.clone(), own)),
        other => {
            let mut known = vec!["EXEC", "SHELL"];
            known.extend(configured.keys().map(String::as_str));
            Err(format!("nothing here runs task type {other}; known are {}", known.join(", ")))
        }
    }
}

/// The environment, complete but for what depends on the user.
///
/// Later ones win: zone, the type's, the spec's, and last ours, which a task may rely on.
fn environment(
    dispatch: &Dispatch,
    result_path: &std::path::Path,
) -> Result<BTreeMap<String, String>, String> {
    let spec = &dispatch.spec;
    let instance = &dispatch.instance;
    let mut env = BTreeMap::from([("TZ".to_owned(), dispatch.timezone.clone())]);
    if let Some(kind) = dispatch.settings.task_types.get(&spec.task_type) {
        for (name, value) in &kind.env {
            let key = format!("taskTypes.{}.env.{name}", spec.task_type);
            env.insert(name.clone(), fill(dispatch, &key, value)?);
        }
    }
    for (name, value) in &spec.env {
        env.insert(name.clone(), fill(dispatch, &format!("env.{name}"), value)?);
    }
    let merged = merged(&instance.static_params, &instance.runtime_params);
    for (name, value) in &merged {
        // A name with '=' cannot be a variable's; such a parameter is in SCHED_PARAMS only.
        if let Some(text) = scalar(value).filter(|_| !name.contains('=')) {
            env.insert(format!("SCHED_PARAM_{name}"), text);
        }
    }
    let result = result_path.to_str().ok_or("the state directory's path is not UTF-8")?;
    let ours = [
        ("TASK_ID", spec.task_id.to_string()),
        ("VERSION", spec.version.to_string()),
        ("HANDLER", spec.handler.clone()),
        ("INSTANCE_ID", dispatch.of.instance_id.to_string()),
        ("ATTEMPT", dispatch.of.attempt.to_string()),
        ("CYCLE", instance.cycle.label().to_owned()),
        ("DATE", instance.cycle.date().to_owned()),
        ("SCHEDULED_TIME", instance.scheduled_time.to_string()),
        ("TRIGGER", instance.trigger.kind().to_owned()),
        ("DEGRADED", u8::from(instance.degraded).to_string()),
        ("DEDUP_KEY", instance.dedup_key.clone().unwrap_or_default()),
        ("PARAMS", Value::Object(merged).to_string()),
        ("STATIC_PARAMS", json(&instance.static_params)),
        ("RUNTIME_PARAMS", json(&instance.runtime_params)),
        ("DEPS", dispatch.deps.to_value().to_string()),
        ("RESULT", result.to_owned()),
    ];
    env.extend(ours.map(|(name, value)| (format!("SCHED_{name}"), value)));
    Ok(env)
}

fn json(map: &JsonMap) -> String {
    Value::Object(map.clone()).to_string()
}

fn merged(fixed: &JsonMap, runtime: &JsonMap) -> JsonMap {
    let mut all = fixed.clone();
    all.extend(runtime.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

/// The plain text of a value that has one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn fill(dispatch: &Dispatch, key: &str, template: &Template) -> Result<String, String> {
    let instance = &dispatch.instance;
    let params = &instance.runtime_params;
    let known = Known::of(&dispatch.spec, instance, params, Some(&dispatch.deps));
    known.text(template).map_err(|error| format!("{key}: {error}"))
}

/// A NUL ends a C string: with one inside, the task would get something else than was written.
fn refuse_nul(made: &Assignment) -> Result<(), String> {
    let argv = std::iter::once(&made.program).chain(&made.args);
    for (index, argument) in argv.enumerate() {
        if argument.contains('\0') {
            return Err(format!("argument {index} holds a NUL byte, which no argument can"));
        }
    }
    for (name, value) in &made.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("{name:?} is no name of an environment variable"));
        }
        if value.contains('\0') {
            return Err(format!("the value of {name} holds a NUL byte, which no variable can"));
        }
    }
    for (key, value) in [("workingDir", &made.cwd), ("user", &made.user), ("group", &made.group)] {
        if value.as_deref().is_some_and(|v| v.contains('\0')) {
            return Err(format!("{key} holds a NUL byte"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
