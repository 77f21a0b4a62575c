//! A refusal, as it comes over the wire. It does not know what a program makes of it.

use serde_json::Value;

use crate::model::event::SpecError;

/// A refusal as the daemon words it (contract §6, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What a program branches on, such as `NOT_FOUND`; empty if the answer has none.
    pub code: String,
    /// What was found, what is expected, what to do.
    pub detail: String,
    /// One entry per fault, where there can be several.
    pub errors: Vec<SpecError>,
}

impl Problem {
    /// Reads a refusal; whatever is missing or foreign is left out.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let entries = value.get("errors").and_then(Value::as_array);
        let errors = entries.into_iter().flatten().map(read_fault).collect();
        let detail = text("detail").or_else(|| text("title")).unwrap_or_else(|| {
            let said = String::from_utf8_lossy(body);
            format!("the daemon answered with status {status}: {}", said.trim())
        });
        Self { status, code: text("code").unwrap_or_default(), detail, errors }
    }
}

/// One entry of `errors`: a file's fault has a place, a parameter's fault only a path.
fn read_fault(entry: &Value) -> SpecError {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |key: &str| {
        entry.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    };
    SpecError {
        file: text("file"),
        line: number("line"),
        column: number("column"),
        path: text("path"),
        message: text("message"),
    }
}
