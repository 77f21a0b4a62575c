//! The form of everything that has no type of its own.

/// A JSON object.
pub type JsonMap = serde_json::Map<String, serde_json::Value>;
