//! The same experiment in several fresh processes. Memory is laid out anew in each, so that their
//! spread shows what one process cannot: how much of a figure is an accident of layout.

use super::subject::{Document, EXPERIMENT};
use super::{BUDGET_NS, Options, compute};
use std::process::{Command, Stdio};
use ugeom_harness::HarnessError;
use ugeom_harness::host::Host;
use ugeom_harness::{Control, Phase, Progress};

/// Measures in `processes` processes, one after the other, and puts their rounds together.
///
/// `command` makes the command that measures with the given options and writes the document as
/// JSON to its standard output; it usually starts this program again. The budget is shared out, and
/// every process has a seed of its own. A signal from the terminal reaches the process that runs;
/// what it measured until then counts.
///
/// # Errors
/// [`HarnessError::Thread`] when a process cannot be started or fails,
/// [`HarnessError::Document`] when it writes something else, or measured something else than the
/// first.
pub fn run_in_processes(
    options: &Options,
    processes: u32,
    command: &mut dyn FnMut(&Options) -> Command,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let processes = processes.max(1);
    let seed = options.seed.unwrap_or_else(|| Host::now().started_unix_s);
    let budget_ns = options.budget_ns.unwrap_or(BUDGET_NS) / u64::from(processes);
    let mut whole: Option<Document> = None;
    for number in 0..u64::from(processes) {
        if control.is_cancelled() {
            break;
        }
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            cell: "a process of its own",
            done: number,
            total: processes.into(),
        });
        let (seed, budget_ns) = (Some(seed.wrapping_add(number)), Some(budget_ns));
        let options = Options {
            seed,
            budget_ns,
            ..options.clone()
        };
        let document = match one(command(&options), number) {
            // It was stopped before it had a round; the processes before it count.
            Err(_) if control.is_cancelled() && whole.is_some() => break,
            result => result?,
        };
        whole = Some(match whole {
            None => document,
            Some(whole) => join(whole, document)?,
        });
    }
    let nothing = || failed(0, "none was started");
    let mut whole = whole.ok_or_else(nothing)?;
    compute(&mut whole);
    Ok(whole)
}

fn failed(number: u64, problem: impl ToString) -> HarnessError {
    HarnessError::Thread {
        cell: format!("process {}", number + 1),
        problem: problem.to_string(),
    }
}

/// Runs one process to its end.
fn one(mut command: Command, number: u64) -> Result<Document, HarnessError> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output();
    let output = output.map_err(|error| failed(number, error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let problem = format!("it ended with {}: {}", output.status, words.trim());
        return Err(failed(number, problem));
    }
    Document::from_json(&String::from_utf8_lossy(&output.stdout), EXPERIMENT)
}

/// Adds the rounds of another process.
fn join(mut whole: Document, other: Document) -> Result<Document, HarnessError> {
    let cells = |document: &Document| document.processes.first().map(|one| one.cells.clone());
    if cells(&whole) != cells(&other) {
        let problem = "two processes measured different cells".to_owned();
        return Err(HarnessError::Document(problem));
    }
    whole.processes.extend(other.processes);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::fixture;
    use std::sync::atomic::AtomicBool;
    use ugeom_harness::document::PROCESSES_MIN;

    /// A program that writes a prepared document, as a measuring process would.
    fn run(documents: &[String]) -> Result<Document, HarnessError> {
        let folder = tempfile::tempdir().unwrap();
        let mut seeds = Vec::new();
        let mut command = |options: &Options| {
            let number = seeds.len();
            seeds.push(options.seed);
            assert_eq!(
                options.budget_ns,
                Some(15_000_000_000 / documents.len() as u64)
            );
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, &documents[number]).unwrap();
            let mut cat = Command::new("cat");
            cat.arg(path);
            cat
        };
        let cancelled = AtomicBool::new(false);
        let mut progress = |_: &Progress<'_>| {};
        let mut control = Control {
            progress: &mut progress,
            cancelled: &cancelled,
        };
        let options = Options {
            seed: Some(7),
            ..Options::default()
        };
        let result = run_in_processes(&options, documents.len() as u32, &mut command, &mut control);
        assert!(
            seeds
                .iter()
                .enumerate()
                .all(|(at, seed)| *seed == Some(7 + at as u64))
        );
        result
    }

    fn prepared(seed: u64) -> String {
        let mut document = fixture::document(12);
        document.processes = vec![fixture::measured(&fixture::cells(), 12, seed)];
        document.to_json().unwrap()
    }

    #[test]
    fn five_processes_are_five_observations() {
        let documents: Vec<String> = (0..PROCESSES_MIN as u64).map(prepared).collect();
        let document = run(&documents).unwrap();
        assert!(document.by_process() && document.rounds() == 60);
        assert!(document.figure("geom.cost").is_some());
        let page = crate::layers::report(&document, false);
        assert!(
            page.contains("5 processes") && !page.contains("fresh processes"),
            "{page}"
        );
    }

    #[test]
    fn a_process_that_fails_or_measures_something_else_is_an_error() {
        let error = run(&["nonsense".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("reading a saved result: "), "{error}");
        let mut other = fixture::document(12);
        other.processes = vec![fixture::measured(&fixture::cells()[..5], 12, 1)];
        let error = run(&[prepared(1), other.to_json().unwrap()])
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("two processes measured different cells"),
            "{error}"
        );
        let error = one(Command::new("false"), 1).unwrap_err().to_string();
        assert!(
            error.starts_with("cell process 2: it ended with exit status: 1"),
            "{error}"
        );
    }

    #[test]
    fn a_process_that_is_stopped_early_leaves_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("first");
        std::fs::write(&path, prepared(1)).unwrap();
        let cancelled = AtomicBool::new(false);
        let mut started = 0;
        let mut command = |_: &Options| {
            started += 1;
            if started == 1 {
                let mut cat = Command::new("cat");
                cat.arg(&path);
                return cat;
            }
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
            Command::new("false")
        };
        let mut progress = |_: &Progress<'_>| {};
        let mut control = Control {
            progress: &mut progress,
            cancelled: &cancelled,
        };
        let document =
            run_in_processes(&Options::default(), 5, &mut command, &mut control).unwrap();
        assert_eq!((document.processes.len(), started), (1, 2));
    }
}
