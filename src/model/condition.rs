//! Conditions on edges (`when`): CEL over how an upstream ended (contract §2, `dependsOn`).
//!
//! The one door to the CEL crate, with the folder beside it. A condition is taken apart when it is read, so that a name it
//! cannot know is refused then and not at night. Its length, its depth and the work of one answer
//! are bounded: it is asked by the core, where nothing may take long and no stack may run out.
//! `matches` is not offered: a pattern can come from a task's output, and building it takes long.
//!
//! It does not know when a condition is asked nor what its answer does.

mod answer;

use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::parser::PrattParser;
use cel::{Context, ParseErrors, Value as Answer};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use self::answer::{a_kind, answer_kind, in_words};
use super::json::JsonMap;
use super::suggest::nearest;
use crate::limits;

/// What a condition can ask about.
const VARIABLES: [&str; 3] = ["output", "params", "state"];

/// Names of types, for `type(…) ==`.
const TYPES: [&str; 7] = ["bool", "double", "int", "list", "map", "null_type", "string"];

/// Functions by name, those that go through a list or map included.
const FUNCTIONS: [&str; 16] = [
    "all",
    "bool",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "has",
    "int",
    "map",
    "size",
    "startsWith",
    "string",
    "type",
];

/// A condition on an edge: its text and what the text means.
///
/// Cheap to clone; two are equal if their texts are.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    text: Arc<str>,
    meaning: Arc<Meaning>,
}

/// A condition taken apart.
struct Meaning {
    root: IdedExpr,
    /// Whether it goes through a list or map, so that its work grows with what it is asked about.
    is_loop: bool,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", Column(*at))]
pub struct ConditionError {
    /// Column in the text, in characters from 1; 0: the text as a whole.
    pub at: usize,
    /// What was found, what is expected.
    pub problem: String,
}

/// `at column 5: `, or nothing.
struct Column(usize);

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, "at column {}: ", self.0) } else { Ok(()) }
    }
}

impl Condition {
    /// Checks and takes apart a condition; bounded in time and stack for every text.
    ///
    /// # Errors
    /// Where and what is wrong: syntax, a name that is no variable or function, a bound, an answer
    /// that can be neither true nor false.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let condition = Self::read(text)?;
        match answer_kind(&condition.meaning.root) {
            None => Ok(condition),
            Some(kind) => {
                let problem = format!("gives {kind}; expected true or false, as of {EXAMPLE}");
                Err(ConditionError { at: 0, problem })
            }
        }
    }

    /// Checks all but what kind of answer it gives: a stored one that can give none is still read.
    fn read(text: &str) -> Result<Self, ConditionError> {
        let whole = |problem: String| ConditionError { at: 0, problem };
        let max = limits::CONDITION_BYTES_MAX;
        if text.len() > max {
            return Err(whole(format!("has {} bytes; at most {max} are read", text.len())));
        }
        if text.trim().is_empty() {
            return Err(whole(format!("is empty; expected {EXAMPLE}")));
        }
        let parser = PrattParser::new().max_recursion_depth(limits::CONDITION_DEPTH_MAX);
        let root = parser.parse(text).map_err(|errors| syntax(text, &errors))?;
        let mut names = Names { text, bound: Vec::new(), is_loop: false };
        names.check(&root, 0)?;
        let meaning = Arc::new(Meaning { root, is_loop: names.is_loop });
        Ok(Self { text: text.into(), meaning })
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the condition holds for an upstream that ended with this output, these parameters
    /// and this state.
    ///
    /// # Errors
    /// Why there is no answer, in words: a key that is not there, values that do not go together,
    /// an answer that is neither true nor false, more values than a loop may go through.
    pub fn evaluate(&self, output: &Value, params: &JsonMap, state: &str) -> Result<bool, String> {
        if self.meaning.is_loop {
            let values = count(output) + params.values().map(count).sum::<usize>();
            let max = limits::CONDITION_VALUES_MAX;
            if values > max {
                return Err(format!(
                    "output and params hold {values} values; a condition that goes through a list \
                     or map is asked about at most {max}"
                ));
            }
        }
        let mut context = Context::default();
        let mut know = |name: &str, value: Result<Answer, _>| match value {
            Ok(value) => {
                context.add_variable_from_value(name, value);
                Ok(())
            }
            Err(error) => Err(format!("{name} cannot be asked about: {error}")),
        };
        know("output", cel::to_value(Plain(output)))?;
        know("params", cel::to_value(PlainMap(params)))?;
        know("state", cel::to_value(state))?;
        match Answer::resolve(&self.meaning.root, &context) {
            Ok(Answer::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("gives {}; expected true or false", a_kind(&other))),
            Err(error) => Err(in_words(&error, &self.text)),
        }
    }
}

/// What a condition looks like, for messages.
const EXAMPLE: &str = "a condition such as output.rows > 0";

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", self.text)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl TryFrom<String> for Condition {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Self, ConditionError> {
        Self::read(&text)
    }
}

/// The column of a byte offset, in characters from 1.
fn column(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < offset).count() + 1
}

/// The first of a parser's complaints in our words; later ones mostly follow from it.
fn syntax(text: &str, errors: &ParseErrors) -> ConditionError {
    // A bound has no place, and what is said beside it only follows from it.
    let bound = errors.errors.iter().find(|e| e.pos.0 == 0);
    let Some(first) = bound.or(errors.errors.first()) else {
        return ConditionError { at: 0, problem: format!("is not CEL; expected {EXAMPLE}") };
    };
    if bound.is_some() {
        let max = limits::CONDITION_DEPTH_MAX;
        let problem = format!("is nested too deeply or is not CEL; at most {max} levels are read");
        return ConditionError { at: 0, problem };
    }
    let before: usize = usize::try_from(first.pos.0 - 1)
        .map_or(0, |lines| text.split_inclusive('\n').take(lines).map(str::len).sum());
    let offset = before + usize::try_from(first.pos.1 - 1).unwrap_or(0);
    let found = first.msg.split_once("mismatched input '").and_then(|(_, rest)| {
        let (token, expected) = rest.rsplit_once("' expecting ")?;
        let token = if token == "<EOF>" { "the end".to_owned() } else { format!("{token:?}") };
        let expected = match expected {
            "<EOF>" => "the end or an operator such as == or &&",
            "expression" => "a value",
            other => other,
        };
        Some(format!("found {token}; expected {expected}"))
    });
    let problem = found.unwrap_or_else(|| format!("is not CEL: {}", first.msg));
    ConditionError { at: column(text, offset), problem }
}

/// The walk that looks at every name of a condition.
struct Names<'t> {
    text: &'t str,
    /// Variables of the loop at hand.
    bound: Vec<String>,
    is_loop: bool,
}

impl Names<'_> {
    fn check(&mut self, node: &IdedExpr, depth: u16) -> Result<(), ConditionError> {
        if depth > limits::CONDITION_DEPTH_MAX {
            let problem = format!(
                "has more than {} steps in a row; split it over several edges",
                limits::CONDITION_DEPTH_MAX
            );
            return Err(ConditionError { at: 0, problem });
        }
        let mut parts: Vec<&IdedExpr> = Vec::new();
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.variable(name)?,
            Expr::Select(select) => parts.push(&select.operand),
            Expr::List(list) => parts.extend(&list.elements),
            Expr::Call(call) => {
                self.function(&call.func_name)?;
                parts.extend(call.target.as_deref());
                parts.extend(&call.args);
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        parts.extend([&entry.key, &entry.value]);
                    }
                }
            }
            Expr::Struct(made) => {
                return Err(self.unknown("function", &made.type_name, &FUNCTIONS));
            }
            Expr::Comprehension(through) => {
                self.check(&through.iter_range, depth + 1)?;
                if !self.bound.is_empty() {
                    let problem = "goes through a list inside of another; one at a time".to_owned();
                    return Err(ConditionError { at: 0, problem });
                }
                self.is_loop = true;
                self.bound.push(through.iter_var.clone());
                self.bound.extend(through.iter_var2.clone());
                self.bound.push(through.accu_var.clone());
                for part in
                    [&through.accu_init, &through.loop_cond, &through.loop_step, &through.result]
                {
                    self.check(part, depth + 1)?;
                }
                self.bound.clear();
            }
        }
        parts.into_iter().try_for_each(|part| self.check(part, depth + 1))
    }

    fn variable(&self, name: &str) -> Result<(), ConditionError> {
        if VARIABLES.contains(&name)
            || TYPES.contains(&name)
            || self.bound.iter().any(|bound| bound == name)
        {
            return Ok(());
        }
        Err(self.unknown("variable", name, &VARIABLES))
    }

    fn function(&self, name: &str) -> Result<(), ConditionError> {
        // Operators have names that nobody can write: `_+_`, `!_`, `@in`, `@not_strictly_false`.
        let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
        if operator || FUNCTIONS.contains(&name) {
            return Ok(());
        }
        Err(self.unknown("function", name, &FUNCTIONS))
    }

    fn unknown(&self, what: &str, name: &str, known: &[&'static str]) -> ConditionError {
        let near = nearest(name, known.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let problem =
            format!("found the unknown {what} {name}; known are {}{near}", known.join(", "));
        ConditionError { at: self.place_of(name), problem }
    }

    /// Column of the first place where a name stands as a word and not behind a dot.
    fn place_of(&self, name: &str) -> usize {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let found = self.text.match_indices(name).find(|(at, _)| {
            let before = self.text[..*at].chars().next_back();
            let after = self.text[at + name.len()..].chars().next();
            !before.is_some_and(|c| word(c) || matches!(c, '\'' | '"')) && !after.is_some_and(word)
        });
        found.map_or(0, |(at, _)| column(self.text, at))
    }
}

/// Values in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A JSON value as CEL takes it: every whole number that fits is signed, as CEL's own literals are.
struct Plain<'a>(&'a Value);

/// A JSON object in the same way.
struct PlainMap<'a>(&'a JsonMap);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => serializer.serialize_i64(whole),
                (None, Some(real)) => serializer.serialize_f64(real),
                (None, None) => serializer.serialize_none(),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Plain)),
            Value::Object(members) => PlainMap(members).serialize(serializer),
            Value::Null | Value::Bool(_) | Value::String(_) => self.0.serialize(serializer),
        }
    }
}

impl Serialize for PlainMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, Plain(value))))
    }
}

#[cfg(test)]
mod tests;
