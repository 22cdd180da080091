//! The output of a command, read as its result: the last number, in the unit that the user names.

use serde::{Deserialize, Serialize};

/// The unit of the last printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Printed {
    /// A time in nanoseconds.
    Ns,
    /// A time in microseconds.
    Us,
    /// A time in milliseconds.
    Ms,
    /// A time in seconds.
    S,
    /// A rate: so many in a second. It counts as the time of one.
    PerSecond,
}

/// Samples count whole nanoseconds; a printed time is entered as that of so many iterations, so
/// that rates of thousands of millions keep their digits.
pub(super) const PRINTED_ITERATIONS: u64 = 1_000_000;

/// A printed time is no shorter, so that its rounding to a sample is below 0.1 %, ns.
const NS_MIN: f64 = 0.001;

/// And no longer, or the unit is wrong, ns.
const NS_MAX: f64 = 3.6e12;

/// How much of the output an error shows.
const SHOWN_CHARS: usize = 400;

impl Printed {
    /// The time that a printed number stands for, ns.
    fn ns(self, number: f64) -> f64 {
        match self {
            Self::Ns => number,
            Self::Us => number * 1e3,
            Self::Ms => number * 1e6,
            Self::S => number * 1e9,
            Self::PerSecond => 1e9 / number,
        }
    }

    /// The time that stands for the last number of the output, ns: between a picosecond and
    /// an hour.
    ///
    /// # Errors
    /// The defect of the text: it holds no number, or one that is no such time.
    pub fn read(self, output: &str) -> Result<f64, String> {
        if let Some(text) = with_comma(output) {
            return Err(format!(
                "it printed {text}: a comma between digits may group them or divide two numbers; \
                 print the number without one"
            ));
        }
        let Some(number) = last_number(output) else {
            let shown = if output.trim().is_empty() {
                "nothing".to_owned()
            } else {
                format!("`{}`", shortened(output))
            };
            return Err(format!("expected a number, got {shown}"));
        };
        let ns = self.ns(number);
        if (NS_MIN..=NS_MAX).contains(&ns) {
            return Ok(ns);
        }
        Err(match self {
            Self::PerSecond => {
                let number = short(number);
                format!("it printed {number}: a rate lies between 1 per hour and 10^12 per second")
            }
            _ => {
                let number = short(number);
                format!("it printed {number}: a time lies between a picosecond and an hour")
            }
        })
    }
}

/// A number as people write it: very large and very small ones with an exponent.
fn short(number: f64) -> String {
    match number == 0.0 || (1e-6..1e15).contains(&number.abs()) {
        true => number.to_string(),
        false => format!("{number:e}"),
    }
}

/// The digits, points and commas at the last number of a text, if a comma stands between two of its
/// digits.
fn with_comma(text: &str) -> Option<&str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let end = text.rfind(is_digit)? + 1;
    let from = text[..end].rfind(|c: char| !is_digit(c) && !".,eE".contains(c));
    let from = from.map_or(0, |at| {
        at + text[at..].chars().next().map_or(1, char::len_utf8)
    });
    let number = text[from..end].trim_start_matches(|c: char| !is_digit(c));
    let divided = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] == b',';
    let followed = |pair: &[u8]| pair[0] == b',' && pair[1].is_ascii_digit();
    let bytes = number.as_bytes();
    (bytes.windows(2).any(divided) && bytes.windows(2).any(followed)).then_some(number)
}

/// The end of a text on one line, without control characters.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let skipped = line.chars().count().saturating_sub(SHOWN_CHARS);
    line.chars().skip(skipped).collect()
}

/// The last number in a text: `real 0.25s` holds 0.25.
fn last_number(text: &str) -> Option<f64> {
    let pieces = text.rsplit(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
    let numbers = pieces.filter(|piece| piece.contains(|c: char| c.is_ascii_digit()));
    numbers
        .filter_map(|piece| piece.trim_matches(['e', 'E', '+', '.']).parse::<f64>().ok())
        .find(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_number_is_found_in_what_programs_print() {
        for (text, number) in [
            ("12.5\n", Some(12.5)),
            ("real 0.25s\nuser 0.1s\n", Some(0.1)),
            ("took 5 ms.", Some(5.0)),
            ("rate: 1.25e6/s", Some(1.25e6)),
            ("read 100 blocks: time=33", Some(33.0)),
            ("-3", Some(-3.0)),
            ("done", None),
            ("2026-11-22", None),
            ("", None),
        ] {
            assert_eq!(last_number(text), number, "{text:?}");
        }
    }

    #[test]
    fn a_number_that_no_sample_can_hold_is_refused() {
        for (unit, text, words) in [
            (Printed::PerSecond, "1e300", "a rate lies between"),
            (Printed::PerSecond, "0", "a rate lies between"),
            (Printed::PerSecond, "0.0001", "a rate lies between"),
            (Printed::Ns, "0.0009", "a time lies between"),
            (Printed::S, "3601", "a time lies between"),
            (Printed::S, "-1", "a time lies between"),
        ] {
            let problem = unit.read(text).unwrap_err();
            assert!(problem.contains(words), "{unit:?} {text}: {problem}");
        }
        assert_eq!(Printed::PerSecond.read("1e12"), Ok(0.001));
        assert_eq!(Printed::S.read("3600"), Ok(3.6e12));
    }

    #[test]
    fn a_comma_between_digits_is_refused_because_it_has_two_meanings() {
        for (text, number) in [
            ("1,234", "1,234"),
            ("rate: 5,234.5 IOPS", "5,234.5"),
            ("12,5 ms\n", "12,5"),
            ("seq,4096,12.5,13.5", "4096,12.5,13.5"),
        ] {
            let problem = Printed::Ms.read(text).unwrap_err();
            assert!(
                problem.starts_with(&format!("it printed {number}: ")),
                "{problem}"
            );
        }
        for text in [
            "1,234 reads, 56 ms",
            "12.5, done",
            "read, 12.5",
            "ä12.5",
            "1, 12.5",
        ] {
            assert!(Printed::Ms.read(text).is_ok(), "{text}");
        }
        let long = Printed::S.read("1e300").unwrap_err();
        assert!(long.starts_with("it printed 1e300: "), "{long}");
    }

    const UNITS: [Printed; 5] = [
        Printed::Ns,
        Printed::Us,
        Printed::Ms,
        Printed::S,
        Printed::PerSecond,
    ];

    proptest! {
        #[test]
        fn a_number_is_found_wherever_it_stands(
            before in "[ -~\n]{0,40}",
            // `e`, signs and points would belong to the number.
            after in "[ a-df-zA-DF-Z:=%/\n]{0,40}",
            number in 0.001_f64..3.6e3,
        ) {
            let text = format!("{before} {number}{after}");
            prop_assert_eq!(last_number(&text), Some(number));
            for unit in UNITS {
                let times = unit.read(&text);
                prop_assert!(times.is_ok(), "{unit:?}: {times:?}");
            }
        }

        #[test]
        fn any_text_is_a_time_that_a_sample_holds_or_a_short_refusal(
            text in any::<String>(),
            unit in prop::sample::select(&UNITS),
        ) {
            match unit.read(&text) {
                Ok(ns) => prop_assert!(ns * PRINTED_ITERATIONS as f64 >= 1000.0),
                Err(problem) => prop_assert!(problem.chars().count() < SHOWN_CHARS + 100),
            }
        }
    }
}
