//! The JSON Schema of a spec, for editors and for `schedctl schema`.
//!
//! It comes from the types that hold a spec, so a key that is added there is in it. Those types
//! are the long form, with every default filled in; here the schema is opened to what people write:
//! only what the reader requires is required, and an empty value is as good as none. It is wider
//! than the reader, which alone knows what goes together; it refuses nothing that the reader takes.

use serde_json::{Map, Value, json};

use crate::model::schema;
use crate::model::spec::TaskSpec;

/// Keys that must be there, by the name of the type; other types have none.
const REQUIRED: [(&str, &[&str]); 3] = [
    ("TaskSpec", &["taskId", "version", "owner", "taskType", "handler"]),
    ("Dependency", &["taskId"]),
    ("ParamSchema", &["type"]),
];

/// The schema, in the 2020-12 draft.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schema::of::<TaskSpec>();
    open("TaskSpec", &mut schema);
    for (name, definition) in members(&mut schema, "$defs") {
        open(name, definition);
    }
    if let Value::Object(root) = &mut schema {
        root.insert("title".to_owned(), json!("A task of schedd"));
        let description = "One task definition, as a YAML or JSON file in the spec directory.";
        root.insert("description".to_owned(), json!(description));
    }
    schema
}

/// The members of an object under a key; none if there is no such object.
fn members<'a>(
    schema: &'a mut Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    schema.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::iter_mut)
}

/// Opens the schema of one type from its stored form to what people write.
fn open(name: &str, schema: &mut Value) {
    if schema.get("properties").is_none() {
        return;
    }
    let required: &[&str] =
        REQUIRED.iter().find(|(of, _)| *of == name).map_or(&[], |(_, keys)| *keys);
    for (key, property) in members(schema, "properties") {
        if let Value::Object(property) = property {
            // A default of the stored form is not always that of the written one.
            property.remove("default");
            property.insert("title".to_owned(), json!(key));
        }
        if !required.contains(&key.as_str()) {
            allow_null(property);
        }
    }
    if let Value::Object(schema) = schema {
        schema.remove("required");
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
    }
}

/// Lets a key stand without a value, which is as if it were not there.
fn allow_null(property: &mut Value) {
    let Value::Object(schema) = property else { return };
    let is_null = |kind: &Value| kind == "null";
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) => {
            if !kinds.iter().any(is_null) {
                kinds.push(json!("null"));
            }
        }
        Some(kind) => *kind = json!([kind.clone(), "null"]),
        None => {
            let nothing = json!({ "type": "null" });
            if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
                if !any.contains(&nothing) {
                    any.push(nothing);
                }
                return;
            }
            // What is said about the key stays beside the choice.
            let (about, value): (Map<_, _>, Map<_, _>) = std::mem::take(schema)
                .into_iter()
                .partition(|(key, _)| matches!(key.as_str(), "title" | "description"));
            *schema = about;
            schema.insert("anyOf".to_owned(), json!([value, nothing]));
        }
    }
}

#[cfg(test)]
pub(in crate::access) mod tests;
