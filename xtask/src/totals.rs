//! Counts of tests, read from the output of cargo-nextest and of the standard test harness.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// How many tests ended which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Totals {
    /// Sums every summary found in the output of a test run. A run that failed without a failed
    /// test (a build error, a harness that crashed) counts as one failure.
    ///
    /// cargo-nextest repeats what a failed test printed, with the summary of its own small run in
    /// it; the summary of the whole has counted that test.
    pub fn of_run(lines: &[String], success: bool) -> Totals {
        let mut sum = Totals::default();
        let of_nextest = lines.iter().any(|line| is_of_nextest(line.trim()));
        for line in lines {
            if of_nextest && !is_of_nextest(line.trim()) {
                continue;
            }
            if let Some(totals) = summary(line) {
                sum += totals;
            }
        }
        if !success && sum.failed == 0 {
            sum.failed = 1;
        }
        sum
    }

    /// Moves the tests that reported themselves as skipped from passed to skipped: to the harness
    /// they returned like any other.
    pub fn take_skips(&mut self, skips: &[Skip]) {
        let tests: BTreeSet<_> = skips
            .iter()
            .map(|skip| (&skip.process, &skip.name))
            .collect();
        let moved = (tests.len() as u64).min(self.passed);
        self.passed -= moved;
        self.skipped += moved;
    }
}

/// A summary line of cargo-nextest, or of the standard harness.
fn summary(line: &str) -> Option<Totals> {
    let line = line.trim();
    let counts = if let Some(rest) = line.strip_prefix("test result: ") {
        rest.split_once(". ")?.1
    } else if is_of_nextest(line) {
        line.split_once(" run: ")?.1
    } else {
        return None;
    };
    let mut totals = Totals::default();
    for part in without_parentheses(counts).split([',', ';']) {
        let Some((count, word)) = part.trim().split_once(' ') else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        match word.trim() {
            "passed" => totals.passed += count,
            "failed" | "timed out" | "exec failed" => totals.failed += count,
            "skipped" | "ignored" => totals.skipped += count,
            _ => {}
        }
    }
    Some(totals)
}

/// The lines in which cargo-nextest names tests that passed only when they were repeated.
pub fn flaky(lines: &[String]) -> impl Iterator<Item = &str> {
    let lines = lines.iter().map(|line| line.trim());
    lines.filter(|line| line.starts_with("FLAKY "))
}

fn is_of_nextest(line: &str) -> bool {
    line.starts_with("Summary [")
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// A test, or a part of one, that could not run here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    pub name: String,
    pub reason: String,
    /// Tells tests of the same name in two binaries apart, as does a second try.
    pub process: String,
}

/// Reads the file that `ugeom_testkit::skip` appends to: `PROCESS<tab>NAME<tab>REASON` a line.
pub fn skips(log: &str) -> Vec<Skip> {
    let parse = |line: &str| {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        let (process, name) = (fields.next()?, fields.next()?);
        let reason = fields.next()?;
        Some(Skip {
            name,
            reason,
            process,
        })
    };
    let mut all: Vec<Skip> = log.lines().filter_map(parse).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, success: bool) -> (u64, u64, u64) {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let totals = Totals::of_run(&lines, success);
        (totals.passed, totals.failed, totals.skipped)
    }

    #[test]
    fn summaries_of_the_standard_harness_are_summed() {
        let text = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\
                    test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(of(text, false), (12, 2, 1));
    }

    #[test]
    fn a_summary_of_nextest_is_read_with_its_remarks() {
        let text = "     Summary [   3.456s] 126 tests run: 118 passed (2 slow, 1 flaky), \
                    2 failed, 1 timed out, 3 skipped";
        assert_eq!(of(text, false), (118, 3, 3));
        assert_eq!(
            of(
                "     Summary [   0.1s] 1 test run: 1 passed, 0 skipped",
                true
            ),
            (1, 0, 0)
        );
    }

    #[test]
    fn tests_that_passed_when_repeated_are_listed() {
        let lines = "   FLAKY 2/3 [ 0.5s] ugeom-tests::e2e a::b\n    PASS [ 0.1s] c\n FLAKYNESS"
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let found: Vec<&str> = flaky(&lines).collect();
        assert_eq!(found, ["FLAKY 2/3 [ 0.5s] ugeom-tests::e2e a::b"]);
    }

    #[test]
    fn what_a_failed_test_printed_is_not_counted_again() {
        let text = "  stdout\n    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\n\
                         Summary [ 191.5s] 1143 tests run: 1142 passed, 1 failed, 1 skipped";
        assert_eq!(of(text, false), (1142, 1, 1));
    }

    #[test]
    fn a_run_that_fails_without_a_failed_test_is_one_failure() {
        assert_eq!(
            of("error: could not compile `ugeom-stack`", false),
            (0, 1, 0)
        );
        assert_eq!(of("", true), (0, 0, 0));
    }

    #[test]
    fn a_test_that_skipped_itself_is_not_counted_as_passed() {
        let log = "1\tone\tno fio\n1\tone\tno ring\n2\tone\tno fio\n2\tone\tno fio\n";
        let skips = skips(log);
        assert_eq!(skips.len(), 3);
        let mut totals = Totals {
            passed: 10,
            failed: 1,
            skipped: 0,
        };
        totals.take_skips(&skips);
        assert_eq!(
            totals,
            Totals {
                passed: 8,
                failed: 1,
                skipped: 2
            }
        );
        assert_eq!(totals.to_string(), "8 passed, 1 failed, 2 skipped");
    }
}
