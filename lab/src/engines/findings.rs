//! The figures: each way against libaio at each depth, each scheduler against the one that was set,
//! what an engine costs, and what it costs to make any call asynchronous.

use super::cells::{again, job_name};
use super::cost::{self, CACHED, CALLS, INLINE};
use super::subject::Document;
use super::ways::Way;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_measure::holm::holm;
use ugeom_measure::{Blocks, Error, Noise, Ratio};

const CONFIDENCE: f64 = 0.95;

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
    let blocks = document.blocks();
    let subject = &document.subject;
    document.noise = subject.depths.first().and_then(|&depth| {
        let values = |name: String| blocks.values(blocks.position(&name)?).ok();
        let libaio = job_name(Way::Libaio.name(), depth, None);
        let (first, second) = (values(libaio)?, values(again(depth))?);
        Noise::of(&first, &second, CONFIDENCE).ok()
    });
    let mut figures = Vec::new();
    for &depth in &subject.depths {
        let others = Way::ALL.iter().filter(|way| **way != Way::Libaio);
        figures.extend(others.filter_map(|way| against_libaio(&blocks, *way, depth)));
    }
    for scheduler in subject.schedulers.iter().skip(1) {
        for &depth in &subject.depths {
            let ways = Way::ALL.iter();
            figures.extend(ways.filter_map(|way| with(&blocks, *way, depth, scheduler)));
        }
    }
    judge(&mut figures);
    let measured = cost::all();
    figures.extend(measured.iter().filter_map(|one| cost_of(&blocks, one)));
    figures.extend(
        measured
            .iter()
            .filter_map(|one| against_inline(&blocks, one)),
    );
    let floors = [
        ("floor.loop", "an empty loop", "floor/loop"),
        ("floor.clock", "reading the clock", "floor/clock"),
    ];
    let floors = floors.map(|(id, what, cell)| mean(&blocks, id, what, cell));
    figures.extend(floors.into_iter().flatten());
    document.figures = figures;
}

/// How many times libaio's requests a second a way makes.
fn against_libaio(blocks: &Blocks, way: Way, depth: u32) -> Option<Figure> {
    let own = blocks.position(&job_name(way.name(), depth, None))?;
    let libaio = blocks.position(&job_name(Way::Libaio.name(), depth, None))?;
    // Rates are the inverse of times, so that the time of libaio is the one above.
    let ratio = blocks.typical_ratio(own, libaio, CONFIDENCE);
    let name = way.name();
    let id = format!("iops.{name}.{depth}");
    let what = format!("{name} {depth}: requests/s to libaio's");
    let figure = figure_of(&id, &what, ratio)?;
    Some(match way.goal() {
        Some(least) => figure.with_goal(Goal::AtLeast(least)),
        None => figure,
    })
}

/// How many times as many requests a second there are with another scheduler.
fn with(blocks: &Blocks, way: Way, depth: u32, scheduler: &str) -> Option<Figure> {
    let name = way.name();
    let own = blocks.position(&job_name(name, depth, Some(scheduler)))?;
    let before = blocks.position(&job_name(name, depth, None))?;
    let ratio = blocks.typical_ratio(own, before, CONFIDENCE);
    let id = format!("scheduler.{scheduler}.{name}.{depth}");
    let what = format!("{name} {depth}: requests/s with {scheduler}");
    figure_of(&id, &what, ratio)
}

fn figure_of(id: &str, what: &str, ratio: Result<Ratio, Error>) -> Option<Figure> {
    let ratio = ratio.ok()?;
    let figure = Figure::plain(id, what, Unit::Times, ratio.interval);
    Some(Figure {
        p_value: Some(ratio.p_value),
        ..figure
    })
}

/// Which differences are proven, all taken together.
fn judge(figures: &mut [Figure]) {
    let p_values: Vec<f64> = figures.iter().filter_map(|figure| figure.p_value).collect();
    let Ok(tested) = holm(&p_values, 1.0 - CONFIDENCE) else {
        return;
    };
    for (figure, tested) in figures.iter_mut().zip(tested) {
        figure.proven = Some(tested.proven);
    }
}

/// The id of the figure of a cell of costs.
pub(super) fn cost_id(call: &str, way: &str, depth: u32) -> String {
    match way {
        INLINE => format!("{call}.{way}"),
        _ => format!("{call}.{way}.{depth}"),
    }
}

/// What is done in a cell of costs.
pub(super) fn described(call: &str) -> &'static str {
    let known = CALLS.iter().find(|known| known.name == call);
    known.map_or("a cached 4 KiB read", |known| known.what)
}

fn cost_of(blocks: &Blocks, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured { call, way, depth } = one;
    let id = cost_id(call, way, *depth);
    let what = match way.as_str() {
        INLINE => format!("inline: {}", described(call)),
        way => format!("{way} {depth}: {}", described(call)),
    };
    let figure = mean(blocks, &id, &what, &one.cell())?;
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
fn against_inline(blocks: &Blocks, one: &cost::Measured) -> Option<Figure> {
    let cost::Measured { call, way, depth } = one;
    if way == INLINE {
        return None;
    }
    let own = blocks.position(&one.cell())?;
    let inline = blocks.position(&cost::name(call, INLINE, *depth))?;
    let ratio = blocks.typical_ratio(own, inline, CONFIDENCE);
    let id = format!("any.{call}.{way}.{depth}");
    let what = format!(
        "{} a second through {way}, {depth} at a time, to inline",
        described(call)
    );
    // That it is not the same is no finding.
    figure_of(&id, &what, ratio).map(|figure| Figure {
        p_value: None,
        ..figure
    })
}

fn mean(blocks: &Blocks, id: &str, what: &str, cell: &str) -> Option<Figure> {
    let mean = blocks.contrast(&[(blocks.position(cell)?, 1.0)], CONFIDENCE);
    // That a time is not zero is no finding.
    Some(Figure {
        p_value: None,
        ..Figure::of(id, what, Unit::Ns, mean)?
    })
}
