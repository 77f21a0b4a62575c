//! "Did you mean": the known word nearest to a wrong one. Knows nothing of what the words name.

/// The known word nearest to `found`; `None` if none is near enough to be a slip of the pen.
///
/// Case does not count. Near enough: a third of the longer word's letters, at least one, may
/// differ. Of equally near ones the first is taken.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distance is quadratic; nobody mistypes a word of this length by a letter.
    const CHARS_MAX: usize = 200;
    if found.chars().count() > CHARS_MAX {
        return None;
    }
    let lower = found.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&lower, &word.to_lowercase()), word))
        .filter(|(distance, word)| {
            let longer = lower.chars().count().max(word.chars().count());
            *distance <= (longer / 3).max(1) && *distance < longer
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let known = ["taskId", "attempt", "date"];
        for (found, expected) in [
            ("taskid", Some("taskId")),
            ("task_id", Some("taskId")),
            ("atempt", Some("attempt")),
            ("dtae", Some("date")),
            ("x", None),
            ("", None),
            ("hostname", None),
        ] {
            assert_eq!(nearest(found, known), expected, "{found}");
        }
    }
}
