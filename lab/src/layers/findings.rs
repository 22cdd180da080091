//! From the samples of an experiment about layers to its figures.
//!
//! Costs are differences within rounds, costs a layer are slopes of lines through the cells of one
//! round; both with Student's interval over the rounds. A figure whose cells were not measured, or
//! not often enough, is not there.

use super::names;
use super::subject::{Disk, Document, Subject};
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_measure::holm::holm;
use ugeom_measure::interval::student_of;
use ugeom_measure::{Blocks, Effect, Error, Interval, Noise};

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Computes all figures of a document from its samples, and puts them in.
pub fn compute(document: &mut Document) {
    let table = Table {
        blocks: document.blocks(),
    };
    if let Some(Ok(disk)) = table.mean(names::DISK) {
        document.subject.disk = Disk::measured(disk.estimate());
    }
    let mut figures = differences(&table, &document.subject);
    correct(&mut figures);
    figures.extend(shares(&table, &document.subject, &figures));
    figures.extend(slopes(&table, &document.subject));
    figures.extend(means(&table));
    figures.extend(served(&table, &document.subject));
    figures.extend(processor(document));
    figures.extend(by_cpu(document));
    document.noise = noise(&table, document.subject.bottom());
    // What was found by other means than samples (bytes that were read) stays.
    let known = |old: &Figure| figures.iter().any(|new: &Figure| new.id == old.id);
    let kept: Vec<Figure> = document
        .figures
        .iter()
        .filter(|old| !known(old))
        .cloned()
        .collect();
    document.figures = figures.into_iter().chain(kept).collect();
}

/// The rounds, by the names of the cells.
struct Table {
    blocks: Blocks,
}

impl Table {
    fn difference(&self, base: &str, changed: &str) -> Option<Result<Effect, Error>> {
        self.contrast(&[(changed, 1.0), (base, -1.0)])
    }

    fn contrast(&self, weights: &[(&str, f64)]) -> Option<Result<Effect, Error>> {
        let place = |(name, weight): &(&str, f64)| Some((self.blocks.position(name)?, *weight));
        let weights: Option<Vec<(usize, f64)>> = weights.iter().map(place).collect();
        Some(self.blocks.contrast(&weights?, CONFIDENCE))
    }

    fn mean(&self, name: &str) -> Option<Result<Effect, Error>> {
        let cell = self.blocks.position(name)?;
        Some(
            self.blocks
                .values(cell)
                .and_then(|values| student_of(&values, CONFIDENCE)),
        )
    }

    /// How often `base` goes into `changed`, in a typical round.
    fn ratio(&self, base: &str, changed: &str) -> Option<Interval> {
        let (base, changed) = (self.blocks.position(base)?, self.blocks.position(changed)?);
        Some(
            self.blocks
                .typical_ratio(base, changed, CONFIDENCE)
                .ok()?
                .interval,
        )
    }

    /// The slope of a line through the cells that there are.
    fn slope(
        &self,
        name: impl Fn(usize) -> String,
        depths: &[u64],
    ) -> Option<Result<Effect, Error>> {
        let point = |depth: &u64| {
            let cell = self.blocks.position(&name(*depth as usize))?;
            Some((cell, *depth as f64))
        };
        let points: Vec<(usize, f64)> = depths.iter().filter_map(point).collect();
        if points.len() < 2 {
            return None;
        }
        let line = self.blocks.line(&points);
        Some(line.and_then(|line| line.slope_effect(CONFIDENCE)))
    }
}

/// One figure, if its cells are there.
fn figure(
    id: &str,
    what: &str,
    unit: Unit,
    effect: Option<Result<Effect, Error>>,
) -> Option<Figure> {
    Figure::of(id, what, unit, effect?)
}

fn differences(table: &Table, subject: &Subject) -> Vec<Figure> {
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let direct = names::direct;
    let step = |id: &str, what: &str, base: &str, changed: &str| {
        figure(id, what, Unit::Ns, table.difference(base, changed))
    };
    let plain = names::plain(bottom);
    let mut out = vec![
        step("geom.cost", "GEOM itself", &plain, &direct(bottom)),
        step(
            "control",
            "the control: /dev/zero",
            names::ZERO,
            names::ZERO_AGAIN,
        ),
        step(
            "statistics.counts",
            "counting, on the deepest provider",
            names::STATISTICS_OFF,
            &direct(deepest),
        ),
        step(
            "statistics.time",
            "counting and sampled times, on the deepest provider",
            names::STATISTICS_OFF,
            names::STATISTICS_TIME,
        ),
        step(
            "queued.cost",
            "queued dispatch instead of direct",
            &direct(bottom),
            &names::queued(bottom),
        ),
    ];
    for pair in subject.chain.windows(2) {
        let [below, above] = pair else { continue };
        let (id, what) = (
            format!("layer.{}", above.provider),
            format!("one more layer: {}", above.class.to_lowercase()),
        );
        out.push(step(
            &id,
            &what,
            &direct(&below.provider),
            &direct(&above.provider),
        ));
    }
    for link in subject.chain.iter().skip(1).filter(|link| link.plain) {
        let what = format!("without GEOM, {} against {bottom}", link.provider);
        let id = format!("plain.{}", link.provider);
        out.push(step(&id, &what, &plain, &names::plain(&link.provider)));
    }
    // With one provider alone there are no layers whose cost could change.
    let sizes = subject
        .sizes_bytes
        .iter()
        .filter(|_| subject.chain.len() > 1);
    for size in sizes {
        out.push(size_matters(table, subject, *size));
    }
    out.into_iter().flatten().collect()
}

/// By how much the cost of all layers differs between this size and the usual one.
fn size_matters(table: &Table, subject: &Subject, size_bytes: u64) -> Option<Figure> {
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let (large_top, large_bottom) = (
        names::sized(deepest, size_bytes),
        names::sized(bottom, size_bytes),
    );
    let (top, base) = (names::direct(deepest), names::direct(bottom));
    let effect = table.contrast(&[
        (&large_top, 1.0),
        (&large_bottom, -1.0),
        (&top, -1.0),
        (&base, 1.0),
    ]);
    let what = format!(
        "the layers' cost at {} against {}",
        ugeom_measure::units::size_human(size_bytes),
        ugeom_measure::units::size_human(subject.read_bytes)
    );
    figure(&format!("size.{size_bytes}"), &what, Unit::Ns, effect)
}

/// Says which differences are proven, all of them taken together.
fn correct(figures: &mut [Figure]) {
    let p_values: Vec<f64> = figures.iter().filter_map(|figure| figure.p_value).collect();
    let Ok(tested) = holm(&p_values, 1.0 - CONFIDENCE) else {
        return;
    };
    let tested_figures = figures.iter_mut().filter(|figure| figure.p_value.is_some());
    for (figure, tested) in tested_figures.zip(tested) {
        figure.proven = Some(tested.proven);
    }
}

/// Costs as shares of the memory disk's time and of a real disk's.
fn shares(table: &Table, subject: &Subject, figures: &[Figure]) -> Vec<Figure> {
    let bottom = subject.bottom();
    let mut out = Vec::new();
    if let Some(ratio) = table.ratio(&names::plain(bottom), &names::direct(bottom)) {
        let percent = percent_more(&ratio);
        let what = "GEOM itself, of the time without it";
        out.push(Figure::plain("geom.share", what, Unit::Percent, percent));
    }
    let of_disk = |interval: &Interval| interval.scaled(100.0 / subject.disk.read_ns);
    let cost = figures.iter().find(|figure| figure.id == "geom.cost");
    if let Some(cost) = cost {
        let what = "GEOM itself, of a real disk's time";
        let share = of_disk(&cost.interval);
        out.push(Figure::plain("geom.share.disk", what, Unit::Percent, share));
    }
    let Some(mean) = mean_layer(table, subject) else {
        return out;
    };
    if let Some(Ok(whole)) = table.mean(&names::direct(bottom)) {
        let what = "one layer, of the time of the disk below";
        let share = mean.interval.scaled(100.0 / whole.estimate());
        out.push(Figure::plain("layer.share", what, Unit::Percent, share));
    }
    let what = "one layer, of a real disk's time";
    let share = of_disk(&mean.interval);
    out.push(Figure::plain(
        "layer.share.disk",
        what,
        Unit::Percent,
        share,
    ));
    out.push(mean);
    out
}

/// What a layer of the chain costs on average.
fn mean_layer(table: &Table, subject: &Subject) -> Option<Figure> {
    let layers = subject.chain.len().saturating_sub(1) as f64;
    if layers < 1.0 {
        return None;
    }
    let (top, base) = (
        names::direct(subject.deepest()),
        names::direct(subject.bottom()),
    );
    let mean = table.contrast(&[(&top, 1.0 / layers), (&base, -1.0 / layers)]);
    figure(
        "layer.mean",
        "one layer, on average",
        Unit::NsPerLayer,
        mean,
    )
}

/// A ratio as per cent more.
fn percent_more(ratio: &Interval) -> Interval {
    let percent = |value: f64| (value - 1.0) * 100.0;
    Interval {
        estimate: percent(ratio.estimate),
        low: percent(ratio.low),
        high: percent(ratio.high),
        confidence: ratio.confidence,
    }
}

/// Piles of layers: the name of the pile, of its statistics, what it is, and its goal in ns.
const PILES: [(&str, &str, &str, Option<f64>); 10] = [
    (
        "slicers",
        "off",
        "one more slicer, direct, statistics off",
        Some(2.0),
    ),
    ("slicers", "counts", "one more slicer, counts on", Some(4.0)),
    (
        "hooks",
        "off",
        "one more layer with a completion hook",
        Some(6.0),
    ),
    (
        "passed",
        "counts",
        "one more slicer in a run that the stack passes, counts on",
        None,
    ),
    (
        "passed",
        "off",
        "one more slicer in a run that the stack passes, statistics off",
        None,
    ),
    ("nops", "off", "one more nop, statistics off", None),
    (
        "slicers",
        "time",
        "one more slicer, counts and sampled times",
        None,
    ),
    ("nops", "counts", "one more nop, counts on", None),
    (
        "nops",
        "time",
        "one more nop, counts and sampled times",
        None,
    ),
    (
        "hooks",
        "counts",
        "one more layer with a completion hook, counts on",
        None,
    ),
];

fn slopes(table: &Table, subject: &Subject) -> Vec<Figure> {
    let mut out = Vec::new();
    for (kind, level, what, goal_ns) in PILES {
        let name = |depth: usize| names::pile(kind, level, depth);
        let slope = table.slope(name, &subject.depths);
        let id = format!("slope.{kind}.{level}");
        if let Some(figure) = figure(&id, what, Unit::NsPerLayer, slope) {
            out.push(match goal_ns {
                Some(limit) => figure.with_goal(Goal::Under(limit)),
                None => figure,
            });
        }
    }
    let calls = table.slope(names::calls, &subject.depths);
    out.extend(figure(
        "floor.calls",
        "a bare indirect call",
        Unit::NsPerLayer,
        calls,
    ));
    out
}

fn means(table: &Table) -> Vec<Figure> {
    let mean = |id: &str, what: &str, name: &str| figure(id, what, Unit::Ns, table.mean(name));
    let mut out: Vec<Figure> = [
        mean("floor.loop", "the empty loop", names::LOOP),
        mean("floor.clock", "reading the clock", names::CLOCK),
        mean("floor.ticks", "reading the processor's ticks", names::TICKS),
    ]
    .into_iter()
    .flatten()
    .collect();
    let read = mean(
        "null.read",
        "complete 512-byte read of zero:clear=0",
        names::NULL_ONE,
    );
    out.extend(read.map(|figure| figure.with_goal(Goal::Under(20.0))));
    if let Some(ratio) = table.ratio(names::NULL_TWO, names::NULL_ONE) {
        let what = "two threads against one on zero:clear=0";
        let figure = Figure::plain("null.scaling", what, Unit::Times, ratio);
        out.push(figure.with_goal(Goal::AtLeast(1.9)));
    }
    let delay = mean(
        "delay.all",
        "1,000 at once through nop:delay=1ms",
        names::DELAY,
    );
    // "About 1 ms in all": a fifth more is still about it.
    out.extend(delay.map(|figure| figure.with_goal(Goal::Under(1_200_000.0))));
    let what = "listing a 1 TiB image, 128 partitions";
    let show = mean("show.time", what, names::SHOW);
    out.extend(show.map(|figure| figure.with_goal(Goal::Under(50_000_000.0))));
    out
}

/// A read through each server, and how much of it the stack itself is.
fn served(table: &Table, subject: &Subject) -> Vec<Figure> {
    let deepest = subject.deepest();
    let mut out = Vec::new();
    for way in &subject.through {
        let cell = names::through(way, deepest);
        let what = format!("a read of {deepest} through {way}");
        out.extend(figure(
            &format!("through.{way}"),
            &what,
            Unit::Ns,
            table.mean(&cell),
        ));
        if let Some(ratio) = table.ratio(&cell, &names::direct(deepest)) {
            let what = format!("the stack itself, of a read through {way}");
            let share = ratio.scaled(100.0);
            let id = format!("through.{way}.stack");
            out.push(Figure::plain(&id, &what, Unit::Percent, share));
        }
    }
    out
}

/// CPU time a request, with direct and with queued dispatch: of the caller's thread, of helper
/// threads, of the whole machine.
fn processor(document: &Document) -> Vec<Figure> {
    let bottom = document.subject.bottom();
    let mut out = Vec::new();
    let caller = Table {
        blocks: document.cpu_blocks(|cpu| cpu.thread_ns),
    };
    let helpers = Table {
        blocks: document.cpu_blocks(|cpu| cpu.helpers_ns()),
    };
    let machine = Table {
        blocks: document.cpu_blocks(|cpu| cpu.machine_ns),
    };
    for (dispatch, cell) in [
        ("direct", names::direct(bottom)),
        ("queued", names::queued(bottom)),
    ] {
        for (who, what, table) in [
            ("caller", "CPU time of the caller's thread", &caller),
            ("helpers", "CPU time of helper threads", &helpers),
            ("machine", "CPU time of the whole machine", &machine),
        ] {
            let id = format!("cpu.{dispatch}.{who}");
            let what = format!("{what}, {dispatch}");
            out.extend(figure(&id, &what, Unit::Ns, table.mean(&cell)));
        }
        let wall = Table {
            blocks: document.blocks(),
        };
        let (id, what) = (format!("wall.{dispatch}"), format!("wall time, {dispatch}"));
        out.extend(figure(&id, &what, Unit::Ns, wall.mean(&cell)));
    }
    let wall = Table {
        blocks: document.blocks(),
    };
    let deepest = document.subject.deepest();
    let ratio = wall.ratio(&names::queued_two(deepest), &names::queued(deepest));
    if let Some(ratio) = ratio {
        let what = "two threads against one, queued";
        out.push(Figure::plain("queued.scaling", what, Unit::Times, ratio));
    }
    out
}

/// The main costs once more, by the CPU time of the reading thread instead of the time that passed:
/// what other work takes away does not count there.
fn by_cpu(document: &Document) -> Vec<Figure> {
    let table = Table {
        blocks: document.cpu_blocks(|cpu| cpu.thread_ns),
    };
    let subject = &document.subject;
    let mut figures = differences(&table, subject);
    figures.retain(|figure| figure.id == "geom.cost");
    figures.extend(mean_layer(&table, subject));
    figures.extend(slopes(&table, subject));
    figures.extend(
        means(&table)
            .into_iter()
            .filter(|figure| figure.id == "null.read"),
    );
    figures.extend(scaling_by_cpu(document));
    for figure in &mut figures {
        figure.id = format!("by_cpu.{}", figure.id);
        figure.what = format!("{}, by CPU time", figure.what);
        figure.goal = None;
    }
    figures
}

/// What two threads could read if each had a core for itself: their CPU time for a read is spent
/// side by side.
fn scaling_by_cpu(document: &Document) -> Option<Figure> {
    let table = Table {
        blocks: document.cpu_blocks(|cpu| cpu.process_ns),
    };
    let ratio = table.ratio(names::NULL_TWO, names::NULL_ONE)?;
    let what = "two threads against one on zero:clear=0";
    Some(Figure::plain(
        "null.scaling",
        what,
        Unit::Times,
        ratio.scaled(2.0),
    ))
}

fn noise(table: &Table, bottom: &str) -> Option<Noise> {
    let values = |name: String| table.blocks.values(table.blocks.position(&name)?).ok();
    let (first, second) = (
        values(names::direct(bottom))?,
        values(names::direct_again(bottom))?,
    );
    Noise::of(&first, &second, CONFIDENCE).ok()
}

#[cfg(test)]
mod tests;
