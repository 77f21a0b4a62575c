//! A `file:` trigger's glob, taken apart at its slashes. Pure: knows names, touches no file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path};

/// One component of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Exactly this name.
    Literal(String),
    /// Names that match.
    Glob(glob::Pattern),
    /// `**`: any number of directories, none included.
    AnyDepth,
}

/// A glob over absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
}

/// How a path stands to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fit {
    /// As a file it is an arrival.
    pub(super) is_match: bool,
    /// As a directory it may hold, or lead to, matches.
    pub(super) is_way: bool,
}

/// Names start with a dot only where the pattern says so, and no wildcard crosses a slash.
const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

impl Pattern {
    /// Takes a glob apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("the file pattern {text:?} is not absolute"));
        };
        let mut parts = Vec::new();
        for name in rest.split('/').filter(|name| !name.is_empty() && *name != ".") {
            let part = Part::parse(name).map_err(|why| format!("file pattern {text:?}: {why}"))?;
            if part != Part::AnyDepth || parts.last() != Some(&Part::AnyDepth) {
                parts.push(part);
            }
        }
        match parts.last() {
            None => return Err(format!("the file pattern {text:?} names no file")),
            Some(Part::AnyDepth) => parts.push(Part::parse("*").map_err(|why| why.to_string())?),
            Some(Part::Literal(_) | Part::Glob(_)) => {}
        }
        Ok(Self { parts })
    }

    /// Its components; at least one, and the last is not [`Part::AnyDepth`].
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How a path of these names stands to it.
    pub(super) fn fit(&self, names: &[&OsStr]) -> Fit {
        fit_names(&self.parts, names)
    }
}

/// The names that an absolute path is made of.
pub(super) fn names(path: &Path) -> Vec<&OsStr> {
    let name = |component| match component {
        Component::Normal(name) => Some(name),
        // A path that the walk built goes up only where the pattern says so.
        Component::ParentDir => Some(OsStr::new("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

/// How names stand to parts; each name is looked at once for each part, however many `**` there
/// are.
fn fit_names(parts: &[Part], names: &[&OsStr]) -> Fit {
    let mut fit = Fit::default();
    let mut reached = BTreeSet::new();
    reach(parts, 0, &mut reached);
    for (at, name) in names.iter().enumerate() {
        let is_last_name = at + 1 == names.len();
        for place in std::mem::take(&mut reached) {
            match parts.get(place..).unwrap_or_default() {
                [Part::AnyDepth, ..] if !is_hidden(name) => reach(parts, place, &mut reached),
                [] | [Part::AnyDepth, ..] => {}
                [last] => fit.is_match |= is_last_name && last.accepts_file(name),
                [part, ..] if part.accepts(name) => reach(parts, place + 1, &mut reached),
                [_, ..] => {}
            }
        }
    }
    fit.is_way = !reached.is_empty();
    fit
}

/// Notes that the next name may stand for the part at `place`, or for one behind its `**`.
fn reach(parts: &[Part], place: usize, reached: &mut BTreeSet<usize>) {
    reached.insert(place);
    if parts.get(place) == Some(&Part::AnyDepth) {
        reach(parts, place + 1, reached);
    }
}

impl Part {
    fn parse(name: &str) -> Result<Self, glob::PatternError> {
        if name == "**" {
            return Ok(Self::AnyDepth);
        }
        if name.contains(['*', '?', '[']) {
            return Ok(Self::Glob(glob::Pattern::new(name)?));
        }
        Ok(Self::Literal(name.to_owned()))
    }

    /// Whether it stands for this directory's name.
    pub(super) fn accepts(&self, name: &OsStr) -> bool {
        match self {
            Self::Literal(literal) => name == OsStr::new(literal),
            Self::Glob(glob) => name.to_str().is_some_and(|name| glob.matches_with(name, OPTIONS)),
            Self::AnyDepth => false,
        }
    }

    /// Whether it stands for this file's name. A wildcard never stands for a name that says that
    /// the file is not there yet: those of temporary files (known fault B153). A name written
    /// out in full is taken as it is.
    pub(super) fn accepts_file(&self, name: &OsStr) -> bool {
        self.accepts(name) && (matches!(self, Self::Literal(_)) || !is_temporary(name))
    }
}

/// Whether a name starts with a dot.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_temporary(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    is_hidden(name) || [&b".part"[..], b".tmp", b"~"].iter().any(|end| bytes.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &str, path: &str) -> (bool, bool) {
        let fit = Pattern::parse(pattern).unwrap().fit(&names(Path::new(path)));
        (fit.is_match, fit.is_way)
    }

    #[test]
    fn a_path_matches_component_by_component() {
        assert_eq!(fit("/in/orders-*.csv", "/in/orders-7.csv"), (true, false));
        assert_eq!(fit("/in/orders-*.csv", "/in/orders-7.txt"), (false, false));
        assert_eq!(fit("/in/*.csv", "/in/a/b.csv"), (false, false));
        assert_eq!(fit("/in/[ab].csv", "/in/b.csv"), (true, false));
        assert_eq!(fit("/in//./a?.csv", "/in/ab.csv"), (true, false));
    }

    #[test]
    fn directories_on_the_way_are_told_from_matches() {
        assert_eq!(fit("/in/*/x.csv", "/in"), (false, true));
        assert_eq!(fit("/in/*/x.csv", "/in/a"), (false, true));
        assert_eq!(fit("/in/*/x.csv", "/in/.a"), (false, false));
        assert_eq!(fit("/in/*/x.csv", "/out"), (false, false));
    }

    #[test]
    fn two_stars_stand_for_any_depth() {
        assert_eq!(fit("/in/**/*.csv", "/in/a.csv"), (true, true));
        assert_eq!(fit("/in/**/*.csv", "/in/a/b/c.csv"), (true, true));
        assert_eq!(fit("/in/**/*.csv", "/in/.git/c.csv"), (false, false));
        assert_eq!(fit("/in/**", "/in/a/b"), (true, true));
    }

    #[test]
    fn many_stars_are_no_burden() {
        let pattern = format!("{}/x", "/**/a".repeat(30));
        let path = "/a".repeat(120);
        assert_eq!(fit(&pattern, &path), (false, true));
        assert_eq!(fit(&pattern, &format!("{path}/x")), (true, true));
    }

    #[test]
    fn temporary_names_match_no_wildcard() {
        for name in ["a.part", "a.tmp", "a~", ".a", ".a.csv.Xy12"] {
            assert_eq!(fit("/in/*", &format!("/in/{name}")), (false, false), "{name}");
        }
        assert_eq!(fit("/in/*.tmp", "/in/a.tmp"), (false, false));
        assert_eq!(fit("/in/.ready", "/in/.ready"), (true, false));
    }

    #[test]
    fn what_is_no_pattern_is_said_so() {
        assert!(Pattern::parse("in/*.csv").unwrap_err().contains("not absolute"));
        assert!(Pattern::parse("/").unwrap_err().contains("names no file"));
        assert!(Pattern::parse("/in/[a").is_err());
    }
}
