//! The report, made from the document alone.

mod costs;
mod tables;
mod verdicts;

use super::cases::job_name;
use super::cost::{CACHED, INLINE};
use super::findings::{AGREE, cost_id};
use super::methods::Method;
use super::subject::{Document, EXPERIMENT};
use super::{DEPTHS, SIZE_BYTES};
use ugeom_harness::figure::{Figure, Unit, amount, value};
use ugeom_harness::observed::Observed;
use ugeom_harness::{Sample, total};
use ugeom_measure::Interval;
use ugeom_measure::units::{duration_human, size_human};
use ugeom_report::{Cell, Column, Page, Table};

/// The report of a document.
pub fn page(document: &Document) -> Page {
    let mut page = Page::new(EXPERIMENT, &asked(document));
    page.question = "do threads keep up with the kernel's asynchronous I/O?".to_owned();
    page.answer = answer(document);
    page.brief = brief(document);
    page.pictured(verdicts::picture(document));
    page.summary = Some(summary(document));
    page.head(document, &document.subject.left_out);
    page.paragraph(background(document));
    tables::jobs(&mut page, document);
    tables::latencies(&mut page, document);
    verdicts::pairs(&mut page, document);
    verdicts::schedulers(&mut page, document);
    costs::engine(&mut page, document);
    costs::any_call(&mut page, document);
    tables::checks(&mut page, document);
    tables::published(&mut page);
    page.rounds(document);
    limits(&mut page, document);
    page
}

/// The command line that measures the same.
fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let mut asked = "ugeom lab engines".to_owned();
    if !DEPTHS.starts_with(&subject.depths) {
        asked.push_str(&format!(" --depth {}", list(&subject.depths)));
    }
    if subject.size_bytes != SIZE_BYTES {
        asked.push_str(&format!(" --size {}m", subject.size_bytes >> 20));
    }
    if !subject.schedulers.is_empty() {
        asked.push_str(" --schedulers");
    }
    if document.settings.budget_ns.is_none() {
        asked.push_str(" --full");
    }
    if let Some(target) = &subject.target {
        asked.push_str(&format!(" --destroy {target}"));
    }
    asked
}

fn list<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(",")
}

fn background(document: &Document) -> String {
    let subject = &document.subject;
    format!(
        "A program with many requests in flight can submit them to the kernel (libaio, io_uring), \
         hand them to a library of threads (GUASI), or start a thread for each. In 2007 GUASI kept \
         up with libaio on a disk. Random reads and writes of 4 KiB, half of each, within {}, \
         direct, queue depth {}, {} requests a run.",
        size_human(subject.size_bytes),
        list(&subject.depths).replace(',', ", "),
        list(&subject.requests).replace(',', ", "),
    )
}

/// The ratios of a method to libaio, one a depth.
fn ratios(document: &Document, method: Method) -> Vec<&Figure> {
    let prefix = format!("iops.{}.", method.name());
    let figures = document.figures.iter();
    figures
        .filter(|figure| figure.id.starts_with(&prefix))
        .collect()
}

/// The published conclusion against the measured one, a winner where one is significant, and what
/// was left out.
fn answer(document: &Document) -> String {
    let mut answer = match conclusion(document) {
        Some((verdict, reached)) => {
            let threads = verdict.threads();
            format!("{threads}: {reached}. In 2007 they were equal.")
        }
        None => "No answer yet: too few rounds to compare the engines.".to_owned(),
    };
    if let Some(depth) = document.subject.depths.last() {
        answer.push_str(&winner(document, *depth));
    }
    let left_out = named(&document.subject.left_out);
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        answer.push_str(&format!(" Left out: {left_out} (reasons: --all)."));
    }
    answer
}

/// The names of the cases left out; the reasons stand below the answer. A part of something that
/// was left out as a whole is not named again.
fn named(left_out: &[String]) -> Vec<&str> {
    let name = |text: &'_ String| text.find([':', '(']).unwrap_or(text.len());
    let names = left_out.iter().map(|text| text[..name(text)].trim_end());
    let names: Vec<&str> = names.collect();
    let is_part = |name: &&str| names.iter().any(|of| of != name && name.ends_with(of));
    names
        .iter()
        .copied()
        .filter(|name| !is_part(name))
        .collect()
}

/// GUASI's threads against libaio, over all depths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Equal,
    Open,
    Faster,
    Slower,
    Both,
}

impl Verdict {
    /// The statement about today.
    fn threads(self) -> &'static str {
        match self {
            Self::Equal => "Threads are as fast as libaio within 10 %",
            Self::Open => "Whether threads are as fast as libaio is undecided",
            Self::Faster => "Threads are faster than libaio",
            Self::Slower => "Threads are slower than libaio",
            Self::Both => "Threads are faster or slower than libaio by the queue depth",
        }
    }

    /// The statement about the conclusion of 2007.
    fn of_2007(self) -> &'static str {
        match self {
            Self::Equal => "confirmed within 10 %",
            Self::Open => "neither confirmed nor refuted",
            Self::Faster | Self::Slower | Self::Both => "refuted by more than 10 %",
        }
    }
}

/// The verdict, and the ratio at each depth in words.
fn conclusion(document: &Document) -> Option<(Verdict, String)> {
    let pairs = ratios(document, Method::Workers);
    let agree = |figure: &&&Figure| figure.interval.lies_within(1.0 - AGREE, 1.0 + AGREE);
    let agreeing = pairs.iter().filter(agree).count();
    let outside =
        |figure: &&&Figure| figure.interval.low > 1.0 + AGREE || figure.interval.high < 1.0 - AGREE;
    let apart: Vec<_> = pairs.iter().filter(outside).collect();
    let above = apart.iter().filter(|figure| figure.interval.low > 1.0);
    let verdict = match (pairs.len(), apart.len(), above.count()) {
        (0, ..) => return None,
        (all, ..) if all == agreeing => Verdict::Equal,
        (_, 0, _) => Verdict::Open,
        (_, all, above) if all == above => Verdict::Faster,
        (_, _, 0) => Verdict::Slower,
        _ => Verdict::Both,
    };
    let factors: Vec<String> = pairs.iter().map(|figure| figure.amount()).collect();
    let depths: Vec<&str> = pairs.iter().map(|figure| depth_of(figure)).collect();
    let reached = format!(
        "{} of libaio's IOPS at queue depth {}",
        factors.join(", "),
        depths.join(", ")
    );
    Some((verdict, reached))
}

fn brief(document: &Document) -> String {
    match conclusion(document) {
        Some((verdict, _)) => {
            let verdict = verdict.of_2007();
            format!("2007's \"GUASI keeps up with libaio\" {verdict}")
        }
        None => "no answer".to_owned(),
    }
}

/// IOPS in a column whose heading has the unit.
fn without_unit(iops: &str) -> String {
    iops.replace(" IOPS", "")
}

/// IOPS of each engine at each depth, and its ratio to libaio's.
fn summary(document: &Document) -> Table {
    let depths = document.subject.depths.iter();
    let columns = depths.map(|depth| Column::text(&format!("IOPS, queue depth {depth}")));
    let columns = [Column::text("engine")].into_iter().chain(columns);
    let mut table = Table::new("", columns.chain([Column::text("CPU per request")]));
    let times = Observed::times(document);
    for method in Method::ALL {
        let cell = |depth: &u32| {
            let name = job_name(method.name(), *depth, None);
            let time = times.typical(&name);
            let Some(time) = time.map(|time| time.interval()) else {
                // Too few observations for an interval still have a median.
                let median = times
                    .middle(&name)
                    .map(|ns| without_unit(&value(1e9 / ns, Unit::PerSecond)));
                return Cell::text(median.unwrap_or("-".to_owned()));
            };
            let rate = Interval {
                estimate: 1e9 / time.estimate,
                low: 1e9 / time.high,
                high: 1e9 / time.low,
                confidence: time.confidence,
            };
            let shown = without_unit(&amount(&rate, Unit::PerSecond));
            Cell::amount(&rate, Unit::PerSecond).shown_as(shown)
        };
        let cells: Vec<Cell> = document.subject.depths.iter().map(cell).collect();
        if cells.iter().all(|cell| cell.text == "-") {
            continue;
        }
        let first = document.subject.depths.first().map(|depth| {
            let samples = samples(document, &job_name(method.name(), *depth, None));
            value(
                a_request(&samples, |sample| sample.cpu.process_ns),
                Unit::Ns,
            )
        });
        let cpu = Cell::text(first.unwrap_or_default());
        table.row(
            [Cell::text(method.name())]
                .into_iter()
                .chain(cells)
                .chain([cpu]),
        );
    }
    table
}

/// The depth that a figure is about.
fn depth_of(figure: &Figure) -> &str {
    figure.id.rsplit('.').next().unwrap_or_default()
}

/// The engine with the most IOPS at a depth, where its lead over libaio is significant.
fn winner(document: &Document, depth: u32) -> String {
    let ending = format!(".{depth}");
    let pairs = document.figures.iter().filter(|figure| {
        figure.id.starts_with("iops.")
            && figure.id.ends_with(&ending)
            && figure.significant == Some(true)
    });
    let faster = pairs.filter(|figure| figure.interval.low > 1.0);
    let best = faster.max_by(|a, b| a.interval.low.total_cmp(&b.interval.low));
    best.map_or(String::new(), |best| {
        let name = best.id.split('.').nth(1).unwrap_or_default();
        // The conclusion before has its ratio already.
        let ratio = match name == Method::Workers.name() {
            true => String::new(),
            false => format!(", {} of libaio's IOPS", best.amount()),
        };
        format!(" Fastest at queue depth {depth}: {name}{ratio}.")
    })
}

fn samples<'a>(document: &'a Document, case: &str) -> Vec<&'a Sample> {
    let mut found = Vec::new();
    for process in &document.processes {
        if let Some(at) = process.cases.iter().position(|name| name == case) {
            found.extend(
                process
                    .rounds
                    .iter()
                    .filter_map(|round| round.samples.get(at)),
            );
        }
    }
    found
}

/// A value of all runs of a case for each request.
fn a_request(samples: &[&Sample], of: impl Fn(&Sample) -> u64) -> f64 {
    let requests = total(samples.iter().map(|sample| sample.iterations));
    let sum = total(samples.iter().map(|sample| of(sample)));
    sum as f64 / requests.max(1) as f64
}

fn limits(page: &mut Page, document: &Document) {
    page.heading("What cannot be concluded");
    let untried = document.subject.schedulers.is_empty();
    let target = document.target.as_ref().filter(|_| untried);
    let scheduler = target.and_then(|target| {
        let scheduler = target.scheduler.as_ref()?;
        let queue = target
            .queue_requests
            .map_or_else(String::new, |n| format!(", {n} requests"));
        Some(format!(
            "The device's scheduler was {scheduler}{queue}; others were not tried (--schedulers)."
        ))
    });
    let fast = document.figure(&cost_id(CACHED, INLINE, 1)).map(|figure| {
        format!(
            "On a device whose requests take less than the engine itself (a cached read: {}), this \
             measures the engine.",
            value(figure.interval.estimate, figure.unit)
        )
    });
    let jobs = document.subject.jobs.iter();
    let run_ns = jobs
        .flat_map(|detail| samples(document, &detail.case))
        .map(|sample| sample.wall_ns)
        .min()
        .unwrap_or(0) as f64;
    let short = (run_ns < super::plan::RUN_NS as f64 / 2.0).then(|| {
        format!(
            "The shortest run took {}: ramp-up and drain are a part of it, more so at higher queue \
             depths.",
            duration_human(run_ns)
        )
    });
    page.list(scheduler.into_iter().chain(fast).chain(short));
}
