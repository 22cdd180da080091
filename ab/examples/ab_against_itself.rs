//! Compares a target with itself again and again, and counts how often it is called faster or
//! slower: in at most 5 of 100 experiments, if the statistics keep what they promise.
//!
//! Run it with `cargo run --release -p ugeom-ab --example ab_against_itself`, and behind `--`
//! the number of experiments, the target and the seed, if not 200, zero and 1.
//!
//! Ends with 1 when the count is significantly more than that: when the exact binomial interval
//! (Clopper and Pearson, Biometrika 26, 1934) lies above 5 %.
#![forbid(unsafe_code)]

use std::io::Read;
use std::process::{Command, ExitCode};
use ugeom_ab::{AbOptions, Candidate, Jobs, Side, Subject, answer, run, worker};
use ugeom_harness::HarnessError;
use ugeom_harness::{Control, Machine};
use ugeom_measure::Claim;
use ugeom_measure::distributions::incomplete_beta;

/// The largest share of false alarms that is accepted.
const PROMISED: f64 = 0.05;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == WORKER) {
        return process();
    }
    let experiments = arguments.next().map_or(Ok(200), |text| text.parse());
    let target = arguments.next().unwrap_or_else(|| "zero".to_owned());
    let seed = arguments.next().map_or(Ok(1), |text| text.parse());
    let (Ok(experiments), Ok(seed)) = (experiments, seed) else {
        eprintln!("usage: ab_against_itself [EXPERIMENTS] [TARGET] [SEED]");
        return ExitCode::from(2);
    };
    match count(experiments, &target, seed) {
        Ok(different) => report(&target, different, experiments),
        Err(error) => {
            eprintln!("ab_against_itself: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The argument of a process that this program starts.
const WORKER: &str = "worker";

/// One process of an experiment.
fn process() -> ExitCode {
    let mut request = String::new();
    let mut control = Control::silent();
    let read = std::io::stdin().read_to_string(&mut request);
    let read = read.map_err(HarnessError::os("standard input", "reading"));
    let done = read.and_then(|_| worker(&request, &|_| Ok(Jobs::none()), &Machine, &mut control));
    match done {
        Ok(document) => {
            print!("{}", document.unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ab_against_itself: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many of the experiments claim a difference.
fn count(experiments: u64, target: &str, seed: u64) -> Result<u64, HarnessError> {
    let side = || Candidate::of(Side::Target(target.to_owned()));
    let program = std::env::current_exe();
    let program = program.map_err(HarnessError::os("/proc/self/exe", "reading"))?;
    let launch = || {
        let mut command = Command::new(&program);
        command.arg(WORKER);
        command
    };
    let mut different = 0;
    for number in 0..experiments {
        let mut subject = Subject::of(vec![side(), side()]);
        subject.confidence = 1.0 - PROMISED;
        // Small enough that nothing hides behind "equivalent": every significant one counts.
        subject.same_within = 1e-6;
        let options = AbOptions {
            subject,
            rounds: Some(3),
            processes: Some(12),
            budget_ns: 0,
            run_ns: 1_000_000,
            seed: Some(seed.wrapping_add(number)),
            destroy: false,
        };
        let mut control = Control::silent();
        let document = run(&options, &Jobs::none(), &launch, &Machine, &mut control)?;
        let answer = answer(&document);
        if matches!(answer.claims[..], [Claim::Faster | Claim::Slower]) {
            different += 1;
            println!("experiment {number}: {}", answer.sentence);
        }
    }
    Ok(different)
}

fn report(target: &str, different: u64, experiments: u64) -> ExitCode {
    let (low, high) = (
        lower_end(different, experiments),
        1.0 - lower_end(experiments - different, experiments),
    );
    println!(
        "{target} against itself: faster or slower in {different} of {experiments} experiments, \
         {:.1} % ({:.1} to {:.1}); promised are {:.0} % at most",
        different as f64 / experiments.max(1) as f64 * 100.0,
        low * 100.0,
        high * 100.0,
        PROMISED * 100.0
    );
    if low > PROMISED {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The lower end of the exact 95 % interval of a share: where so many or more would be seen with
/// a probability of 2.5 %.
fn lower_end(count: u64, all: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let or_more = |share| incomplete_beta(count as f64, (all - count) as f64 + 1.0, share);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if or_more(middle) < 0.025 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
