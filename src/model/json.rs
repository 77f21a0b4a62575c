//! The form of everything that has no type of its own.

use serde_json::Value;

use crate::limits;

/// A JSON object.
pub type JsonMap = serde_json::Map<String, Value>;

/// Refuses a value that nests deeper than [`limits::JSON_DEPTH_MAX`]: it is stored and sent inside
/// others, and what is read back may nest no deeper than serde_json reads (128).
///
/// # Errors
/// In words.
pub fn check_depth(value: &Value) -> Result<(), String> {
    let max = limits::JSON_DEPTH_MAX;
    if is_deeper(value, max) {
        return Err(format!("nests deeper than {max} lists and objects in one another"));
    }
    Ok(())
}

fn is_deeper(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left == 0 || items.iter().any(|item| is_deeper(item, left - 1)),
        Value::Object(map) => left == 0 || map.values().any(|item| is_deeper(item, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_levels_are_taken_and_one_more_is_refused() {
        let nested = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let value = |n| serde_json::from_str::<Value>(&nested(n)).unwrap();
        assert!(check_depth(&value(64)).is_ok());
        let refused = check_depth(&value(65)).unwrap_err();
        assert_eq!(refused, "nests deeper than 64 lists and objects in one another");
        assert!(check_depth(&serde_json::json!({"a": [1, value(64)]})).is_err());
    }
}
