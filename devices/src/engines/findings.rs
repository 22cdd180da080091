//! The figures: each method against libaio at each depth, each scheduler against the one that was
//! set, the cost of an engine, and the cost of making any call asynchronous.

use super::cases::{again, job_name};
use super::cost::{self, CACHED, CALLS, INLINE};
use super::methods::Method;
use super::subject::Document;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::Center;

/// How far two engines may lie apart and still agree, as a share: what the measurement of 2007
/// fluctuated by.
pub(super) const AGREE: f64 = 0.1;

/// The targets of calls through GUASI, ns: the call, the queue depth, and the limit.
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
        let libaio = job_name(Method::Libaio.name(), depth, None);
        times.noise(&libaio, &again(depth))
    });
    let mut figures = Vec::new();
    for &depth in &subject.depths {
        let others = Method::ALL
            .iter()
            .filter(|method| **method != Method::Libaio);
        let pairs = others.filter_map(|method| against_libaio(&times, *method, depth));
        figures.extend(family(pairs.collect()).into_iter().map(with_goal));
    }
    for scheduler in subject.schedulers.iter().skip(1) {
        for &depth in &subject.depths {
            let pairs = Method::ALL
                .iter()
                .filter_map(|method| with(&times, *method, depth, scheduler));
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

/// A comparison before it is judged: its id, its name, and the observations.
type Pair = (String, String, Center);

/// The methods of a depth are judged together.
fn family(pairs: Vec<Pair>) -> Vec<Figure> {
    let count = pairs.len();
    let figures = pairs
        .iter()
        .filter_map(|(id, what, ratio)| Figure::judged(id, what, Unit::Times, ratio, count));
    figures.collect()
}

/// How many times libaio's IOPS a method makes.
fn against_libaio(times: &Observed, method: Method, depth: u32) -> Option<Pair> {
    let name = method.name();
    // Rates are the inverse of times, so that the time of libaio is the numerator.
    let libaio = job_name(Method::Libaio.name(), depth, None);
    let ratio = times.ratio(&libaio, &job_name(name, depth, None))?;
    let what = format!("{name} {depth}: IOPS to libaio's");
    Some((format!("iops.{name}.{depth}"), what, ratio))
}

fn with_goal(figure: Figure) -> Figure {
    let method = Method::ALL
        .iter()
        .find(|method| figure.id.starts_with(&format!("iops.{}.", method.name())));
    match method.and_then(|method| method.goal()) {
        Some(least) => figure.with_goal(Goal::AtLeast(least)),
        None => figure,
    }
}

/// How many times the IOPS there are with another scheduler.
fn with(times: &Observed, method: Method, depth: u32, scheduler: &str) -> Option<Pair> {
    let name = method.name();
    let before = job_name(name, depth, None);
    let ratio = times.ratio(&before, &job_name(name, depth, Some(scheduler)))?;
    let id = format!("scheduler.{scheduler}.{name}.{depth}");
    Some((id, format!("{name} {depth}: IOPS with {scheduler}"), ratio))
}

/// The id of the figure of a case of costs.
pub(super) fn cost_id(call: &str, method: &str, depth: u32) -> String {
    match method {
        INLINE => format!("{call}.{method}"),
        _ => format!("{call}.{method}.{depth}"),
    }
}

/// The description of a case of costs.
pub(super) fn described(call: &str) -> &'static str {
    let known = CALLS.iter().find(|known| known.name == call);
    known.map_or("a cached 4 KiB read", |known| known.what)
}

fn cost_of(times: &Observed, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured {
        call,
        method,
        depth,
    } = one;
    let id = cost_id(call, method, *depth);
    let what = match method.as_str() {
        INLINE => format!("inline: {}", described(call)),
        method => format!("{method} {depth}: {}", described(call)),
    };
    let figure = typical(times, &id, &what, &one.case())?;
    let is_guasi = method == Method::Workers.name();
    let goal = GOALS
        .iter()
        .find(|goal| (goal.0, goal.1) == (*call, *depth));
    Some(match goal {
        Some((.., limit)) if is_guasi => figure.with_goal(Goal::Under(*limit)),
        _ => figure,
    })
}

/// How many times the rate of inline calls a method makes.
fn against_inline(times: &Observed, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured {
        call,
        method,
        depth,
    } = one;
    if method == INLINE {
        return None;
    }
    let ratio = times.ratio(&cost::name(call, INLINE, *depth), &one.case())?;
    let id = format!("any.{call}.{method}.{depth}");
    let what = format!(
        "{} through {method}, queue depth {depth}: speed-up over inline",
        described(call)
    );
    Figure::typical(&id, &what, Unit::Times, &ratio)
}

fn typical(times: &Observed, id: &str, what: &str, case: &str) -> Option<Figure> {
    Some(Figure::absolute(id, what, Unit::Ns, &times.typical(case)?))
}
