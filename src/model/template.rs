//! Placeholders: `{params.bizDate}` and the rest (contract §2).
//!
//! Knows the names that may stand between braces, not their values: those come from whoever fills
//! a template in.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::suggest::nearest;

/// Names that stand alone.
const NAMES: [&str; 10] = [
    "taskId",
    "version",
    "instanceId",
    "attempt",
    "cycle",
    "date",
    "scheduledTime",
    "handler",
    "file.path",
    "file.name",
];

/// Groups, each followed by a dot and a name of the user's.
const GROUPS: [&str; 5] = ["params", "static", "event", "file", "deps"];

/// A text that may hold placeholders; `{{` and `}}` stand for braces.
///
/// What a placeholder fills in is never split and never parsed again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    /// The text taken apart; a function of it.
    pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// Stands for itself; doubled braces are single here.
    Text(String),
    /// The name between braces.
    Name(String),
}

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TemplateError {
    /// Byte offset in the text.
    pub at: usize,
    /// What was found, what is expected.
    pub problem: String,
    /// The name between braces, if that is one that nobody knows.
    pub unknown: Option<String>,
}

impl TemplateError {
    /// The same where `declared` are further names that may have been meant, such as `params.n`.
    #[must_use]
    pub fn among(self, declared: &[String]) -> Self {
        match &self.unknown {
            Some(name) => {
                let problem = unknown(name, name.split_once('.'), declared);
                Self { problem, ..self }
            }
            None => self,
        }
    }
}

/// A placeholder that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{{{name}}} has no value here")]
pub struct Unfilled {
    /// Its name.
    pub name: String,
}

impl Template {
    /// Checks the braces and the names: only those of the contract are allowed.
    ///
    /// # Errors
    /// Where and what is wrong.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Ok(Self { text: text.to_owned(), pieces: pieces(text)? })
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names between braces, without repeats.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let name = |piece: &Piece| match piece {
            Piece::Name(name) => Some(name.clone()),
            Piece::Text(_) => None,
        };
        self.pieces.iter().filter_map(name).collect()
    }

    /// Fills in every placeholder, in one pass; `value` knows the names.
    ///
    /// # Errors
    /// The first name without a value.
    pub fn fill(&self, value: &dyn Fn(&str) -> Option<String>) -> Result<String, Unfilled> {
        let mut filled = String::with_capacity(self.text.len());
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Name(name) => {
                    let text = value(name).ok_or_else(|| Unfilled { name: name.clone() })?;
                    filled.push_str(&text);
                }
            }
        }
        Ok(filled)
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

/// Takes a text apart, checking braces and names.
fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(found) = rest.find(['{', '}']) else {
            plain.push_str(rest);
            break;
        };
        plain.push_str(&rest[..found]);
        at += found;
        let rest = &rest[found..];
        let brace = &rest[..1];
        if rest[1..].starts_with(brace) {
            plain.push_str(brace);
            at += 2;
        } else if brace == "}" {
            let problem = "found a '}' that closes nothing; write }} for a brace".to_owned();
            return Err(TemplateError { at, problem, unknown: None });
        } else {
            let name = name_at(&rest[1..]).map_err(|(problem, unknown)| {
                let unknown = unknown.map(str::to_owned);
                TemplateError { at, problem, unknown }
            })?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Name(name.to_owned()));
            at += name.len() + 2;
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// The checked name at the start of what follows an opening brace; else the problem, with the name
/// if it is one that nobody knows.
fn name_at(rest: &str) -> Result<&str, (String, Option<&str>)> {
    let Some(end) = rest.find(['{', '}']).filter(|end| rest[*end..].starts_with('}')) else {
        return Err(("found a '{' that is not closed; write {{ for a brace".to_owned(), None));
    };
    let name = &rest[..end];
    if name.is_empty() {
        return Err(("found {} without a name; write {{}} for braces".to_owned(), None));
    }
    if is_known(name) {
        return Ok(name);
    }
    match malformed(name) {
        Some(problem) => Err((problem, None)),
        None => Err((unknown(name, name.split_once('.'), &[]), Some(name))),
    }
}

/// Whether a name is one of the contract's. Words for one that is not are found apart from this, as
/// these ask it of other names in turn.
fn is_known(name: &str) -> bool {
    let blank = |c: char| c.is_control() || c.is_whitespace();
    let of_group = || match name.split_once('.') {
        Some(("params" | "static" | "event", key)) => !key.is_empty(),
        Some(("deps", rest)) => output_of(rest).is_some(),
        _ => false,
    };
    NAMES.contains(&name) || (!name.contains(blank) && of_group())
}

/// What is wrong with the form of a name that is not known, if that is it.
fn malformed(name: &str) -> Option<String> {
    let blank = |c: char| c.is_control() || c.is_whitespace();
    if name.contains(blank) {
        let joined: String = name.split(blank).collect();
        let hint = if is_known(&joined) {
            format!("did you mean {{{joined}}}?")
        } else {
            "write {{ and }} for braces".to_owned()
        };
        return Some(format!("found {name:?} between braces, a name holds no blanks; {hint}"));
    }
    match name.split_once('.') {
        Some(("deps", _)) => Some(format!(
            "found {{{name}}}; expected {{deps.TASKID.output.NAME}}, such as \
             {{deps.order.extract.v2.output.rows}}"
        )),
        Some((group, "")) if GROUPS.contains(&group) => {
            Some(format!("found {{{name}}} without a name behind the dot"))
        }
        _ => None,
    }
}

/// Task id and output name of `TASKID.output.NAME`; a task id may hold dots, even `.output.`.
fn output_of(rest: &str) -> Option<(&str, &str)> {
    const MIDDLE: &str = ".output.";
    rest.match_indices(MIDDLE)
        .map(|(at, _)| (&rest[..at], &rest[at + MIDDLE.len()..]))
        .find(|(task, key)| !key.is_empty() && TaskId::parse(task).is_ok())
}

/// What is wrong with a name that is none, with the nearest one that is or that is declared.
fn unknown(name: &str, split: Option<(&str, &str)>, declared: &[String]) -> String {
    let own = |full: &'_ String| full.split_once('.').map_or("", |(_, own)| own).to_owned();
    let exactly = declared.iter().find(|full| own(full) == name).cloned();
    let nearly = || {
        let names: Vec<String> = declared.iter().map(own).collect();
        let near = nearest(name, names.iter().map(String::as_str))?;
        declared.iter().find(|full| own(full) == near).cloned()
    };
    let by_group = || {
        let (group, key) = split?;
        nearest(group, GROUPS).map(|group| format!("{group}.{key}"))
    };
    let near = exactly
        .or_else(|| nearest(name, NAMES).map(str::to_owned))
        .or_else(by_group)
        .or_else(nearly);
    let hint = near
        .filter(|near| is_known(near))
        .map_or_else(|| ".".to_owned(), |near| format!("; did you mean {{{near}}}?"));
    format!(
        "found the unknown placeholder {{{name}}}{hint} Known are {names} and {{params.NAME}}, \
         {{static.NAME}}, {{event.NAME}}, {{deps.TASKID.output.NAME}}; write {{{{ and }}}} for braces",
        names = NAMES.map(|name| format!("{{{name}}}")).join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> String {
        Template::parse(text)
            .unwrap()
            .fill(&|name| Some(format!("<{name}>")))
            .unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn every_name_of_the_contract_is_filled_in() {
        for name in [
            "taskId",
            "version",
            "instanceId",
            "attempt",
            "cycle",
            "date",
            "scheduledTime",
            "handler",
            "params.bizDate",
            "params.a.b",
            "static.größe",
            "file.path",
            "file.name",
            "event.n",
            "deps.order.extract.v2.output.rows",
            "deps.a.output.v1.output.output.x",
        ] {
            assert_eq!(fill(&format!("a{{{name}}}b")), format!("a<{name}>b"));
        }
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(fill("{{}}"), "{}");
        assert_eq!(fill("{{date}}"), "{date}");
        assert_eq!(fill("{{{date}}}"), "{<date>}");
        assert_eq!(fill("{date}{date}"), "<date><date>");
        assert_eq!(fill(""), "");
        assert_eq!(fill("ü{date}é"), "ü<date>é");
    }

    #[test]
    fn what_is_filled_in_is_never_read_again() {
        let template = Template::parse("--x={params.a}").unwrap();
        let filled = template.fill(&|_| Some("{date} $(reboot) }}".to_owned()));
        assert_eq!(filled.unwrap(), "--x={date} $(reboot) }}");
    }

    #[test]
    fn the_first_name_without_a_value_is_named() {
        let template = Template::parse("{date}{params.a}{params.b}").unwrap();
        let error = template.fill(&|name| (name == "date").then(String::new)).unwrap_err();
        assert_eq!(error.to_string(), "{params.a} has no value here");
        let names: Vec<String> = template.names().into_iter().collect();
        assert_eq!(names, ["date", "params.a", "params.b"]);
    }

    #[test]
    fn faults_have_their_place_and_a_suggestion() {
        for (text, at, part) in [
            ("ab{", 2, "not closed"),
            ("ab{date", 2, "not closed"),
            ("{da{te}", 0, "not closed"),
            ("{{{", 2, "not closed"),
            ("é}", 2, "closes nothing"),
            ("{date}}", 6, "closes nothing"),
            ("x{}", 1, "without a name"),
            ("{taskid}", 0, "did you mean {taskId}?"),
            ("{param.bizDate}", 0, "did you mean {params.bizDate}?"),
            ("{bizDate}", 0, "found the unknown placeholder {bizDate}. Known are"),
            ("{file.size}", 0, "unknown placeholder"),
            ("{file.modificationTime}", 0, "unknown placeholder"),
            ("{fiel.path}", 0, "did you mean {file.path}?"),
            ("{dep.c.v1.output.n}", 0, "did you mean {deps.c.v1.output.n}?"),
            ("{ date }", 0, "did you mean {date}?"),
            ("{\0}", 0, "write {{ and }}"),
            ("awk {print $1}", 4, "write {{ and }}"),
            ("{params.}", 0, "without a name behind the dot"),
            ("{params}", 0, "unknown placeholder"),
            ("{deps.order.extract.output.rows}", 0, "{deps.TASKID.output.NAME}"),
            ("{deps.order.extract.v2.output.}", 0, "{deps.TASKID.output.NAME}"),
            ("{deps.}", 0, "{deps.TASKID.output.NAME}"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.problem.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_declared_parameter_is_suggested() {
        let declared = ["params.bizDate", "params.data", "static.target"].map(str::to_owned);
        for (text, part) in [
            ("{bizDate}", "{bizDate}; did you mean {params.bizDate}?"),
            ("{bizdate}", "{bizdate}; did you mean {params.bizDate}?"),
            ("{target}", "{target}; did you mean {static.target}?"),
            ("{data}", "{data}; did you mean {params.data}?"),
            ("{dat}", "{dat}; did you mean {date}?"),
            ("{foo}", "unknown placeholder {foo}. Known are"),
            ("{", "not closed"),
        ] {
            let error = Template::parse(text).unwrap_err().among(&declared);
            assert!(error.problem.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_stored_form_is_the_text() {
        let template = Template::parse("{{x}} {date}").unwrap();
        let json = serde_json::to_string(&template).unwrap();
        assert_eq!(json, "\"{{x}} {date}\"");
        assert_eq!(serde_json::from_str::<Template>(&json).unwrap(), template);
        assert!(serde_json::from_str::<Template>("\"{nope!}\"").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_escaped_text_is_itself(text in ".{0,40}") {
            drop(Template::parse(&text));
            let escaped = text.replace('{', "{{").replace('}', "}}");
            proptest::prop_assert_eq!(fill(&escaped), text);
        }

        #[test]
        fn braces_in_any_order_never_panic(text in "[{}a.]{0,12}") {
            drop(Template::parse(&text));
        }
    }
}
