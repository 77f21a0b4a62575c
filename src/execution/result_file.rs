//! What a task says of itself: one JSON object in the file that `SCHED_RESULT` names (contract §3).
//!
//! The file was written by the task's user, so it is opened without following links or waiting
//! for a pipe's writer, and no more of it is read than is allowed.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde_json::Value;

use crate::limits::RESULT_BYTES_MAX;
use crate::model::event::TaskResult;
use crate::model::json::check_depth;

/// Reads the file and removes it; one that is not there says nothing, which is in order.
pub(super) fn take(path: &Path, in_own_directory: bool) -> TaskResult {
    let result = match read(path) {
        Ok(None) => TaskResult::default(),
        Ok(Some(bytes)) => understand(&bytes).unwrap_or_else(invalid),
        Err(why) => invalid(why),
    };
    // What cannot be removed is removed with the executor's directory; the task is not at fault.
    drop(std::fs::remove_file(path));
    if in_own_directory && let Some(dir) = path.parent() {
        drop(std::fs::remove_dir_all(dir));
    }
    result
}

fn invalid(why: String) -> TaskResult {
    TaskResult { invalid: Some(why), ..TaskResult::default() }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the result file cannot be opened: {error}")),
    };
    let about = file.metadata().map_err(|e| format!("the result file cannot be read: {e}"))?;
    if !about.is_file() || about.nlink() > 1 {
        return Err("the result file is not a plain file; expected one JSON object".to_owned());
    }
    let most = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("the result file cannot be read: {e}"))?;
    if bytes.len() > RESULT_BYTES_MAX {
        let size = about.size();
        return Err(format!(
            "the result file has {size} bytes; at most {RESULT_BYTES_MAX} are allowed"
        ));
    }
    Ok(Some(bytes))
}

fn understand(bytes: &[u8]) -> Result<TaskResult, String> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|e| format!("the result file is not one JSON object: {e}"))?;
    let Value::Object(mut map) = value else {
        return Err("the result file is JSON, but not an object {…}".to_owned());
    };
    let mut text = |key: &str| match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key} in the result file is {other}; expected a text")),
    };
    let error_code = text("errorCode")?;
    if error_code.as_deref().is_some_and(str::is_empty) {
        return Err("errorCode in the result file is empty; leave it out instead".to_owned());
    }
    let message = text("message")?;
    let output = map.remove("output").filter(|v| !v.is_null());
    if let Some(Err(problem)) = output.as_ref().map(check_depth) {
        return Err(format!("output in the result file {problem}"));
    }
    Ok(TaskResult { output, error_code, message, invalid: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(content: &[u8]) -> TaskResult {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        std::fs::write(&path, content).unwrap();
        let result = take(&path, false);
        assert!(!path.exists(), "it is removed");
        result
    }

    #[test]
    fn one_object_within_bounds_is_taken() {
        let result =
            taken(br#"{"output":{"rows":3},"errorCode":"CONN_RESET","message":"m","more":1}"#);
        assert_eq!(
            result,
            TaskResult {
                output: Some(serde_json::json!({"rows": 3})),
                error_code: Some("CONN_RESET".to_owned()),
                message: Some("m".to_owned()),
                invalid: None,
            }
        );
        assert_eq!(taken(b"{}"), TaskResult::default());
    }

    #[test]
    fn anything_else_is_invalid_and_says_why() {
        let large = format!("{{\"output\":\"{}\"}}", "x".repeat(RESULT_BYTES_MAX));
        let deep = format!("{{\"output\": {}{}}}", "[".repeat(100), "]".repeat(100));
        for (content, why) in [
            (b"".as_slice(), "not one JSON object"),
            (b"{\"output\": 1", "not one JSON object"),
            (b"{} {}", "not one JSON object"),
            (b"[1]", "not an object"),
            (b"{\"errorCode\": 7}", "errorCode in the result file is 7"),
            (b"{\"errorCode\": \"\"}", "empty"),
            (large.as_bytes(), "at most 65536"),
            (deep.as_bytes(), "output in the result file nests deeper than 64"),
        ] {
            let invalid = taken(content).invalid.unwrap();
            assert!(invalid.contains(why), "{invalid}");
        }
    }

    #[test]
    fn no_file_says_nothing_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(take(&dir.path().join("none"), false), TaskResult::default());
        let target = dir.path().join("secret");
        std::fs::write(&target, "{}").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(take(&link, false).invalid.is_some());
        assert!(target.exists());
    }
}
