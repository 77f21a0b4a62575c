//! Warnings about an expression as a whole: what every cron does and few people expect. Those about
//! a single step are made where the step is read.

use super::fields::{Fields, Set};

/// What is accepted but surprises, as far as single fields do not show it.
pub(super) fn surprises(fields: &mut Fields, every_second: bool, day: &str, weekday: &str) {
    if every_second && fields.seconds == Set::range(0, 59) {
        let text = "fires in every second of a matching minute: of six fields the first is the \
                    second; write 0 there for once a minute";
        fields.warnings.push(text.to_owned());
    }
    let free = |text: &str| matches!(text, "*" | "?");
    if !fields.both_days {
        fields.warnings.push(format!(
            "fires when either the day of month ({day}) or the day of week ({weekday}) matches, as \
             in every cron"
        ));
    } else if !free(day) && !free(weekday) {
        fields.warnings.push(format!(
            "fires only when both the day of month ({day}) and the day of week ({weekday}) match, \
             because one of them starts with '*'"
        ));
    }
    let late = fields.days.iter().next().filter(|least| *least > 28);
    if let Some(least) = late.filter(|_| fields.day_rules.is_empty() && free(weekday)) {
        let short: &[u8] = if least == 31 { &[2, 4, 6, 9, 11] } else { &[2] };
        if short.iter().any(|month| fields.months.has(*month)) {
            fields.warnings.push(format!(
                "does not fire in months without a day {least}; L is the last day of every month"
            ));
        }
    }
}
