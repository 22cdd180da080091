//! The report of an experiment about layers: the question, the answer, one table, warnings, and the
//! meaning of the figures.

use super::findings::{disk_served, size_margin_ns};
use super::names;
use super::published;
use super::sections;
use super::subject::Document;
use ugeom_classes::target::TIME_ONE_IN;
use ugeom_harness::figure::{Figure, Unit, amount, value};
use ugeom_harness::observed::Observed;
use ugeom_measure::center::OBSERVATIONS_MIN;
use ugeom_measure::units::{duration_human, size_human};
use ugeom_measure::{Center, Interval};
use ugeom_report::text::{in_a_shell, too_few};
use ugeom_report::{Cell, Column, Page, Table};

/// The report of a result.
pub fn page(document: &Document) -> Page {
    let mut page = Page::new(&document.experiment, &asked(document));
    page.question = question(document);
    page.answer = answer(document);
    page.brief = brief(document);
    page.summary = Some(summary(document));
    page.pictured(sections::picture(document));
    page.warnings = warnings(document);
    page.head(document, &document.subject.left_out);
    page.heading("What it means");
    page.list(findings(document));
    sections::add(&mut page, document);
    page.rounds(document);
    page.heading("What cannot be concluded");
    page.list(limits(document));
    page
}

fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let mut asked = "ugeom lab layers".to_owned();
    for (flag, given) in [("--full", subject.all), ("--faithful", subject.faithful)] {
        if given {
            asked.push_str(&format!(" {flag}"));
        }
    }
    if let Some(target) = &subject.target {
        asked.push_str(&format!(" {}", in_a_shell(target)));
    }
    asked
}

fn question(document: &Document) -> String {
    let bytes = document.subject.read_bytes;
    format!("what do GEOM and each layer add to a read of {bytes} bytes?")
}

/// The times first, then their share, which is the figure of 2002, and that of a disk's time.
fn answer(document: &Document) -> String {
    let find = |id: &str| document.figure(id);
    let (Some(cost), Some(share)) = (find("geom.cost"), find("geom.share")) else {
        return match find("layer.mean") {
            Some(layer) => format!("Each layer adds {}.", layer.amount()),
            None if document.processes.len() >= OBSERVATIONS_MIN => {
                let target = document.subject.target.as_deref().unwrap_or("the target");
                format!(
                    "No answer: {target} has no second layer, and no file below it, to compare \
                     with; add a layer: {}.",
                    in_a_shell(&format!("{target} | nop"))
                )
            }
            None => format!(
                "No answer yet: {} for an interval.",
                too_few(document.rounds())
            ),
        };
    };
    let mut text = match cost.significant {
        Some(true) if cost.interval.low > 0.0 => added(document, cost, share),
        _ => format!(
            "GEOM adds no more than {} to a read (not significant)",
            cost.at_most()
        ),
    };
    if let Some(layer) = find("layer.mean") {
        text.push_str(&match layer.significant {
            Some(true) => format!("; each layer {}", layer.amount()),
            _ => format!("; each layer no more than {}", layer.at_most()),
        });
    }
    text.push_str(". ");
    if cost.significant != Some(true) || cost.interval.low <= 0.0 {
        let of_cpu = document.figure("by_cpu.geom.cost").map(Figure::amount);
        text.extend(of_cpu.map(|amount| format!("It takes {amount} of CPU time. ")));
    }
    text + &of_a_disk(document)
}

/// GEOM's cost: a share of the time without it, or a factor from 2 on.
fn added(document: &Document, cost: &Figure, share: &Figure) -> String {
    let cpu = document.figure("by_cpu.geom.cost");
    let cpu = cpu.map_or(String::new(), |cpu| format!(", {} CPU time", cpu.amount()));
    let share = match share.interval.estimate < 100.0 {
        true => format!("{} of the time without GEOM", share.amount()),
        false => {
            let of_ratio = |percent: f64| 1.0 + percent / 100.0;
            let ratio = Interval {
                estimate: of_ratio(share.interval.estimate),
                low: of_ratio(share.interval.low),
                high: of_ratio(share.interval.high),
                ..share.interval
            };
            format!("{} as long as without GEOM", amount(&ratio, Unit::Times))
        }
    };
    let bottom = document.subject.bottom();
    let wall = cost.amount();
    format!("GEOM adds {wall} wall{cpu} to a read of {bottom}, {share}")
}

/// GEOM's share of a disk's time, unless no disk was read.
fn of_a_disk(document: &Document) -> String {
    let disk = &document.subject.disk;
    if document.subject.target.is_some() && !disk_served(document) {
        return format!(
            "No device served these reads: {}, so they permit no conclusion about a disk.",
            no_device(document)
        );
    }
    match document.figure("geom.share.disk") {
        Some(share) => format!(
            "That is {} of a disk's {} ({}).",
            share.estimate(),
            duration_human(disk.read_ns),
            disk.source
        ),
        None => String::new(),
    }
}

fn no_device(document: &Document) -> String {
    let facts = document.target.as_ref().and_then(|facts| facts.no_device());
    facts.unwrap_or_else(|| "its counters stood still".to_owned())
}

fn brief(document: &Document) -> String {
    let (cost, layer) = (document.figure("geom.cost"), document.figure("layer.mean"));
    let words = |what: &str, figure: &Figure| match figure.significant {
        Some(true) => format!("{what} adds {}", figure.amount()),
        _ => format!("{what} adds no more than {}", figure.at_most()),
    };
    let parts = [("GEOM", cost), ("a layer", layer)];
    let parts = parts
        .iter()
        .filter_map(|(what, figure)| Some(words(what, (*figure)?)));
    match parts.collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => "no answer".to_owned(),
        some => some,
    }
}

/// The rows of 2002, today: times, then differences.
fn summary(document: &Document) -> Table {
    let mut table = Table::new("", ["", "today", "2002"].map(Column::text));
    times(&mut table, document);
    let subject = &document.subject;
    let mut figure = |what: &str, id: &str, then: String| {
        if let Some(figure) = document.figure(id) {
            let shown = match figure.is_not_significant() {
                true => format!("{}, not significant", figure.amount()),
                false => figure.amount(),
            };
            let shown = Cell::figure(figure).shown_as(shown);
            table.row([Cell::text(what), shown, Cell::text(then)]);
        }
    };
    let steps = published::steps().ok();
    let then = |step: usize| {
        steps
            .as_ref()
            .map_or(String::new(), |all| all[step].amount())
    };
    figure("GEOM itself", "geom.cost", then(0));
    for (step, link) in subject.chain.iter().skip(1).enumerate().take(2) {
        let what = format!("layer {}", link.class.to_lowercase());
        let id = format!("layer.{}", link.provider);
        figure(&what, &id, then(step + 1));
    }
    let none = String::new;
    figure("one more slicer, counts", "slope.slicers.counts", none());
    figure("one more fused slicer", "slope.fused.counts", none());
    figure("queued dispatch", "wall.queued", none());
    for way in &subject.through {
        figure(&format!("through {way}"), &format!("through.{way}"), none());
    }
    table
}

/// The time of one read of the control, of the bottom with GEOM and without, and of the deepest.
fn times(table: &mut Table, document: &Document) {
    let subject = &document.subject;
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let call = match subject.target {
        None => "function call",
        Some(_) => "through the stack",
    };
    let zero = "zero: a system call, no layer".to_owned();
    let mut rows = vec![
        (zero, names::ZERO.to_owned(), published::ZERO),
        (
            format!("{bottom} without GEOM"),
            names::plain(bottom),
            published::MD9_WITHOUT,
        ),
        (
            format!("{bottom}: {call}"),
            names::direct(bottom),
            published::MD9,
        ),
    ];
    if deepest != bottom {
        let what = format!("{deepest}: {} layers", subject.chain.len() - 1);
        rows.push((what, names::direct(deepest), published::MD9S1C));
    }
    let times = Observed::times(document);
    for (what, case, then) in rows {
        let interval = times.typical(&case).map(|it| it.interval());
        // Too few observations for an interval still have a median.
        let shown = match interval {
            Some(interval) => Some(Cell::amount(&interval, Unit::Ns)),
            None => times
                .middle(&case)
                .map(|ns| Cell::text(value(ns, Unit::Ns))),
        };
        if let Some(shown) = shown {
            table.row([Cell::text(what), shown, Cell::text(ns(&then))]);
        }
    }
}

fn ns(row: &published::Row) -> String {
    value(row.moments.mean, Unit::Ns)
}

/// The limits of the answer beside those of the machine.
fn warnings(document: &Document) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(aa) = document
        .figure("aa")
        .filter(|aa| aa.significant == Some(true))
    {
        out.push(format!(
            "A/A: two identical stacks differ by {}; smaller effects are uncertain",
            aa.amount()
        ));
    }
    if let Some(facts) = document.target.as_ref().filter(|_| disk_served(document)) {
        out.extend(facts.between());
    }
    let cost = document.figure("geom.cost");
    let apart = cost.and_then(|cost| Some((cost, Center::of(&cost.values).ok()?.apart())));
    if let Some((cost, apart)) = apart.filter(|(_, apart)| !apart.is_empty()) {
        let others: Vec<String> = apart.iter().map(|ns| value(*ns, Unit::Ns)).collect();
        let observations = match document.processes.len() >= OBSERVATIONS_MIN {
            true => "processes",
            false => "rounds",
        };
        out.push(format!(
            "GEOM's cost was {} in {} of {} {observations}, and {} in the others",
            cost.estimate(),
            cost.values.len() - apart.len(),
            cost.values.len(),
            others.join(", ")
        ));
    }
    out
}

/// The meaning of the figures, a line or two each.
fn findings(document: &Document) -> Vec<String> {
    let lines = [
        layers(document),
        flat(document),
        sizes(document),
        slopes(document),
        statistics(document),
        queued(document),
        served(document),
    ];
    lines.into_iter().flatten().collect()
}

/// A difference, or what it cannot exceed.
fn told(figure: &Figure) -> String {
    match figure.is_not_significant() {
        true => format!("no more than {}, not significant", figure.at_most()),
        false => figure.amount(),
    }
}

/// The layers of the chain, one by one.
fn layers(document: &Document) -> Option<String> {
    let chain = document.subject.chain.iter().skip(1);
    let step = |link: &super::Link| {
        let figure = document.figure(&format!("layer.{}", link.provider))?;
        Some(format!("{} {}", link.class.to_lowercase(), told(figure)))
    };
    let steps: Vec<String> = chain.filter_map(step).collect();
    let share = document.figure("layer.share")?.amount();
    let below = document.subject.bottom();
    Some(format!(
        "Layer by layer: {}. On average {share} of the time of {below}.",
        steps.join("; ")
    ))
}

/// Without GEOM the providers are one and the same path.
fn flat(document: &Document) -> Option<String> {
    let flat = document
        .figures
        .iter()
        .filter(|figure| figure.id.starts_with("plain."));
    let flat: Vec<String> = flat
        .map(|it| format!("{}: {}", it.what, told(it)))
        .collect();
    (!flat.is_empty()).then(|| format!("The place in memory alone: {}.", flat.join("; ")))
}

/// Whether the size matters: an effect is significant and above its margin, or it is bounded.
fn sizes(document: &Document) -> Option<String> {
    let figure = |size: &u64| document.figure(&format!("size.{size}"));
    let sizes = document.subject.sizes_bytes.iter();
    let lines: Vec<String> = sizes
        .filter_map(|size| {
            let (figure, margin) = (figure(size)?, size_margin_ns(document, *size));
            let of = size_human(*size);
            Some(match figure.is_effect(margin) {
                true => format!(
                    "{of}: {} (margin {})",
                    figure.amount(),
                    value(margin, Unit::Ns)
                ),
                false => format!("{of}: no more than {}", figure.at_most()),
            })
        })
        .collect();
    let line = "How the layers' cost changes with the size of the read (an effect is stated when \
                it is significant and above 1 % of the read)";
    (!lines.is_empty()).then(|| format!("{line}: {}.", lines.join("; ")))
}

fn slopes(document: &Document) -> Option<String> {
    let amount = |id: &str| document.figure(id).map(Figure::amount);
    let deepest = document.subject.depths.iter().max()?;
    let (off, counts) = (
        amount("slope.slicers.off")?,
        amount("slope.slicers.counts")?,
    );
    let hooks = amount("slope.hooks.off")?;
    let limit = amount("floor.calls")?;
    let passed = amount("slope.fused.counts").map_or_else(String::new, |passed| {
        format!(" Fused, as slicers are by default, one more costs {passed} with counts.")
    });
    Some(format!(
        "In stacks of up to {deepest} layers, one more called slicer costs {off} without \
         statistics and {counts} with counts; a layer with a completion hook {hooks}. Lower bound \
         for a called layer (one indirect call): {limit}.{passed}"
    ))
}

fn statistics(document: &Document) -> Option<String> {
    let counts = document.figure("statistics.counts")?;
    let time = document.figure("statistics.time")?;
    Some(format!(
        "Statistics on every provider of {}: counting costs {}; counting, and timing one read in \
         {}, {}.",
        document.subject.deepest(),
        told(counts),
        TIME_ONE_IN,
        told(time)
    ))
}

fn queued(document: &Document) -> Option<String> {
    let figure = |id: &str| document.figure(id).map(Figure::estimate);
    let wall = document.figure("wall.queued")?.amount();
    let threads = document.figure("queued.scaling").map(|ratio| {
        let times = ratio.amount();
        format!(" Two threads complete {times} as many reads as one.")
    });
    Some(format!(
        "Queued dispatch (threads g_down and g_up carry each request, as in 2002): {wall} per \
         read. CPU time per read: {} of the calling thread, {} of g_down and g_up, {} \
         system-wide.{}",
        figure("cpu.queued.caller")?,
        figure("cpu.queued.helpers")?,
        figure("cpu.queued.machine")?,
        threads.unwrap_or_default()
    ))
}

fn served(document: &Document) -> Option<String> {
    let way = |way: &String| {
        let time = document.figure(&format!("through.{way}"))?.amount();
        let stack = document.figure(&format!("through.{way}.stack"))?;
        Some(format!(
            "through {way} {time}, of which the stack is {}",
            stack.estimate()
        ))
    };
    let ways: Vec<String> = document.subject.through.iter().filter_map(way).collect();
    (!ways.is_empty()).then(|| {
        format!(
            "Served to another program, one read of {} at a time: {}.",
            document.subject.deepest(),
            ways.join("; ")
        )
    })
}

/// The conclusions that the figures do not allow.
fn limits(document: &Document) -> Vec<String> {
    let subject = &document.subject;
    let mut lines = Vec::new();
    if subject.target.is_none() {
        lines.push(format!(
            "The latency of a disk: {} is {}. With a target it is measured.",
            value(subject.disk.read_ns, Unit::Ns),
            subject.disk.source
        ));
        let words = "The cost of GEOM in a kernel: these layers run inside one program; only the \
                     control and the served reads enter the kernel.";
        lines.push(words.to_owned());
    }
    let words = "The cost beside other work: the same bytes are read repeatedly, from the L1 \
                 cache.";
    lines.push(words.to_owned());
    let words = "Other times, builds or machines: intervals cover fresh processes of this program, \
                 here and now.";
    lines.push(words.to_owned());
    lines
}

#[cfg(test)]
mod tests;
