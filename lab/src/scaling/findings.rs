//! From the samples of an experiment about scaling to its judgement and its figures.
//!
//! A step is one row of cells against another with as many workers: the ratio of the rates within
//! rounds, judged three ways. As the seed did: ministat over as many runs as it had, and over all;
//! and by this program's rules: paired within rounds, and Holm's correction over all steps.

use super::knobs::{FINAL, Knob};
use super::published::{RUNS, ministat};
use super::subject::{
    AGAIN, APART, Document, FILLED, MIXED, STACK_EACH, Subject, TIMED, cell_name,
};
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_measure::holm::holm;
use ugeom_measure::interval::student_of;
use ugeom_measure::ministat::Difference;
use ugeom_measure::{Blocks, Interval, Noise};

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// With all knobs on, one worker does more requests a second than this.
const RATE_GOAL: f64 = 20e6;

/// As many workers as cores do at least this share of that many times one worker's rate; and on one
/// stack at least this share of what they do with a stack each.
const SCALING_GOAL: f64 = 0.95;

/// Which rows are compared.
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
    /// Which rows.
    pub against: Against,
    /// The id of the row that is judged.
    pub row: String,
    /// How many workers.
    pub workers: u64,
    /// Its rate as a multiple of the other's, of a typical round.
    pub ratio: Interval,
    /// The probability of a ratio at least this far from 1 if the truth were 1.
    pub p_value: f64,
    /// Whether it is proven, all steps taken together.
    pub proven: bool,
    /// ministat, with as many runs as were published.
    pub few: Option<Difference>,
    /// ministat, with all rounds.
    pub all: Option<Difference>,
}

/// All steps of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Judgement {
    /// The step of that row.
    #[must_use]
    pub fn step(&self, against: Against, row: &str, workers: u64) -> Option<&Step> {
        let is =
            |step: &&Step| step.against == against && step.row == row && step.workers == workers;
        self.steps.iter().find(is)
    }
}

/// Requests a second of every cell, a row a round.
pub(super) fn rates(document: &Document) -> Blocks {
    let times = document.blocks();
    let mut rates = Blocks::new(times.cells().iter().cloned());
    for round in times.rounds() {
        let row = round
            .iter()
            .map(|ns| 1e9 / ns.max(f64::MIN_POSITIVE))
            .collect();
        // Of as many finite numbers as there are cells, so that this cannot be refused.
        let _ = rates.push_round(row);
    }
    rates
}

/// The rate of a cell, and its interval.
pub(super) fn rate(rates: &Blocks, id: &str, workers: u64) -> Option<Interval> {
    let cell = rates.position(&cell_name(id, workers))?;
    let values = rates.values(cell).ok()?;
    student_of(&values, CONFIDENCE)
        .ok()
        .map(|effect| effect.interval)
}

/// Judges all steps of an experiment.
#[must_use]
pub fn judge(document: &Document) -> Judgement {
    let rates = rates(document);
    let subject = &document.subject;
    let mut steps = Vec::new();
    let mut add = |against, base: &Knob, changed: &Knob, workers: u64| {
        steps.extend(compare(&rates, against, (&base.id, &changed.id), workers));
    };
    for workers in &subject.workers {
        for pair in subject.ladder.windows(2) {
            add(Against::Before, &pair[0], &pair[1], *workers);
        }
        if let Some((first, others)) = subject.ladder.split_first() {
            for changed in others {
                add(Against::First, first, changed, *workers);
            }
        }
        for (parked, spinning) in subject.ladder.iter().zip(&subject.spinning) {
            add(Against::Parked, parked, spinning, *workers);
        }
        if let Some(last) = subject.ladder.last() {
            for away in &subject.taken_away {
                add(Against::Last, last, away, *workers);
            }
        }
    }
    let p_values: Vec<f64> = steps.iter().map(|step| step.p_value).collect();
    if let Ok(tested) = holm(&p_values, 1.0 - CONFIDENCE) {
        for (step, tested) in steps.iter_mut().zip(tested) {
            step.proven = tested.proven;
        }
    }
    Judgement { steps }
}

fn compare(
    rates: &Blocks,
    against: Against,
    (base, changed): (&str, &str),
    workers: u64,
) -> Option<Step> {
    let row = changed.to_owned();
    let base = rates.position(&cell_name(base, workers))?;
    let changed = rates.position(&cell_name(changed, workers))?;
    let ratio = rates.typical_ratio(base, changed, CONFIDENCE).ok()?;
    let (before, after) = (rates.values(base).ok()?, rates.values(changed).ok()?);
    let first = |values: &[f64]| values.iter().copied().take(RUNS).collect::<Vec<f64>>();
    Some(Step {
        against,
        row,
        workers,
        ratio: ratio.interval,
        p_value: ratio.p_value,
        proven: false,
        few: ministat(&first(&before), &first(&after)),
        all: ministat(&before, &after),
    })
}

/// Computes all figures of a document from its samples, and puts them in.
pub fn compute(document: &mut Document) {
    let rates = rates(document);
    let mut figures = goals(&rates, &document.subject);
    figures.extend(why_not_linear(document, &rates));
    figures.extend(cell_rates(&rates));
    let judgement = judge(document);
    figures.extend(judgement.steps.iter().map(step_figure));
    document.noise = noise(&rates, document.subject.cores);
    document.figures = figures;
}

fn goals(rates: &Blocks, subject: &Subject) -> Vec<Figure> {
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
fn of_linear(rates: &Blocks, id: &str, cores: u64) -> Option<Interval> {
    share_of_linear(rates, id, id, cores)
}

/// The cell `all` with as many workers as cores against the cell `one` with one.
fn share_of_linear(rates: &Blocks, one: &str, all: &str, cores: u64) -> Option<Interval> {
    if cores < 2 {
        return None;
    }
    let one = rates.position(&cell_name(one, 1))?;
    let all = rates.position(&cell_name(all, cores))?;
    let ratio = rates.typical_ratio(one, all, CONFIDENCE).ok()?;
    Some(ratio.interval.scaled(1.0 / cores as f64))
}

/// Where a share of linear is lost: to the machine, when threads that compute and share nothing
/// lose as much: those with one chain where a processor is not always there, those that fill their
/// core where it is not a whole core; to waiting, when a request takes no more processor time with
/// many workers; to what the code asks of the machine, when workers with a stack each lose as much;
/// or to the stack that the workers share. The last is this program's own, and has a goal.
fn why_not_linear(document: &Document, rates: &Blocks) -> Vec<Figure> {
    let cores = document.subject.cores;
    let machine = of_linear(rates, APART, cores).map(|interval| {
        let what = format!("the same of {cores} threads that share nothing");
        Figure::plain("scaling.machine", &what, Unit::Times, interval)
    });
    let filled = of_linear(rates, FILLED, cores).map(|interval| {
        let what = format!("the same of {cores} threads that share nothing and fill their core");
        Figure::plain("scaling.filled", &what, Unit::Times, interval)
    });
    let cpu = document.cpu_blocks(|cpu| cpu.process_ns);
    let position = |workers| cpu.position(&cell_name(FINAL, workers));
    let by_cpu = position(1).zip(position(cores)).filter(|_| cores > 1);
    let by_cpu = by_cpu.and_then(|(one, all)| {
        // How much less of it a request takes with one worker.
        let ratio = cpu.typical_ratio(all, one, CONFIDENCE).ok()?;
        let what = format!("the same of {cores} workers by their processor time");
        Some(Figure::plain(
            "scaling.cpu",
            &what,
            Unit::Times,
            ratio.interval,
        ))
    });
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
fn beside_apart(rates: &Blocks, cores: u64) -> Option<Interval> {
    let apart = rates.position(&cell_name(STACK_EACH, cores))?;
    let shared = rates.position(&cell_name(FINAL, cores))?;
    let ratio = rates.typical_ratio(apart, shared, CONFIDENCE).ok()?;
    Some(ratio.interval)
}

fn cell_rates(rates: &Blocks) -> Vec<Figure> {
    let figure = |(cell, name): (usize, &String)| {
        let values = rates.values(cell).ok()?;
        let interval = student_of(&values, CONFIDENCE).ok()?.interval;
        let what = format!("requests a second, {name} workers");
        Some(Figure::plain(
            &format!("rate.{name}"),
            &what,
            Unit::PerSecond,
            interval,
        ))
    };
    rates
        .cells()
        .iter()
        .enumerate()
        .filter_map(figure)
        .collect()
}

fn step_figure(step: &Step) -> Figure {
    let kind = step.against.id();
    let id = format!("{kind}.{}", cell_name(&step.row, step.workers));
    let against = match step.against {
        Against::Before => "the row before",
        Against::First => "the first row",
        Against::Parked => "the row that parks",
        Against::Last => "all knobs on",
    };
    let what = format!("{} against {against}, {} workers", step.row, step.workers);
    Figure {
        p_value: Some(step.p_value),
        proven: Some(step.proven),
        ..Figure::plain(&id, &what, Unit::Times, step.ratio)
    }
}

fn noise(rates: &Blocks, cores: u64) -> Option<Noise> {
    let values = |id: &str| rates.values(rates.position(&cell_name(id, cores))?).ok();
    Noise::of(&values(FINAL)?, &values(AGAIN)?, CONFIDENCE).ok()
}
