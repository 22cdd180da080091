//! The figures: each way against libaio at each depth, each scheduler against the one that was set,
//! what an engine costs, and what it costs to make any call asynchronous.

use super::cases::{again, job_name};
use super::cost::{self, CACHED, CALLS, INLINE};
use super::subject::Document;
use super::ways::Way;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::Center;

/// How far two engines may lie apart and still agree, as a share: what the measurement of 2007
/// fluctuated by.
pub(super) const AGREE: f64 = 0.1;

/// What a call through GUASI is to take, ns: the call, how many at a time, and the limit.
const GOALS: [(&str, u32, f64); 3] = [
    ("noop", 1, 1000.0),
    ("noop", 100, 160.0),
    (CACHED, 100, 330.0),
];

/// Computes noise and figures of a document from its samples.
pub fn compute(document: &mut Document) {
    let times = Observed::times(document);
    let subject = &document.subject;
    document.noise = subject.depths.first().and_then(|&depth| {
        let libaio = job_name(Way::Libaio.name(), depth, None);
        times.noise(&libaio, &again(depth))
    });
    let mut figures = Vec::new();
    for &depth in &subject.depths {
        let others = Way::ALL.iter().filter(|way| **way != Way::Libaio);
        let pairs = others.filter_map(|way| against_libaio(&times, *way, depth));
        figures.extend(family(pairs.collect()).into_iter().map(with_goal));
    }
    for scheduler in subject.schedulers.iter().skip(1) {
        for &depth in &subject.depths {
            let pairs = Way::ALL
                .iter()
                .filter_map(|way| with(&times, *way, depth, scheduler));
            figures.extend(family(pairs.collect()));
        }
    }
    let measured = cost::all();
    figures.extend(measured.iter().filter_map(|one| cost_of(&times, one)));
    figures.extend(
        measured
            .iter()
            .filter_map(|one| against_inline(&times, one)),
    );
    let floors = [
        ("floor.loop", "an empty loop", "floor/loop"),
        ("floor.clock", "reading the clock", "floor/clock"),
    ];
    let floors = floors.map(|(id, what, case)| typical(&times, id, what, case));
    figures.extend(floors.into_iter().flatten());
    document.figures = figures;
}

/// A comparison before it is judged: its id, what it is, and the observations.
type Pair = (String, String, Center);

/// The ways of a depth are judged together.
fn family(pairs: Vec<Pair>) -> Vec<Figure> {
    let count = pairs.len();
    let figures = pairs
        .iter()
        .filter_map(|(id, what, ratio)| Figure::judged(id, what, Unit::Times, ratio, count));
    figures.collect()
}

/// How many times libaio's IOPS a way makes.
fn against_libaio(times: &Observed, way: Way, depth: u32) -> Option<Pair> {
    let name = way.name();
    // Rates are the inverse of times, so that the time of libaio is the numerator.
    let libaio = job_name(Way::Libaio.name(), depth, None);
    let ratio = times.ratio(&libaio, &job_name(name, depth, None))?;
    let what = format!("{name} {depth}: IOPS to libaio's");
    Some((format!("iops.{name}.{depth}"), what, ratio))
}

fn with_goal(figure: Figure) -> Figure {
    let way = Way::ALL
        .iter()
        .find(|way| figure.id.starts_with(&format!("iops.{}.", way.name())));
    match way.and_then(|way| way.goal()) {
        Some(least) => figure.with_goal(Goal::AtLeast(least)),
        None => figure,
    }
}

/// How many times the IOPS there are with another scheduler.
fn with(times: &Observed, way: Way, depth: u32, scheduler: &str) -> Option<Pair> {
    let name = way.name();
    let before = job_name(name, depth, None);
    let ratio = times.ratio(&before, &job_name(name, depth, Some(scheduler)))?;
    let id = format!("scheduler.{scheduler}.{name}.{depth}");
    Some((id, format!("{name} {depth}: IOPS with {scheduler}"), ratio))
}

/// The id of the figure of a case of costs.
pub(super) fn cost_id(call: &str, way: &str, depth: u32) -> String {
    match way {
        INLINE => format!("{call}.{way}"),
        _ => format!("{call}.{way}.{depth}"),
    }
}

/// What is done in a case of costs.
pub(super) fn described(call: &str) -> &'static str {
    let known = CALLS.iter().find(|known| known.name == call);
    known.map_or("a cached 4 KiB read", |known| known.what)
}

fn cost_of(times: &Observed, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured { call, way, depth } = one;
    let id = cost_id(call, way, *depth);
    let what = match way.as_str() {
        INLINE => format!("inline: {}", described(call)),
        way => format!("{way} {depth}: {}", described(call)),
    };
    let figure = typical(times, &id, &what, &one.case())?;
    let is_guasi = way == Way::Workers.name();
    let goal = GOALS
        .iter()
        .find(|goal| (goal.0, goal.1) == (*call, *depth));
    Some(match goal {
        Some((.., limit)) if is_guasi => figure.with_goal(Goal::Under(*limit)),
        _ => figure,
    })
}

/// How many times the rate of inline calls a way makes.
fn against_inline(times: &Observed, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured { call, way, depth } = one;
    if way == INLINE {
        return None;
    }
    let ratio = times.ratio(&cost::name(call, INLINE, *depth), &one.case())?;
    let id = format!("any.{call}.{way}.{depth}");
    let what = format!(
        "{} through {way}, queue depth {depth}: speed-up over inline",
        described(call)
    );
    Figure::typical(&id, &what, Unit::Times, &ratio)
}

fn typical(times: &Observed, id: &str, what: &str, case: &str) -> Option<Figure> {
    Figure::typical(id, what, Unit::Ns, &times.typical(case)?)
}
