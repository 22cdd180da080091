//! From the samples of an experiment about layers to its figures.
//!
//! Costs are differences within rounds, costs a layer are slopes of lines through the cases of one
//! round; processes are the observations ([`Observed`]). The cost of GEOM is the primary figure and
//! stands alone; every other question is a small family of its own. A figure whose cases were not
//! measured, or not often enough, is not there.

use super::layered::LAYERED;
use super::names;
use super::subject::{Disk, Document, Subject};
use ugeom_harness::Sample;
use ugeom_harness::figure::{CONFIDENCE, Figure, Goal, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::units::size_human;
use ugeom_measure::{Center, Interval, Noise, Spread};

/// Computes all figures of a document from its samples, and puts them in.
pub fn compute(document: &mut Document) {
    let times = Observed::times(document);
    let disk = times.typical(names::DISK).filter(|_| disk_served(document));
    if let Some(disk) = disk {
        document.subject.disk = Disk::measured(disk.estimate());
    }
    let subject = &document.subject;
    let mut figures = costs(&times, subject);
    figures.extend(families(&times, subject));
    figures.extend(shares(&times, subject));
    figures.extend(slopes(&times, subject));
    figures.extend(typical(&times));
    figures.extend(served(&times, subject));
    figures.extend(processor(document, &times));
    figures.extend(by_cpu(document));
    let noise = noise(&times, subject.bottom());
    // Findings that do not come from samples (bytes that were read) stay.
    let known = |old: &Figure| figures.iter().any(|new: &Figure| new.id == old.id);
    let kept = document.figures.iter().filter(|old| !known(old));
    let kept: Vec<Figure> = kept.cloned().collect();
    document.noise = noise;
    document.figures = figures.into_iter().chain(kept).collect();
}

/// Whether the target's device did anything while the target was read directly, as the kernel
/// counted; where it does not count, whether the target may have a device.
pub(super) fn disk_served(document: &Document) -> bool {
    if document
        .target
        .as_ref()
        .is_some_and(|it| it.no_device().is_some())
    {
        return false;
    }
    let mut counted = document.processes.iter().flat_map(|process| {
        let case = process.cases.iter().position(|case| case == names::DISK);
        let samples = process
            .rounds
            .iter()
            .filter_map(move |round| round.samples.get(case?));
        samples.filter_map(|sample| sample.device)
    });
    match counted.next() {
        None => true,
        Some(first) => first.reads > 0 || counted.any(|device| device.reads > 0),
    }
}

fn typed(id: &str, what: &str, unit: Unit, center: Option<Center>) -> Option<Figure> {
    Figure::typical(id, what, unit, &center?)
}

fn absolute(id: &str, what: &str, unit: Unit, spread: Option<Spread>) -> Option<Figure> {
    Some(Figure::absolute(id, what, unit, &spread?))
}

/// The cost of GEOM, and of a layer of it.
fn costs(table: &Observed, subject: &Subject) -> Vec<Figure> {
    let bottom = subject.bottom();
    let mut out = Vec::new();
    let cost = table.difference(&names::plain(bottom), &names::direct(bottom));
    out.extend(cost.and_then(|it| Figure::judged("geom.cost", "GEOM itself", Unit::Ns, &it, 1)));
    let layers = subject.chain.len().saturating_sub(1);
    if layers == 0 {
        return out;
    }
    let (top, base) = (names::direct(subject.deepest()), names::direct(bottom));
    let share = 1.0 / layers as f64;
    let mean = table.contrast(&[(&top, share), (&base, -share)]);
    let what = "one layer, on average";
    let unit = Unit::NsPerLayer;
    out.extend(mean.and_then(|it| Figure::judged("layer.mean", what, unit, &it, 1)));
    out
}

/// A question of several comparisons: their names, descriptions and observations.
type Family = Vec<(String, String, Option<Center>)>;

/// Everything else that is judged.
fn families(table: &Observed, subject: &Subject) -> Vec<Figure> {
    // With one provider alone there are no layers whose cost could change.
    let layered = subject.chain.len() > 1;
    let sizes = subject.sizes_bytes.iter().filter(|_| layered);
    let families: [Family; 6] = [
        layers(table, subject),
        plain(table, subject),
        sizes
            .map(|size| size_matters(table, subject, *size))
            .collect(),
        statistics(table, subject),
        queued(table, subject),
        same(table, subject),
    ];
    families.into_iter().flat_map(judged).collect()
}

/// A comparison of two cases.
fn one(
    table: &Observed,
    (id, what): (&str, &str),
    base: &str,
    changed: &str,
) -> (String, String, Option<Center>) {
    let difference = table.difference(base, changed);
    (id.to_owned(), what.to_owned(), difference)
}

/// Each layer of the chain.
fn layers(table: &Observed, subject: &Subject) -> Family {
    let pairs = subject.chain.windows(2).map(|pair| {
        let (below, above) = (&pair[0].provider, &pair[1].provider);
        let what = format!("one more layer: {}", pair[1].class.to_lowercase());
        let (base, changed) = (names::direct(below), names::direct(above));
        one(table, (&format!("layer.{above}"), &what), &base, &changed)
    });
    pairs.collect()
}

/// The places of the providers without GEOM.
fn plain(table: &Observed, subject: &Subject) -> Family {
    let bottom = subject.bottom();
    let links = subject.chain.iter().skip(1).filter(|link| link.plain);
    let pairs = links.map(|link| {
        let what = format!("without GEOM, {} against {bottom}", link.provider);
        let id = format!("plain.{}", link.provider);
        let (base, changed) = (names::plain(bottom), names::plain(&link.provider));
        one(table, (&id, &what), &base, &changed)
    });
    pairs.collect()
}

fn statistics(table: &Observed, subject: &Subject) -> Family {
    let (off, time) = (names::STATISTICS_OFF, names::STATISTICS_TIME);
    let counts = ("statistics.counts", "counting, on the deepest provider");
    let timed = (
        "statistics.time",
        "counting and sampled times, on the deepest provider",
    );
    vec![
        one(table, counts, off, &names::direct(subject.deepest())),
        one(table, timed, off, time),
    ]
}

fn queued(table: &Observed, subject: &Subject) -> Family {
    let bottom = subject.bottom();
    let what = ("queued.cost", "queued dispatch instead of direct");
    vec![one(
        table,
        what,
        &names::direct(bottom),
        &names::queued(bottom),
    )]
}

/// The cases that are identical in truth.
fn same(table: &Observed, subject: &Subject) -> Family {
    let bottom = subject.bottom();
    let control = ("control", "the control: /dev/zero");
    let aa = ("aa", "A/A: two identical stacks");
    vec![
        one(table, control, names::ZERO, names::ZERO_AGAIN),
        one(
            table,
            aa,
            &names::direct(bottom),
            &names::direct_again(bottom),
        ),
    ]
}

fn judged(family: Family) -> Vec<Figure> {
    let measured: Vec<_> = family
        .into_iter()
        .filter_map(|(id, what, center)| Some((id, what, center?)))
        .collect();
    let count = measured.len();
    let figures = measured
        .iter()
        .filter_map(|(id, what, center)| Figure::judged(id, what, Unit::Ns, center, count));
    figures.collect()
}

/// By how much the cost of all layers differs between this size and the usual one. The disk and the
/// deepest provider begin at different offsets within a page, which changes what a copy costs
/// without any layer; so plain copies from the same offsets are subtracted where there are some.
fn size_matters(
    table: &Observed,
    subject: &Subject,
    size_bytes: u64,
) -> (String, String, Option<Center>) {
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let direct = [
        (names::sized(deepest, size_bytes), 1.0),
        (names::sized(bottom, size_bytes), -1.0),
        (names::direct(deepest), -1.0),
        (names::direct(bottom), 1.0),
    ];
    let plain = [
        (names::plain_sized(deepest, size_bytes), -1.0),
        (names::plain_sized(bottom, size_bytes), 1.0),
        (names::plain(deepest), 1.0),
        (names::plain(bottom), -1.0),
    ];
    let is_there =
        |cases: &[(String, f64)]| cases.iter().all(|(name, _)| table.position(name).is_some());
    let mut weights: Vec<(&str, f64)> = direct.iter().map(|it| (it.0.as_str(), it.1)).collect();
    if is_there(&plain) {
        weights.extend(plain.iter().map(|it| (it.0.as_str(), it.1)));
    }
    let what = format!(
        "the layers' cost at {} against {}",
        size_human(size_bytes),
        size_human(subject.read_bytes)
    );
    (format!("size.{size_bytes}"), what, table.contrast(&weights))
}

/// Effects of size below this are not stated: 1 % of the read, and at least 1 ns.
pub(super) fn size_margin_ns(document: &Document, size_bytes: u64) -> f64 {
    let times = Observed::times(document);
    let read = times.typical(&names::sized(document.subject.bottom(), size_bytes));
    read.map_or(1.0, |read| (read.estimate() / 100.0).max(1.0))
}

/// Costs as shares of the time of the disk below, and of a real disk's. They are formed within
/// rounds, so that a slow phase is in both parts.
fn shares(table: &Observed, subject: &Subject) -> Vec<Figure> {
    let bottom = subject.bottom();
    let mut out = Vec::new();
    let mut share = |key, what, share| out.extend(typed(key, what, Unit::Percent, share));
    let percent = |center: Option<Center>, change: &dyn Fn(f64) -> f64| {
        let values: Vec<f64> = center?.sorted().iter().map(|it| change(*it)).collect();
        Center::of(&values).ok()
    };
    let ratio = table.ratio(&names::direct(bottom), &names::plain(bottom));
    let more = percent(ratio, &|ratio| (ratio - 1.0) * 100.0);
    share("geom.share", "GEOM itself, of the time without it", more);
    let of_disk = |value: f64| value * 100.0 / subject.disk.read_ns;
    let cost = table.difference(&names::plain(bottom), &names::direct(bottom));
    let cost = percent(cost, &of_disk);
    let what = "GEOM itself, of a real disk's time";
    share("geom.share.disk", what, cost);
    let layers = subject.chain.len().saturating_sub(1) as f64;
    if layers < 1.0 {
        return out;
    }
    let (top, base) = (names::direct(subject.deepest()), names::direct(bottom));
    let ratio = table.ratio(&top, &base);
    let one = percent(ratio, &|ratio| (ratio - 1.0) * 100.0 / layers);
    share(
        "layer.share",
        "one layer, of the time of the disk below",
        one,
    );
    let mean = table.contrast(&[(&top, 1.0 / layers), (&base, -1.0 / layers)]);
    let mean = percent(mean, &of_disk);
    share("layer.share.disk", "one layer, of a real disk's time", mean);
    out
}

fn slopes(table: &Observed, subject: &Subject) -> Vec<Figure> {
    let slope = |name: &dyn Fn(usize) -> String| {
        let points = subject
            .depths
            .iter()
            .map(|depth| (name(*depth as usize), *depth as f64));
        let points: Vec<(String, f64)> = points
            .filter(|(name, _)| table.position(name).is_some())
            .collect();
        let points: Vec<(&str, f64)> = points.iter().map(|it| (it.0.as_str(), it.1)).collect();
        table.slope(&points)
    };
    let mut out = Vec::new();
    for layers in LAYERED {
        let center = slope(&|depth| layers.case(depth));
        if let Some(figure) = typed(&layers.figure(), layers.one_more, Unit::NsPerLayer, center) {
            out.push(match layers.target_ns {
                Some(limit) => figure.with_goal(Goal::Under(limit)),
                None => figure,
            });
        }
    }
    let what = "an indirect call: the lower bound for a called layer";
    out.extend(typed(
        "floor.calls",
        what,
        Unit::NsPerLayer,
        slope(&names::calls),
    ));
    out
}

fn typical(table: &Observed) -> Vec<Figure> {
    let one = |id: &str, what: &str, name: &str| absolute(id, what, Unit::Ns, table.typical(name));
    let goal = |figure: Option<Figure>, goal: Goal| figure.map(|figure| figure.with_goal(goal));
    let read = one(
        "null.read",
        "complete 512-byte read of zero:clear=0",
        names::NULL_ONE,
    );
    let what = "two threads against one on zero:clear=0";
    let ratio = table.ratio_of_threads(names::NULL_ONE, names::NULL_TWO);
    let scaling = absolute("null.scaling", what, Unit::Times, ratio);
    let delay = one(
        "delay.all",
        "1,000 in flight through nop:delay=1ms",
        names::DELAY,
    );
    let what = "listing a 1 TiB image, 128 partitions";
    let show = one("show.time", what, names::SHOW);
    let figures = [
        one("floor.loop", "an empty loop", names::LOOP),
        one("floor.clock", "reading the clock", names::CLOCK),
        one("floor.ticks", "reading the processor's ticks", names::TICKS),
        goal(read, Goal::Under(20.0)),
        goal(scaling, Goal::AtLeast(1.9)),
        // "About 1 ms in all": a fifth more is still about it.
        goal(delay, Goal::Under(1_200_000.0)),
        goal(show, Goal::Under(50_000_000.0)),
    ];
    figures.into_iter().flatten().collect()
}

/// A read through each server, and how much of it the stack itself is.
fn served(table: &Observed, subject: &Subject) -> Vec<Figure> {
    let deepest = subject.deepest();
    let mut out = Vec::new();
    for way in &subject.through {
        let case = names::through(way, deepest);
        let what = format!("a read of {deepest} through {way}");
        out.extend(absolute(
            &format!("through.{way}"),
            &what,
            Unit::Ns,
            table.typical(&case),
        ));
        let what = format!("the stack itself, of a read through {way}");
        let ratio = table.ratio(&names::direct(deepest), &case);
        let share = typed(&format!("through.{way}.stack"), &what, Unit::Percent, ratio);
        out.extend(share.map(|figure| Figure {
            interval: figure.interval.scaled(100.0),
            values: figure.values.iter().map(|value| value * 100.0).collect(),
            ..figure
        }));
    }
    out
}

/// A kind of CPU time of an iteration, ns.
fn cpu_of(document: &Document, kind: fn(&Sample) -> u64) -> Observed {
    Observed::of(document, |sample| {
        Some(kind(sample) as f64 / sample.iterations.max(1) as f64)
    })
}

/// CPU time a request, with direct and with queued dispatch: of the caller's thread, of helper
/// threads, of the whole machine. The last is counted in ticks, of which only sums mean anything.
fn processor(document: &Document, wall: &Observed) -> Vec<Figure> {
    let bottom = document.subject.bottom();
    let mut out = Vec::new();
    let caller = cpu_of(document, |sample| sample.cpu.thread_ns);
    let helpers = cpu_of(document, |sample| sample.cpu.helpers_ns());
    for (dispatch, case) in [
        ("direct", names::direct(bottom)),
        ("queued", names::queued(bottom)),
    ] {
        let mut add = |id: String, what: &str, table: &Observed| {
            let what = format!("{what}, {dispatch}");
            out.extend(absolute(&id, &what, Unit::Ns, table.typical(&case)));
        };
        add(format!("wall.{dispatch}"), "wall time", wall);
        let who = |who: &str| format!("cpu.{dispatch}.{who}");
        add(who("caller"), "CPU time of the caller's thread", &caller);
        add(who("helpers"), "CPU time of helper threads", &helpers);
        let whole = machine_ns(document, &case).map(|ns| {
            let what = format!("system-wide CPU time, {dispatch}");
            let id = who("machine");
            Figure::plain(&id, &what, Unit::Ns, Interval::exact(ns, CONFIDENCE))
        });
        out.extend(whole);
    }
    let deepest = document.subject.deepest();
    let ratio = wall.ratio_of_threads(&names::queued(deepest), &names::queued_two(deepest));
    let what = "two threads against one, queued";
    out.extend(absolute("queued.scaling", what, Unit::Times, ratio));
    out
}

/// System-wide CPU time of an iteration over all runs of a case, ns.
fn machine_ns(document: &Document, case: &str) -> Option<f64> {
    let (mut ns, mut iterations) = (0.0, 0.0);
    for process in &document.processes {
        let place = process.cases.iter().position(|name| name == case)?;
        for sample in process
            .rounds
            .iter()
            .filter_map(|round| round.samples.get(place))
        {
            ns += sample.cpu.machine_ns as f64;
            iterations += sample.iterations as f64;
        }
    }
    (iterations > 0.0).then(|| ns / iterations)
}

/// The main costs once more, by the CPU time of the reading thread.
fn by_cpu(document: &Document) -> Vec<Figure> {
    let table = cpu_of(document, |sample| sample.cpu.thread_ns);
    let mut figures = costs(&table, &document.subject);
    figures.extend(slopes(&table, &document.subject));
    let means = typical(&table).into_iter();
    figures.extend(means.filter(|figure| figure.id == "null.read"));
    let process = cpu_of(document, |sample| sample.cpu.process_ns);
    // The read rate of two threads with a core each: their CPU time for a read is spent side by
    // side.
    let ratio = process.ratio_of_threads(names::NULL_ONE, names::NULL_TWO);
    let what = "two threads against one on zero:clear=0";
    let scaling = absolute("null.scaling", what, Unit::Times, ratio);
    figures.extend(scaling.map(|figure| Figure {
        interval: figure.interval.scaled(2.0),
        values: figure.values.iter().map(|value| value * 2.0).collect(),
        ..figure
    }));
    for figure in &mut figures {
        figure.id = format!("by_cpu.{}", figure.id);
        figure.what = format!("{}, by CPU time", figure.what);
        figure.goal = None;
        // The same question is judged once, by wall time.
        (figure.p_value, figure.significant) = (None, None);
    }
    figures
}

fn noise(table: &Observed, bottom: &str) -> Option<Noise> {
    table.noise(&names::direct(bottom), &names::direct_again(bottom))
}

#[cfg(test)]
mod tests;
