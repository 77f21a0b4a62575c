//! An expression's meaning: sets of numbers, the day rules of `L`, `W` and `#`, and which dates
//! they match. Knows neither text nor zones.

/// The greatest change of a clock that is made up for, in seconds.
const CHANGE_MAX: i64 = 3 * 3600;

/// A set of numbers from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    /// The numbers from `least` to `greatest`.
    pub(super) fn range(least: u8, greatest: u8) -> Self {
        let mut set = Self::default();
        (least..=greatest).for_each(|n| set.insert(n));
        set
    }

    pub(super) fn insert(&mut self, n: u8) {
        self.0 |= 1_u64.checked_shl(n.into()).unwrap_or(0);
    }

    pub(super) fn has(self, n: u8) -> bool {
        self.0.checked_shr(n.into()).unwrap_or(0) & 1 == 1
    }

    /// How many numbers.
    pub(super) fn len(self) -> u64 {
        self.0.count_ones().into()
    }

    /// How many numbers less than `n`.
    pub(super) fn below(self, n: u8) -> u64 {
        Self(self.0 & 1_u64.checked_shl(n.into()).unwrap_or(0).wrapping_sub(1)).len()
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// In ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |n| self.has(*n))
    }
}

/// A day of the month that depends on the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayRule {
    /// `L`, `L-n`: the last day, or so many days before it.
    Last(u8),
    /// `LW`: the last Monday to Friday.
    LastWorkday,
    /// `nW`: the Monday to Friday nearest to day n, inside the month.
    NearestWorkday(u8),
}

/// A weekday (0 = Sunday) of a certain week of the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeekdayRule {
    /// `dL`: the month's last.
    Last(u8),
    /// `d#k`: the month's k-th.
    Nth(u8, u8),
}

/// What the day fields look at in a date.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    /// 1..=12.
    pub(super) month: u8,
    /// From 1.
    pub(super) day: u8,
    /// 0 = Sunday.
    pub(super) weekday: u8,
    /// Days of the month.
    pub(super) month_days: u8,
}

impl Day {
    /// A day by its number, 1970-01-01 being 0; `None` outside the calendar's years.
    pub(super) fn on(number: i64) -> Option<Self> {
        let span = jiff::Span::new().try_days(number).ok()?;
        let date = jiff::civil::date(1970, 1, 1).checked_add(span).ok()?;
        Some(Self {
            month: date.month().unsigned_abs(),
            day: date.day().unsigned_abs(),
            weekday: date.weekday().to_sunday_zero_offset().unsigned_abs(),
            month_days: date.days_in_month().unsigned_abs(),
        })
    }

    /// The weekday of another day of the same month.
    fn weekday_of(self, day: u8) -> u8 {
        (self.weekday + 35 + day - self.day) % 7
    }
}

impl DayRule {
    fn matches(self, date: Day) -> bool {
        const SATURDAY: u8 = 6;
        const SUNDAY: u8 = 0;
        let last = date.month_days;
        match self {
            Self::Last(before) => date.day + before == last,
            Self::LastWorkday => match date.weekday_of(last) {
                SATURDAY => date.day == last - 1,
                SUNDAY => date.day == last - 2,
                _ => date.day == last,
            },
            Self::NearestWorkday(day) if day > last => false,
            Self::NearestWorkday(day) => match date.weekday_of(day) {
                SATURDAY if day == 1 => date.day == 3,
                SATURDAY => date.day == day - 1,
                SUNDAY if day == last => date.day == day - 2,
                SUNDAY => date.day == day + 1,
                _ => date.day == day,
            },
        }
    }

    /// Days on which the rule may match, and others.
    pub(super) fn superset(self) -> Set {
        match self {
            Self::Last(before) => Set::range(28_u8.saturating_sub(before).max(1), 31 - before),
            Self::LastWorkday => Set::range(26, 31),
            Self::NearestWorkday(day) => {
                Set::range(day.saturating_sub(2).max(1), (day + 2).min(31))
            }
        }
    }
}

impl WeekdayRule {
    fn matches(self, date: Day) -> bool {
        match self {
            Self::Last(weekday) => date.weekday == weekday && date.day + 7 > date.month_days,
            Self::Nth(weekday, nth) => date.weekday == weekday && (date.day - 1) / 7 + 1 == nth,
        }
    }

    pub(super) fn weekday(self) -> u8 {
        match self {
            Self::Last(weekday) | Self::Nth(weekday, _) => weekday,
        }
    }
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields {
    pub(super) seconds: Set,
    pub(super) minutes: Set,
    pub(super) hours: Set,
    pub(super) days: Set,
    pub(super) day_rules: Vec<DayRule>,
    pub(super) months: Set,
    /// 0 = Sunday.
    pub(super) weekdays: Set,
    pub(super) weekday_rules: Vec<WeekdayRule>,
    /// Both day fields must match (one of them starts with `*` or `?`); else either.
    pub(super) both_days: bool,
    /// Second, minute or hour starts with `*`: follows the clock through its changes.
    pub(super) wildcard: bool,
    /// What is accepted but surprises.
    pub(super) warnings: Vec<String>,
}

impl Fields {
    /// Whether what the clock skips or repeats, from one wall time up to another, fires just once:
    /// a skipped time at the jump, a repeated one in its first pass.
    pub(super) fn fires_once(&self, (from, to): (i64, i64)) -> bool {
        !self.wildcard && to - from <= CHANGE_MAX
    }

    /// Whether a date is one of the expression's.
    pub(super) fn matches(&self, date: Day) -> bool {
        let day = || self.days.has(date.day) || self.day_rules.iter().any(|r| r.matches(date));
        let weekday = || {
            self.weekdays.has(date.weekday) || self.weekday_rules.iter().any(|r| r.matches(date))
        };
        let days = if self.both_days { day() && weekday() } else { day() || weekday() };
        self.months.has(date.month) && days
    }

    /// Whether any date of the 14 calendar years that there are matches.
    pub(super) fn ever_matches(&self) -> bool {
        let starts = (0..7).flat_map(|weekday| [(weekday, 28), (weekday, 29)]);
        starts.into_iter().any(|(first, february)| {
            let mut weekday = first;
            let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            (1..).zip(months).any(|(month, month_days)| {
                (1..=month_days).any(|day| {
                    let date = Day { month, day, weekday, month_days };
                    weekday = (weekday + 1) % 7;
                    self.matches(date)
                })
            })
        })
    }
}
