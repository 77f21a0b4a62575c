//! What a condition gives: the kind of answer that its text promises, and words for what is none.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::{ExecutionError, Value as Answer};

use super::TYPES;

/// What an expression gives that can be neither true nor false, as far as its outermost operator
/// tells; `None`: it may be either.
pub(super) fn answer_kind(node: &IdedExpr) -> Option<&'static str> {
    const NUMBER: &str = "a number";
    const TEXT: &str = "a text";
    const LIST: &str = "a list";
    const MAP: &str = "a map";
    match &node.expr {
        Expr::List(_) => Some(LIST),
        Expr::Map(_) => Some(MAP),
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(_) => None,
            LiteralValue::String(_) => Some(TEXT),
            LiteralValue::Null => Some("null"),
            LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_) => Some(NUMBER),
            LiteralValue::Bytes(_) => Some("bytes"),
        },
        Expr::Ident(name) => match name.as_str() {
            "state" => Some(TEXT),
            "params" => Some(MAP),
            name if TYPES.contains(&name) => Some("a type"),
            _ => None,
        },
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            // A sum may be one of numbers, texts or lists.
            ("_+_", _) => Some("a sum"),
            ("_-_" | "_*_" | "_/_" | "_%_" | "-_" | "size" | "int" | "double", _) => Some(NUMBER),
            ("string", _) => Some(TEXT),
            ("type", _) => Some("a type"),
            ("_?_:_", [_, then, or]) => answer_kind(then).filter(|_| answer_kind(or).is_some()),
            _ => None,
        },
        // `map` and `filter` gather a list; `all`, `exists` and `exists_one` tell a truth.
        Expr::Comprehension(through) => {
            let gathers =
                matches!(&through.result.expr, Expr::Ident(name) if *name == through.accu_var);
            answer_kind(if gathers { &through.accu_init } else { &through.result })
        }
        Expr::Unspecified | Expr::Select(_) | Expr::Struct(_) => None,
    }
}

/// What an answer is, in words.
pub(super) fn a_kind(value: &Answer) -> &'static str {
    match value {
        Answer::List(_) => "a list",
        Answer::Map(_) => "a map",
        Answer::Int(_) | Answer::UInt(_) | Answer::Float(_) => "a number",
        Answer::String(_) => "a text",
        Answer::Bool(_) => "true or false",
        Answer::Null => "null",
        Answer::Function(..) | Answer::Bytes(_) | Answer::Opaque(_) | Answer::Struct(_) => {
            "something that is no answer"
        }
    }
}

/// Why there is no answer; values are not repeated, they may be secret.
#[expect(clippy::wildcard_enum_match_arm, reason = "the crate's list is open and mostly not met")]
pub(super) fn in_words(error: &ExecutionError, text: &str) -> String {
    match error {
        // A key that the condition does not write out is a value of the upstream's.
        ExecutionError::NoSuchKey(key) if text.contains(key.as_str()) => {
            format!("found no key {key}; ask has(…) first if it may be missing")
        }
        ExecutionError::NoSuchKey(_) => {
            "found no such key; ask has(…) or in first if it may be missing".to_owned()
        }
        ExecutionError::NoSuchOverload(wrong) => format!(
            "{} does not go with {}",
            operator(wrong.function()),
            wrong.argument_types().join(" and ")
        ),
        ExecutionError::IndexOutOfBounds(_) => "the list has no such position".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "divides by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "the number is too large".to_owned(),
        _ => "its values do not go together; compare like with like".to_owned(),
    }
}

/// An operator as people write it: `_+_` is `+`.
fn operator(name: &str) -> &str {
    match name {
        "_._" | "_[_]" => "a key or position",
        "@in" => "in",
        other => other.trim_matches('_'),
    }
}
