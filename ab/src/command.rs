//! Measures a command: the time from its start to its end, or the number that it prints.

use super::printed::{PRINTED_ITERATIONS, Printed};
use super::shell::{Output, Runner, failure};
use super::{Candidate, Subject, shell::Around};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, Length, RunResult};
use ugeom_measure::units::duration_measured;

/// A command that is to be measured.
pub(super) struct Program<'a> {
    text: String,
    printed: Option<Printed>,
    runner: Runner<'a>,
}

impl<'a> Program<'a> {
    pub(super) fn new(text: &str, printed: Option<Printed>, runner: Runner<'a>) -> Self {
        Self {
            text: text.to_owned(),
            printed,
            runner,
        }
    }

    /// The case that runs it; a run is one of the command. The first one is not counted: it
    /// consists of the warm-ups, each with its preparation, and finds errors. Without
    /// warm-ups it runs nothing.
    pub(super) fn case(
        self,
        name: &str,
        subject: &Subject,
        candidate: &Candidate,
        around: &'a Around<'a>,
    ) -> Case<'a> {
        let (warm_ups, own_name) = (subject.warmup, name.to_owned());
        let mut around_warm_ups = Some((candidate.prepare.clone(), candidate.conclude.clone()));
        let run = move |_: u64| {
            if let Some((prepare, conclude)) = around_warm_ups.take() {
                for _ in 0..warm_ups {
                    around.prepare(&prepare, &conclude)?;
                    let run = self.once(Output::Kept, &own_name, around)?;
                    log::debug!("warm-up of {own_name}: {}", took(&run));
                }
                return Ok(RunResult::taking(1));
            }
            let run = self.once(Output::Dropped, &own_name, around)?;
            log::debug!("run of {own_name}: {}", took(&run));
            Ok(run)
        };
        let (warm_up, iterations) = (0, 1);
        let case = Case::new(name, run).with_length(Length::Exactly {
            warm_up,
            iterations,
        });
        around.attach(case, candidate)
    }

    fn once(
        &self,
        output: Output,
        name: &str,
        around: &Around<'_>,
    ) -> Result<RunResult, HarnessError> {
        let output = self.printed.map_or(output, |_| Output::Kept);
        let done = self.runner.once(&self.text, output)?;
        if done.failed {
            around.note_failure(name);
        }
        let Some(printed) = self.printed else {
            return Ok(RunResult::taking(done.took_ns.max(1)));
        };
        let Some(output) = done.output else {
            return Ok(RunResult::taking(1));
        };
        let read = printed.read(&output);
        let ns = read.map_err(|problem| failure(&self.text, problem))?;
        let all_ns = (ns * PRINTED_ITERATIONS as f64).round() as u64;
        Ok(RunResult::taking(all_ns).counting(PRINTED_ITERATIONS))
    }
}

/// The time of one iteration of a run, for `-v`.
fn took(run: &RunResult) -> String {
    duration_measured(run.ns_total as f64 / run.counted.unwrap_or(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::Side;
    use super::super::shell::Shell;
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn runner(cancelled: &AtomicBool) -> Runner<'_> {
        Runner {
            shell: Shell::default(),
            ignores_failure: false,
            cancelled,
        }
    }

    fn run(text: &str, printed: Option<Printed>, runs: u32) -> Result<RunResult, HarnessError> {
        let cancelled = AtomicBool::new(false);
        let runner = runner(&cancelled);
        let around = Around::new(&runner.shell, &cancelled);
        let side = Side::Command(text.to_owned());
        let subject = Subject::of(vec![Candidate::of(side)]);
        let candidate = subject.candidates[0].clone();
        let program = Program::new(text, printed, runner.clone());
        let mut case = program.case("A", &subject, &candidate, &around);
        let mut last = RunResult::taking(0);
        for _ in 0..runs {
            last = (case.run)(1)?;
        }
        Ok(last)
    }

    #[test]
    fn a_command_is_timed_or_believed() {
        assert!(run("sleep 0.03", None, 2).unwrap().ns_total >= 30_000_000);
        let printed = Some(Printed::PerSecond);
        let result = run("echo 'rate 2000000000'", printed, 2).unwrap();
        assert_eq!(result.ns_total, 500_000, "half a nanosecond each");
        assert_eq!(result.counted, Some(PRINTED_ITERATIONS));
    }

    #[test]
    fn a_command_runs_as_often_as_it_is_told_to() {
        let folder = tempfile::tempdir().unwrap();
        for warm_ups in [0, 1, 3] {
            let log = folder.path().join(warm_ups.to_string());
            let text = format!("echo run >> {}", log.display());
            let cancelled = AtomicBool::new(false);
            let around = Around::new(&Shell::default(), &cancelled);
            let mut subject = Subject::of(vec![Candidate::of(Side::Command(text.clone()))]);
            subject.warmup = warm_ups;
            let runner = runner(&cancelled);
            let candidate = subject.candidates[0].clone();
            let mut case =
                Program::new(&text, None, runner).case("A", &subject, &candidate, &around);
            for _ in 0..3 {
                (case.run)(1).unwrap();
            }
            let runs = std::fs::read_to_string(&log).unwrap().lines().count();
            assert_eq!(runs as u64, warm_ups + 2);
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_is_told_before_it_is_measured() {
        let told = |text: &str, printed| run(text, printed, 1).unwrap_err().to_string();
        let failed = told("echo no such thing >&2; exit 3", None);
        assert_eq!(
            failed,
            "`echo no such thing >&2; exit 3`: exit code 3: no such thing"
        );
        assert!(told("/no/such/program", None).contains("exit code 127"));
        assert!(told("kill -9 $$", None).contains("killed by signal 9"));
        assert!(told("echo fast", Some(Printed::S)).contains("expected a number, got `fast`"));
        assert!(told("true", Some(Printed::S)).contains("expected a number, got nothing"));
        assert!(told("echo -1", Some(Printed::S)).contains("a time lies between"));
        assert!(told("echo 99999", Some(Printed::S)).contains("and an hour"));
    }
}
