//! From the samples of an experiment about scaling to its judgement and its figures.
//!
//! A step is one row of cases against another with as many workers: the ratio of the rates within
//! rounds, judged three ways. As the seed did: ministat over as many runs as it had, and over all;
//! and by this program's rules: processes as observations, and a family for each question and
//! number of workers.

use super::knobs::{FINAL, Knob};
use super::published::{RUNS, ministat};
use super::subject::{
    AGAIN, APART, Document, FILLED, MIXED, STACK_EACH, Subject, TIMED, case_name,
};
use ugeom_harness::figure::{CONFIDENCE, Figure, Goal, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::ministat::Difference;
use ugeom_measure::{Center, Interval, Noise};
use ugeom_report::Seen;

/// With all knobs on, one worker does more requests a second than this.
const RATE_GOAL: f64 = 20e6;

/// As many workers as cores do at least this share of that many times one worker's rate; and on one
/// stack at least this share of what they do with a stack each.
const SCALING_GOAL: f64 = 0.95;

/// The rows that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// A rung of the ladder against the one before.
    Before,
    /// A rung of the ladder against the first.
    First,
    /// A queued row that spins against the one that parks.
    Parked,
    /// The last rung with one knob taken away against the last rung.
    Last,
}

impl Against {
    fn id(self) -> &'static str {
        match self {
            Self::Before => "step",
            Self::First => "sum",
            Self::Parked => "spin",
            Self::Last => "away",
        }
    }
}

/// One row against another with as many workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The row that it is compared with.
    pub against: Against,
    /// The id of the row that is judged.
    pub row: String,
    /// Workers that made requests at the same time.
    pub workers: u64,
    /// Its rate as a multiple of the other's, of a typical round.
    pub ratio: Interval,
    /// The figure: its interval is that of all steps of its family together.
    pub figure: Figure,
    /// Whether it is significant, all steps of its family taken together.
    pub significant: bool,
    /// ministat, with as many runs as were published.
    pub few: Option<Difference>,
    /// ministat, with all rounds.
    pub all: Option<Difference>,
}

/// All steps of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The steps of all families, in the order of the rows.
    pub steps: Vec<Step>,
}

impl Judgement {
    /// The step of that row.
    pub fn step(&self, against: Against, row: &str, workers: u64) -> Option<&Step> {
        let is =
            |step: &&Step| step.against == against && step.row == row && step.workers == workers;
        self.steps.iter().find(is)
    }
}

/// Requests a second of every case.
pub(super) fn rates(document: &Document) -> Observed {
    Observed::of(document, |sample| {
        Some(1e9 / sample.ns_per_iteration().max(f64::MIN_POSITIVE))
    })
}

/// The rate of a case, and its spread.
pub(super) fn rate(rates: &Observed, id: &str, workers: u64) -> Option<Interval> {
    Some(rates.typical(&case_name(id, workers))?.interval())
}

/// The same with its observations.
pub(super) fn seen(rates: &Observed, id: &str, workers: u64) -> Option<Seen> {
    Some(Seen::from(&rates.typical(&case_name(id, workers))?))
}

/// Judges all steps of an experiment: the steps of a kind with as many workers are a family.
pub fn judge(document: &Document) -> Judgement {
    let rates = rates(document);
    let subject = &document.subject;
    let mut steps = Vec::new();
    for workers in &subject.workers {
        let ladder = &subject.ladder;
        let before = ladder.windows(2).map(|pair| (&pair[0], &pair[1]));
        let first = ladder.first();
        let first = first.into_iter().flat_map(|first| {
            let others = ladder.iter().skip(1);
            others.map(move |changed| (first, changed))
        });
        let parked = ladder.iter().zip(&subject.spinning);
        let last = ladder.last().into_iter();
        let last = last.flat_map(|last| subject.taken_away.iter().map(move |away| (last, away)));
        let mut family = |against: Against, pairs: Vec<(&Knob, &Knob)>| {
            let known = |one: &&(&Knob, &Knob)| is_measured(&rates, one, *workers);
            let count = pairs.iter().filter(known).count();
            steps.extend(pairs.iter().filter_map(|(base, changed)| {
                compare(&rates, against, (&base.id, &changed.id), *workers, count)
            }));
        };
        family(Against::Before, before.collect());
        family(Against::First, first.collect());
        family(Against::Parked, parked.collect());
        family(Against::Last, last.collect());
    }
    Judgement { steps }
}

fn is_measured(rates: &Observed, (base, changed): &(&Knob, &Knob), workers: u64) -> bool {
    let known = |knob: &Knob| rates.position(&case_name(&knob.id, workers)).is_some();
    known(base) && known(changed)
}

fn compare(
    rates: &Observed,
    against: Against,
    (base, changed): (&str, &str),
    workers: u64,
    family: usize,
) -> Option<Step> {
    let row = changed.to_owned();
    let (base, changed) = (case_name(base, workers), case_name(changed, workers));
    let ratio = rates.ratio(&changed, &base)?;
    let figure = step_figure(against, &row, workers, (&ratio, family))?;
    let values = |name: &str| Some(rates.values(&[rates.position(name)?], |one| Some(one[0])));
    let (before, after) = (values(&base)?, values(&changed)?);
    let first = |values: &[f64]| values.iter().copied().take(RUNS).collect::<Vec<f64>>();
    Some(Step {
        against,
        row,
        workers,
        ratio: figure.interval,
        significant: figure.significant == Some(true),
        figure,
        few: ministat(&first(&before), &first(&after)),
        all: ministat(&before, &after),
    })
}

/// Computes all figures of a document from its samples, and puts them in.
pub fn compute(document: &mut Document) {
    let rates = rates(document);
    let mut figures = goals(&rates, &document.subject);
    figures.extend(why_not_linear(document, &rates));
    figures.extend(case_rates(&rates));
    let judgement = judge(document);
    figures.extend(judgement.steps.into_iter().map(|step| step.figure));
    document.noise = noise(&rates, document.subject.cores);
    document.figures = figures;
}

fn goals(rates: &Observed, subject: &Subject) -> Vec<Figure> {
    let mut figures = Vec::new();
    let one = rate(rates, FINAL, 1);
    figures.extend(one.map(|interval| {
        let what = "one worker, all knobs on";
        Figure::plain("one", what, Unit::PerSecond, interval).with_goal(Goal::AtLeast(RATE_GOAL))
    }));
    let mixed = rate(rates, MIXED, 1);
    figures.extend(mixed.map(|interval| {
        let what = "one worker, half of it writes";
        Figure::plain("mixed", what, Unit::PerSecond, interval).with_goal(Goal::AtLeast(RATE_GOAL))
    }));
    let timed = rate(rates, TIMED, 1);
    figures.extend(timed.map(|interval| {
        let what = "one worker, every request timed";
        Figure::plain("timed", what, Unit::PerSecond, interval)
    }));
    figures.extend(of_linear(rates, FINAL, subject.cores).map(|interval| {
        let what = format!("{0} workers as a share of {0} times one", subject.cores);
        let figure = Figure::plain("scaling", &what, Unit::Times, interval);
        figure.with_goal(Goal::AtLeast(SCALING_GOAL))
    }));
    figures
}

/// As many workers as cores against one, as a share of linear.
fn of_linear(rates: &Observed, id: &str, cores: u64) -> Option<Interval> {
    share_of_linear(rates, id, id, cores)
}

/// The case `all` with as many workers as cores against the case `one` with one.
fn share_of_linear(rates: &Observed, one: &str, all: &str, cores: u64) -> Option<Interval> {
    if cores < 2 {
        return None;
    }
    let ratio = rates.ratio_of_threads(&case_name(all, cores), &case_name(one, 1))?;
    Some(ratio.interval().scaled(1.0 / cores as f64))
}

/// Where a share of linear is lost: to the machine, when threads that compute and share nothing
/// lose as much: those with one chain where a processor is not always there, those that fill their
/// core where it is not a whole core; to waiting, when a request takes no more processor time with
/// many workers; to what the code asks of the machine, when workers with a stack each lose as much;
/// or to the stack that the workers share. The last is this program's own, and has a goal.
fn why_not_linear(document: &Document, rates: &Observed) -> Vec<Figure> {
    let cores = document.subject.cores;
    let machine = of_linear(rates, APART, cores).map(|interval| {
        let what = format!("the same of {cores} threads that share nothing");
        Figure::plain("scaling.machine", &what, Unit::Times, interval)
    });
    let filled = of_linear(rates, FILLED, cores).map(|interval| {
        let what = format!("the same of {cores} threads that share nothing and fill their core");
        Figure::plain("scaling.filled", &what, Unit::Times, interval)
    });
    let cpu = Observed::of(document, |sample| {
        Some(sample.cpu.process_ns as f64 / sample.iterations.max(1) as f64)
    });
    let by_cpu = (cores > 1).then(|| {
        // How much less of it a request takes with one worker.
        let ratio = cpu.ratio_of_threads(&case_name(FINAL, 1), &case_name(FINAL, cores))?;
        let what = format!("the same of {cores} workers by their CPU time");
        Some(Figure::absolute("scaling.cpu", &what, Unit::Times, &ratio))
    });
    let by_cpu = by_cpu.flatten();
    let apart = share_of_linear(rates, FINAL, STACK_EACH, cores).map(|interval| {
        let what = format!("the same of {cores} workers with a stack each");
        Figure::plain("scaling.apart", &what, Unit::Times, interval)
    });
    let shared = beside_apart(rates, cores).map(|interval| {
        let what = format!("{cores} workers of one stack against {cores} with a stack each");
        let figure = Figure::plain("scaling.shared", &what, Unit::Times, interval);
        figure.with_goal(Goal::AtLeast(SCALING_GOAL))
    });
    [machine, filled, apart, shared, by_cpu]
        .into_iter()
        .flatten()
        .collect()
}

/// The rate of workers that share a stack, as a multiple of that with a stack each.
fn beside_apart(rates: &Observed, cores: u64) -> Option<Interval> {
    let shared = rates.ratio(&case_name(FINAL, cores), &case_name(STACK_EACH, cores))?;
    shared.at(CONFIDENCE).ok()
}

fn case_rates(rates: &Observed) -> Vec<Figure> {
    let figure = |name: &String| {
        let (id, what) = (format!("rate.{name}"), format!("IOPS, {name} workers"));
        let spread = rates.typical(name)?;
        Some(Figure::absolute(&id, &what, Unit::PerSecond, &spread))
    };
    rates.cases().iter().filter_map(figure).collect()
}

fn step_figure(
    against: Against,
    row: &str,
    workers: u64,
    (ratio, family): (&Center, usize),
) -> Option<Figure> {
    let id = format!("{}.{}", against.id(), case_name(row, workers));
    let base = match against {
        Against::Before => "the row before",
        Against::First => "the first row",
        Against::Parked => "the row that parks",
        Against::Last => "all knobs on",
    };
    let what = format!("{row} against {base}, {workers} workers");
    Figure::judged(&id, &what, Unit::Times, ratio, family)
}

fn noise(rates: &Observed, cores: u64) -> Option<Noise> {
    rates.noise(&case_name(FINAL, cores), &case_name(AGAIN, cores))
}
