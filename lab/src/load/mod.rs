//! The targets of the load generator: the cost of recording a latency, and its request rate beside
//! fio's null engine, measured in the same rounds.

mod fio;

use self::fio::{Account, null_engine};
use std::hint::black_box;
use std::path::PathBuf;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_harness::HarnessError;
use ugeom_harness::document::Document;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_harness::host::Host;
use ugeom_harness::observed::Observed;
use ugeom_harness::{self as harness, Case, Control, Meter, RunResult, Settings};
use ugeom_load::{LoadJob, Pattern, Range, case};
use ugeom_machine::clock;
use ugeom_measure::Histogram;
use ugeom_report::Page;
use ugeom_stack::Statistics;

/// The name of this measurement in documents.
pub const EXPERIMENT: &str = "load";

/// Recording a value in a histogram takes less than this, ns.
const RECORD_GOAL_NS: f64 = 3.0;

/// Requests a second are at least this many times fio's.
const TIMES_FIO_GOAL: f64 = 8.0;

/// Bytes of one request, as of fio's.
const BLOCK_BYTES: u32 = 512;

const VALUES: &str = "histogram/loop";
const RECORD: &str = "histogram/record";
const TIMED: &str = "load/timed";
const UNTIMED: &str = "load/untimed";
const FIO_TIMED: &str = "fio/latency";
const FIO_REDUCED: &str = "fio/gtod_reduce";

/// The budget, the seed, and fio where it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The time that it may take, ns: as many rounds as fit; none for ten rounds.
    pub budget_ns: Option<u64>,
    /// The seed of the order of cases; none for one of the clock.
    pub seed: Option<u64>,
    /// fio; without it only the cases that do not need it are measured.
    pub fio: Option<PathBuf>,
}

/// Measures, and computes the figures.
///
/// # Errors
/// [`HarnessError`] when the stack cannot be built, a request fails, or fio does.
pub fn run_goals(
    options: &LoadOptions,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document<()>, HarnessError> {
    let host = Host::now();
    let mut cases = vec![
        values(VALUES, |value| {
            black_box(value);
        }),
        recording(RECORD),
        sending(UNTIMED, false)?,
        sending(TIMED, true)?,
    ];
    if let Some(fio) = &options.fio {
        cases.push(null_engine(FIO_TIMED, fio, Account::Latency));
        cases.push(null_engine(FIO_REDUCED, fio, Account::Reduced));
    }
    let settings = Settings {
        seed: options.seed.unwrap_or(host.started_unix_s),
        budget_ns: options.budget_ns,
        ..match options.budget_ns {
            // As many rounds as the time allows.
            Some(_) => Settings::default(),
            None => Settings {
                rounds_max: harness::ROUNDS_MIN,
                ..Settings::default()
            },
        }
    };
    let measured = harness::run(&mut cases, &settings, meter, control)?;
    let mut document = Document::new(EXPERIMENT, host, settings, (), measured);
    document.figures = figures(&Observed::times(&document));
    Ok(document)
}

/// Goes through values as latencies have them, between 15 and 1,000 ns.
fn values(name: &str, mut each: impl FnMut(u64) + 'static) -> Case<'static> {
    let mut random = fastrand::Rng::with_seed(1);
    let values: Vec<u64> = (0..1024).map(|_| random.u64(15..1000)).collect();
    Case::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for value in values.iter().cycle().take(iterations as usize) {
            each(*value);
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    })
}

/// The same, each recorded.
fn recording(name: &str) -> Case<'static> {
    let mut histogram = Histogram::new();
    values(name, move |value| {
        histogram.record(value);
        black_box(&histogram);
    })
}

/// Reads the device that touches no data, one worker, one request at a time, statistics off.
fn sending(name: &str, latency: bool) -> Result<Case<'static>, HarnessError> {
    let mut options = TargetOptions::untasted();
    options.knobs.statistics = Statistics::Off;
    let target = open_target("zero:clear=0", &options);
    let target = target.map_err(HarnessError::subject)?;
    let range = Range {
        start_bytes: 0,
        blocks: (1 << 40) / u64::from(BLOCK_BYTES),
        block_bytes: BLOCK_BYTES,
        write_percent: 0,
    };
    let job = LoadJob {
        latency,
        ..LoadJob::new(name, Pattern::Sequential(range))
    };
    case(&target.stack, target.top, &job)
}

fn figures(times: &Observed) -> Vec<Figure> {
    let mut figures = Vec::new();
    let record = times.difference(VALUES, RECORD);
    let what = "recording a value in a histogram";
    let record = record.and_then(|it| Figure::judged("record", what, Unit::Ns, &it, 1));
    figures.extend(record.map(|figure| figure.with_goal(Goal::Under(RECORD_GOAL_NS))));
    for (ours, fio, id, what) in [
        (TIMED, FIO_TIMED, "timed", "every request timed"),
        (UNTIMED, FIO_REDUCED, "untimed", "no request timed"),
    ] {
        figures.extend(typical(times, id, ours, &format!("a request, {what}")));
        let (fio_id, fio_what) = (format!("fio.{id}"), format!("fio's null engine, {what}"));
        figures.extend(typical(times, &fio_id, fio, &fio_what));
        figures.extend(times.ratio(fio, ours).and_then(|ratio| {
            let (id, what) = (format!("times.{id}"), format!("times fio's rate, {what}"));
            let figure = Figure::typical(&id, &what, Unit::Times, &ratio)?;
            Some(figure.with_goal(Goal::AtLeast(TIMES_FIO_GOAL)))
        }));
    }
    figures
}

fn typical(times: &Observed, id: &str, case: &str, what: &str) -> Option<Figure> {
    Some(Figure::absolute(id, what, Unit::Ns, &times.typical(case)?))
}

/// The report: the machine, the times, and the targets.
pub fn goals_page(document: &Document<()>) -> Page {
    let mut page = Page::new(EXPERIMENT, "cargo bench -p ugeom-lab --bench load");
    let left_out = match document.figure("times.timed") {
        Some(_) => Vec::new(),
        None => vec!["fio: not found, or too few rounds".to_owned()],
    };
    page.head(document, &left_out);
    page.list(
        document
            .figures
            .iter()
            .filter(|figure| figure.goal.is_none())
            .map(|figure| format!("{}: {}", figure.what, figure.amount())),
    );
    page.goals(&document.figures);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten rounds in which a request takes 30 ns here and 300 ns in fio, give or take 1 %.
    fn times() -> Observed {
        let cases = [VALUES, RECORD, UNTIMED, TIMED, FIO_TIMED, FIO_REDUCED];
        let means = [1.0, 2.5, 20.0, 30.0, 300.0, 150.0];
        let cases: Vec<(String, f64)> = cases.into_iter().map(str::to_owned).zip(means).collect();
        let measured = crate::layers::fixture::measured(&cases, 10, 2);
        let host = Host::now();
        let document = Document::new(EXPERIMENT, host, Settings::default(), (), measured);
        Observed::times(&document)
    }

    #[test]
    fn the_ratios_are_those_of_the_rates_and_judged() {
        let figures = figures(&times());
        let figure = |id: &str| figures.iter().find(|figure| figure.id == id).unwrap();
        let near = |id: &str, truth: f64| {
            let interval = figure(id).interval;
            assert!(
                interval.low * 0.98 <= truth && truth <= interval.high * 1.02,
                "{interval}"
            );
        };
        near("times.timed", 10.0);
        near("times.untimed", 7.5);
        let word = |id: &str| figure(id).reached().unwrap().word();
        assert_eq!(word("times.timed"), "reached");
        assert_eq!(word("times.untimed"), "not met");
        assert_eq!(word("record"), "reached");
    }

    #[test]
    fn without_fio_the_rest_is_measured() {
        let mut control = Control::silent();
        let options = LoadOptions {
            budget_ns: Some(1),
            ..LoadOptions::default()
        };
        let document = run_goals(&options, &harness::Machine, &mut control).unwrap();
        let text = goals_page(&document).to_text(1000);
        ugeom_testkit::has(&text, "left out: fio");
        ugeom_testkit::has(&text, "recording a value in a histogram");
        assert!(document.figure("untimed").is_some());
    }
}
