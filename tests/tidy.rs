//! The house rules that no compiler and no lint holds: who may import whom, one door per outside
//! crate, no clock and no world in the core, sizes, names, and that what the documents say exists.
//!
//! It reads the sources as text: comments and the contents of string literals do not count.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be read is a failed test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Lines of a source file without its tests, unless its head says why it is longer.
const FILE_LINES_MAX: usize = 400;
/// What the head of a longer file says.
const LONGER: &str = "longer than 400 lines because";
/// Lines of ARCHITECTURE.md.
const ARCHITECTURE_LINES_MAX: usize = 150;

// What the tree must look like

/// Which room may import which; each may import itself.
const ROOMS: [(&str, &[&str]); 7] = [
    ("limits", &[]),
    ("model", &["limits"]),
    ("scheduling", &["model", "limits"]),
    ("execution", &["model", "limits", "config"]),
    ("resource", &["model", "limits", "config"]),
    ("access", &["model", "limits", "config"]),
    // A configuration is a person's YAML too, and names what specs may refer to.
    ("config", &["model", "limits", "access"]),
];

/// What the programs may use of the library.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "src/bin/schedd.rs",
        &["daemon", "config", "access", "execution", "scheduling", "model", "limits"],
    ),
    // Of scheduling, what a set of files says without a daemon.
    ("src/bin/schedctl/", &["access", "config", "scheduling", "model", "limits"]),
];

/// What the core does not know: the world, time, threads, order by hash, chance.
const NOT_IN_THE_CORE: [&str; 14] = [
    "async",
    "await",
    "tokio",
    "std::fs",
    "std::process",
    "std::thread",
    "std::net",
    "SystemTime",
    "Instant::",
    "HashMap",
    "HashSet",
    "rand",
    "sled",
    "notify",
];

/// Outside crates and the only files that may name them.
const DOORS: [(&str, &[&str]); 17] = [
    ("sled", &["src/resource/sled_store.rs"]),
    ("notify", &["src/daemon/watch.rs"]),
    ("signal_hook", &["src/daemon/signals.rs", "src/execution/signals.rs"]),
    ("serde_yaml", &["src/access/yaml"]),
    ("saphyr_parser", &["src/access/yaml"]),
    ("cel", &["src/model/condition"]),
    // As with serde, types derive it where they stand.
    ("schemars", &["src/model/"]),
    ("cron", &["src/model/cron/calendar.rs"]),
    ("chrono", &["src/model/cron/calendar.rs"]),
    ("tracing_subscriber", &["src/daemon/tracing.rs"]),
    ("sd_notify", &["src/daemon/systemd.rs"]),
    ("axum", &["src/access/"]),
    ("hyper", &["src/access/"]),
    ("clap", &["src/bin/"]),
    ("comfy_table", &["src/bin/schedctl/"]),
    ("ascii_dag", &["src/bin/schedctl/render/graph/layout.rs"]),
    ("petgraph", &["src/scheduling/graph"]),
];

/// Ways to read a clock, and the only files that may.
const CLOCKS: [&str; 8] = [
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "ZonedDateTime::now",
    "Utc::now",
    "Local::now",
    "clock_gettime",
];
const CLOCK_FILES: [&str; 3] =
    ["src/daemon/clock.rs", "src/execution/clock.rs", "src/bin/schedctl/clock.rs"];

/// Names that say nothing.
const EMPTY_NAMES: [&str; 10] = [
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "misc",
    "manager",
    "handler",
    "handlers",
    "process_data",
];

// Reading the tree

/// One source file, as text and without comments and the contents of literals.
struct Source {
    /// From the repository's root.
    path: String,
    /// As it is.
    text: String,
    /// Same lines, without comments and contents of literals.
    code: String,
    /// Of `code`, what is no test.
    own: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || is_test_path(&self.path)
    }

    /// The room of the house; `None` for programs, tests and the library's root.
    fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        let name = inside.split('/').next()?;
        let name = name.strip_suffix(".rs").unwrap_or(name);
        (!matches!(name, "bin" | "lib")).then_some(name)
    }
}

/// Whether a file is a test, or what tests stand on (declared under `cfg(test)` where it is used).
fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || ["src/access/fakes.rs", "src/model/fixture.rs", "src/resource/fixture.rs"]
            .contains(&path)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    let full = root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("cannot read {path}: {e}"))
}

fn files_under(dir: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let inside = path.strip_prefix(root()).unwrap();
                found.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// All Rust sources of the library and the programs.
fn sources() -> Vec<Source> {
    let sources: Vec<Source> = files_under("src", ".rs").into_iter().map(source).collect();
    assert!(sources.len() > 50, "found {} sources only", sources.len());
    sources
}

fn source(path: String) -> Source {
    let text = read(&path);
    let code = code_of(&text);
    let own = if is_test_path(&path) { String::new() } else { without_tests(&code).to_owned() };
    Source { path, text, code, own }
}

/// Blanks out comments and the contents of literals; line breaks stay where they are.
fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        let next = chars.get(at + 1).copied();
        let end = match (c, next) {
            ('/', Some('/')) => line_end(&chars, at),
            ('/', Some('*')) => comment_end(&chars, at),
            ('"', _) => string_end(&chars, at),
            ('r', Some('"' | '#')) if !is_word(at.checked_sub(1).and_then(|b| chars.get(b))) => {
                raw_end(&chars, at)
            }
            ('\'', _) => char_end(&chars, at),
            _ => at,
        };
        if end == at {
            code.push(c);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

fn line_end(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|i| chars[*i] == '\n').unwrap_or(chars.len())
}

fn comment_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// End of `r"…"` or `r#"…"#`; `from` itself for a raw identifier.
fn raw_end(chars: &[char], from: usize) -> usize {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let quote = from + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return from;
    }
    let closes = |i: &usize| {
        chars[*i] == '"'
            && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    (quote + 1..chars.len()).find(closes).map_or(chars.len(), |i| i + 1 + hashes)
}

/// End of a character literal; `from` itself for a lifetime.
fn char_end(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        (Some('\\'), _) => {
            (from + 3..chars.len()).find(|i| chars[*i] == '\'').map_or(chars.len(), |i| i + 1)
        }
        (Some(_), Some('\'')) => from + 3,
        _ => from,
    }
}

/// What comes before the tests at a file's end.
fn without_tests(code: &str) -> &str {
    let mut from = 0;
    while let Some(at) = code[from..].find("#[cfg(test)]") {
        let start = from + at;
        let rest = code[start + "#[cfg(test)]".len()..].trim_start();
        if rest.starts_with("mod tests {") {
            return &code[..start];
        }
        from = start + 1;
    }
    code
}

fn is_word(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

/// Lines, from 1, on which `word` stands as a word of its own; with `::` at an end, as that part of
/// a path.
fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let stands_alone = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !is_word(before.as_ref()) && (word.ends_with(':') || !is_word(after.as_ref()))
    };
    let holds = |line: &str| line.match_indices(word).any(|(at, _)| stands_alone(line, at));
    (1..).zip(code.lines()).filter(|(_, line)| holds(line)).map(|(n, _)| n).collect()
}

/// Lines that name an outside crate: `name::` or `use name;` at the start of a path.
fn lines_naming(code: &str, name: &str) -> Vec<usize> {
    let path = format!("{name}::");
    let starts_path = |line: &str, at: usize| {
        let before = &line[..at];
        let inner = before.ends_with("::") && !before.trim_end_matches("::").is_empty();
        let rooted = before.ends_with("::")
            && !is_word(before.trim_end_matches("::").chars().next_back().as_ref());
        !is_word(before.chars().next_back().as_ref()) && (!inner || rooted)
    };
    let bare = format!("use {name}");
    let names = |line: &str| {
        line.match_indices(&path).any(|(at, _)| starts_path(line, at))
            || lines_with(line, &bare) == [1]
    };
    (1..).zip(code.lines()).filter(|(_, line)| names(line)).map(|(n, _)| n).collect()
}

/// What follows `crate::` or `sched::`, group imports taken apart.
fn rooms_named(code: &str, root: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let word = |text: &str| -> String { text.chars().take_while(|c| is_word(Some(c))).collect() };
    for (at, _) in code.match_indices(root) {
        if is_word(code[..at].chars().next_back().as_ref()) {
            continue;
        }
        let rest = &code[at + root.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            named.insert(word(rest));
            continue;
        };
        // The words at the group's own level.
        let mut depth = 0;
        let mut is_start = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_start = true,
                c if is_start && is_word(Some(&c)) => {
                    named.insert(word(&group[at..]));
                    is_start = false;
                }
                _ => {}
            }
        }
    }
    named
}

/// Fails with everything that was found, one finding per line.
fn hold(rule: &str, findings: &[String]) {
    let mut text = String::new();
    for finding in findings {
        write!(text, "\n  {finding}").unwrap();
    }
    assert!(findings.is_empty(), "{rule}:{text}");
}

// The rules

#[test]
fn every_room_imports_only_what_lies_below_it() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| !is_test_path(&s.path)) {
        if let Some(room) = source.room() {
            // The shell sees all; nothing in the house sees the shell.
            if room == "daemon" {
                continue;
            }
            let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
                found.push(format!("{}: {room} is no room of the house", source.path));
                continue;
            };
            for named in rooms_named(&source.own, "crate::") {
                if named != room && !allowed.contains(&named.as_str()) {
                    found.push(format!("{}: {room} imports {named}", source.path));
                }
            }
        }
        for (program, allowed) in PROGRAMS.iter().filter(|(p, _)| source.path.starts_with(p)) {
            for named in rooms_named(&source.own, "sched::") {
                if !allowed.contains(&named.as_str()) {
                    found.push(format!("{}: {program} imports {named}", source.path));
                }
            }
        }
    }
    hold("who may import whom", &found);
}

#[test]
fn no_path_climbs_out_of_its_room() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| s.room().is_some()) {
        let parts = source.path.trim_end_matches(".rs").split('/').skip(1);
        let depth = parts.filter(|part| *part != "mod").count();
        let climbs = |n: usize| "super::".repeat(n);
        // Inside `mod tests { … }` one step more leads only out of these.
        if source.own.contains(&climbs(depth)) || source.code.contains(&climbs(depth + 1)) {
            found.push(format!("{}: super:: leads out of the room; write crate::", source.path));
        }
    }
    hold("rooms are entered by their names", &found);
}

#[test]
fn the_core_knows_no_world_no_time_and_no_chance() {
    let mut found = Vec::new();
    let core = |s: &&Source| matches!(s.room(), Some("model" | "scheduling"));
    for source in sources().iter().filter(core) {
        for word in NOT_IN_THE_CORE {
            for line in lines_with(&source.own, word) {
                found.push(format!("{}:{line}: {word}", source.path));
            }
        }
    }
    hold("words that model and scheduling do not use", &found);
}

#[test]
fn each_outside_crate_has_its_door() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| !is_test_path(&s.path)) {
        for (name, doors) in DOORS {
            if doors.iter().any(|door| source.path.starts_with(door)) {
                continue;
            }
            for line in lines_naming(&source.own, name) {
                found.push(format!("{}:{line}: names {name}; {}", source.path, doors.join(", ")));
            }
        }
    }
    hold("outside crates and their doors", &found);
}

#[test]
fn only_the_clock_files_read_clocks() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| !CLOCK_FILES.contains(&s.path.as_str())) {
        for clock in CLOCKS {
            for line in lines_with(&source.own, clock) {
                found.push(format!("{}:{line}: {clock}", source.path));
            }
        }
    }
    hold("clocks outside of the clock files", &found);
}

#[test]
fn unsafe_code_stands_in_one_file() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| s.path != "src/execution/process.rs") {
        for line in lines_with(&source.code, "unsafe") {
            found.push(format!("{}:{line}", source.path));
        }
    }
    hold("unsafe outside of src/execution/process.rs", &found);
}

#[test]
fn states_are_set_by_a_turns_move_and_by_a_birth_only() {
    let mut found = Vec::new();
    // A simulation draws pictures of instances, and who would start is tried out on copies of them.
    let on_copies = ["src/scheduling/simulate/", "src/scheduling/preemption.rs"];
    let is_on_copies = |s: &Source| on_copies.iter().any(|begin| s.path.starts_with(begin));
    let of_core = |s: &&Source| s.room() == Some("scheduling") && !is_on_copies(s);
    for source in sources().iter().filter(of_core) {
        let moves = source.own.lines().filter(|line| {
            line.split_once(".state").is_some_and(|(_, after)| {
                let after = after.trim_start();
                after.starts_with('=') && !after.starts_with("==")
            })
        });
        let births = source.own.lines().filter(|line| {
            let line = line.trim_start();
            ["Instance {", "(Instance {", "= Instance {"]
                .iter()
                .any(|begin| line.starts_with(begin) || (begin.len() > 10 && line.contains(begin)))
        });
        for (count, file, what) in [
            (moves.count(), "src/scheduling/turn.rs", "assignments of a state"),
            (births.count(), "src/scheduling/lifecycle/wave.rs", "instances written out"),
        ] {
            if count != usize::from(source.path == file) {
                found.push(format!("{}: {count} {what}", source.path));
            }
        }
    }
    hold("states set beside Turn::transition, which knows the table", &found);
}

#[test]
fn long_files_say_why_they_are() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|s| !s.is_test()) {
        let lines = source.own.trim_end().lines().count();
        let head = source.text.lines().take_while(|line| line.starts_with("//!"));
        let reason = head.collect::<Vec<_>>().join(" ").replace(" //!", "");
        if lines > FILE_LINES_MAX && !reason.contains(LONGER) {
            found.push(format!("{}: {lines} lines; expected {LONGER:?} in its head", source.path));
        }
    }
    hold("long files", &found);
}

#[test]
fn names_say_something() {
    let mut found = Vec::new();
    for source in sources() {
        let parts = source.path.trim_end_matches(".rs").split('/');
        for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
            found.push(format!("{}: {part}", source.path));
        }
        for word in words_after(&source.code, &["mod", "struct", "enum", "trait", "type"]) {
            let says_nothing = word.ends_with("Impl") || word.ends_with("Info");
            if says_nothing || EMPTY_NAMES.contains(&word.to_lowercase().as_str()) {
                found.push(format!("{}: {word}", source.path));
            }
        }
        for word in words_after(&source.code, &["fn"]) {
            if word.starts_with("do_") {
                found.push(format!("{}: {word}", source.path));
            }
        }
    }
    hold("names that say nothing", &found);
}

fn words_after(code: &str, keywords: &[&str]) -> Vec<String> {
    let words: Vec<&str> = code.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| keywords.contains(&pair[0]));
    pairs.map(|pair| pair[1].chars().take_while(|c| is_word(Some(c))).collect()).collect()
}

#[test]
fn nothing_is_left_for_later() {
    // Written in two parts, or this file would find itself.
    let in_code = [concat!("todo", "!"), concat!("unimpl", "emented!"), concat!("#[ign", "ore")];
    let in_text = [concat!("FIX", "ME"), concat!("XX", "X ")];
    let should_panic = concat!("#[should", "_panic");
    let mut found = Vec::new();
    let tests = files_under("tests", ".rs").into_iter().map(source);
    for source in sources().into_iter().chain(tests) {
        for word in in_code.into_iter().chain([should_panic]) {
            if source.code.contains(word) {
                found.push(format!("{}: {word}", source.path));
            }
        }
        for word in in_text {
            if source.text.contains(word) {
                found.push(format!("{}: {word}", source.path));
            }
        }
    }
    hold("what is left for later", &found);
}

#[test]
fn the_map_of_the_house_is_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(
        lines <= ARCHITECTURE_LINES_MAX,
        "ARCHITECTURE.md has {lines} lines; at most {ARCHITECTURE_LINES_MAX}"
    );
}

mod documents {
    use sched::access::spec_dir::SpecDir;
    use sched::access::spec_yaml;
    use sched::config::Config;

    use super::*;

    /// Files whose commands and samples must be real.
    const DOCUMENTS: [&str; 4] = ["README.md", "docs/spec.md", "docs/waves.md", "docs/simulate.md"];

    fn config(path: &str) -> Config {
        let full = root().join(path);
        Config::load(Some(&full)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn the_sample_configurations_are_right() {
        let samples = files_under("config", ".yaml");
        let samples =
            samples.iter().filter(|path| Path::new(path).parent() == Some(Path::new("config")));
        for path in samples {
            assert_eq!(config(path).warnings, [], "{path}");
        }
    }

    #[test]
    fn the_sample_tasks_are_right() {
        let context = config("config/dev.yaml").spec_context();
        let read = SpecDir::new(root().join("config/sched.d"), context).scan_once();
        assert_eq!(read.unreadable, None);
        assert!(read.changed.len() > 3, "found {} files only", read.changed.len());
        for file in read.changed {
            assert_eq!(file.errors, [], "{}", file.path);
            assert_eq!(file.warnings, [], "{}", file.path);
            assert!(!file.specs.is_empty(), "{} defines nothing", file.path);
        }
    }

    #[test]
    fn the_documents_show_tasks_that_are_right() {
        let context = config("config/dev.yaml").spec_context();
        let mut shown = 0;
        for document in DOCUMENTS {
            let text = read(document);
            for block in blocks(&text, "yaml").filter(|b| b.contains("taskId:")) {
                let file = spec_yaml::read(document, block.as_bytes(), &context);
                assert_eq!(file.errors, [], "{document}:\n{block}");
                shown += file.specs.len();
            }
        }
        assert!(shown > 0, "no document shows a task");
    }

    #[test]
    fn the_documents_and_the_help_name_the_same_verbs() {
        let offered = verbs_of_help();
        let mut named = BTreeSet::new();
        for document in DOCUMENTS {
            for verb in verbs_named(&read(document)) {
                assert!(offered.contains(&verb), "{document} names `schedctl {verb}`");
                if document == "README.md" {
                    named.insert(verb);
                }
            }
        }
        for path in files_under("config", ".yaml") {
            // There the commands stand in comments.
            let code: String = read(&path).lines().map(|line| format!("`{line}`\n")).collect();
            for verb in verbs_named(&code) {
                assert!(offered.contains(&verb), "{path} names `schedctl {verb}`");
            }
        }
        let missing: Vec<&String> = offered.difference(&named).collect();
        assert!(missing.is_empty(), "README.md does not name the verbs {missing:?}");
    }

    /// The contents of fenced blocks in a language.
    fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
        let fence = format!("```{language}\n");
        let starts: Vec<usize> =
            text.match_indices(&fence).map(|(at, _)| at + fence.len()).collect();
        starts.into_iter().map(move |at| text[at..].split("```").next().unwrap_or(""))
    }

    /// The words after `schedctl` in code: fenced blocks and what stands between backticks.
    fn verbs_named(text: &str) -> BTreeSet<String> {
        let mut verbs = BTreeSet::new();
        let mut is_code = false;
        for part in text.split('`') {
            // A fence is three of them and so turns the sense as one does.
            if is_code {
                for line in part.lines() {
                    verbs.extend(verbs_of_line(line));
                }
            }
            is_code = !is_code;
        }
        verbs
    }

    fn verbs_of_line(line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let starts = (0..words.len()).filter(|at| {
            let program = words[*at].trim_start_matches(['(', '$', '"']);
            program == "schedctl" || program.ends_with("/schedctl")
        });
        let verb = |at: usize| {
            let mut rest = words[at + 1..].iter();
            let mut word = rest.next()?;
            while word.starts_with('-') {
                if matches!(*word, "--socket" | "-o" | "--output" | "--color") {
                    rest.next();
                }
                word = rest.next()?;
            }
            let is_verb = word.chars().all(|c| c.is_ascii_lowercase());
            is_verb.then(|| (*word).to_owned())
        };
        starts.filter_map(verb).collect()
    }

    /// The verbs that `schedctl --help` lists.
    fn verbs_of_help() -> BTreeSet<String> {
        let help = std::process::Command::new(env!("CARGO_BIN_EXE_schedctl"))
            .arg("--help")
            .output()
            .unwrap();
        let text = String::from_utf8(help.stdout).unwrap();
        let verbs: BTreeSet<String> = text
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|verb| *verb != "help")
            .map(str::to_owned)
            .collect();
        assert!(verbs.len() > 10, "found the verbs {verbs:?} only");
        verbs
    }
}

mod reading {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let text = "let a = \"tokio\"; // tokio\nlet b = 'x'; /* tokio /* */ tokio */ fn f<'a>() {}\n\
                    let c = r#\"sled \" tokio\"#; let d = '\\''; tokio();";
        assert_eq!(lines_with(&code_of(text), "tokio"), [3]);
        assert!(code_of(text).contains("fn f<'a>() {}"));
        assert_eq!(code_of(text).lines().count(), 3);
    }

    #[test]
    fn words_and_paths_are_told_apart() {
        assert_eq!(lines_with("x.sd_notify()\nasync fn\nlet asynchron = 1;", "async"), [2]);
        let code = "use cron::Schedule;\nuse super::cron::X;\ncrate::model::cron::Y\n::cron::Z";
        assert_eq!(lines_naming(code, "cron"), [1, 4]);
        let code = "use crate::{model::{id::A, spec}, limits};\nlet a = crate::access::b();";
        let rooms: Vec<String> = rooms_named(code, "crate::").into_iter().collect();
        assert_eq!(rooms, ["access", "limits", "model"]);
    }
}
