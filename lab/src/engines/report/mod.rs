//! The report, made from the document alone.

mod costs;
mod tables;
mod verdicts;

use super::cost::{CACHED, INLINE};
use super::findings::{AGREE, cost_id};
use super::subject::{Document, EXPERIMENT, JobDetail};
use super::ways::Way;
use ugeom_harness::figure::{Figure, value};
use ugeom_harness::{Sample, total};
use ugeom_measure::units::{duration_human, size_human};
use ugeom_report::Page;

/// The report of a document.
pub fn page(document: &Document) -> Page {
    let mut page = Page::new(EXPERIMENT, &asked(document));
    page.head(document, &document.subject.left_out);
    page.question = question(document);
    page.answer = answer(document);
    tables::jobs(&mut page, document);
    verdicts::pairs(&mut page, document);
    verdicts::schedulers(&mut page, document);
    costs::engine(&mut page, document);
    costs::any_call(&mut page, document);
    tables::checks(&mut page, document);
    tables::published(&mut page);
    page.goals(&document.figures);
    limits(&mut page, document);
    page
}

/// The command line that measures the same.
fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let size_mib = subject.size_bytes >> 20;
    let depths = list(&subject.depths);
    let mut asked = format!("ugeom lab engines --depth {depths} --size {size_mib}m");
    if !subject.schedulers.is_empty() {
        asked.push_str(" --schedulers");
    }
    if let Some(budget_ns) = document.settings.budget_ns {
        asked.push_str(&format!(" --budget {}s", budget_ns.div_ceil(1_000_000_000)));
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

fn question(document: &Document) -> String {
    let subject = &document.subject;
    format!(
        "A program that wants many requests in flight can leave them with the kernel (libaio, the \
         interface of 2002; io_uring, that of 2019), hand them to a library of threads (GUASI), or \
         start a thread for each that makes a plain blocking call. In 2007 GUASI kept up with \
         libaio on a disk. Does it today? Random reads and writes of 4 KiB, half of each, within \
         {}, past the system's cache, {} at a time, {} requests a run.",
        size_human(subject.size_bytes),
        list(&subject.depths).replace(',', ", "),
        list(&subject.requests).replace(',', ", "),
    )
}

/// The ratios of a way to libaio, one a depth.
fn ratios(document: &Document, way: Way) -> Vec<&Figure> {
    let prefix = format!("iops.{}.", way.name());
    let figures = document.figures.iter();
    figures
        .filter(|figure| figure.id.starts_with(&prefix))
        .collect()
}

/// The published conclusion, held against what was measured.
fn answer(document: &Document) -> String {
    let pairs = ratios(document, Way::Workers);
    let agree = |figure: &&&Figure| figure.interval.lies_within(1.0 - AGREE, 1.0 + AGREE);
    let agreeing = pairs.iter().filter(agree).count();
    let outside =
        |figure: &&&Figure| figure.interval.low > 1.0 + AGREE || figure.interval.high < 1.0 - AGREE;
    let apart = pairs.iter().filter(outside).count();
    let verdict = match (pairs.len(), agreeing, apart) {
        (0, ..) => return "Too few rounds were measured to compare the engines.".to_owned(),
        (all, same, _) if all == same => "confirmed: GUASI's threads and libaio agree within 10 %",
        (_, _, 0) => "neither confirmed nor refuted here: intervals reach over 10 %",
        _ => "refuted here: GUASI's threads and libaio lie more than 10 % apart",
    };
    let parts: Vec<String> = pairs
        .iter()
        .map(|figure| format!("{} at {}", figure.amount(), depth_of(figure)))
        .collect();
    let mut answer = format!(
        "The conclusion of 2007 is {verdict}. Requests a second of GUASI's threads to those of \
         libaio: {}.",
        parts.join(", ")
    );
    for &depth in &document.subject.depths {
        answer.push_str(&winner(document, depth));
    }
    answer
}

/// The depth that a figure is about.
fn depth_of(figure: &Figure) -> &str {
    figure.id.rsplit('.').next().unwrap_or_default()
}

/// Which way made the most requests a second at a depth, and what it costs.
fn winner(document: &Document, depth: u32) -> String {
    let at = |detail: &&JobDetail| {
        detail.depth == depth && detail.cell == super::cells::job_name(&detail.engine, depth, None)
    };
    let all: Vec<(&JobDetail, f64, f64)> = document
        .subject
        .jobs
        .iter()
        .filter(at)
        .map(|detail| {
            let samples = samples(document, &detail.cell);
            let wall_ns = a_request(&samples, |sample| sample.wall_ns);
            let cpu_ns = a_request(&samples, |sample| sample.cpu.process_ns);
            (detail, wall_ns, cpu_ns)
        })
        .filter(|(_, wall_ns, _)| *wall_ns > 0.0)
        .collect();
    let first = all.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let libaio = all.iter().find(|one| one.0.engine == Way::Libaio.name());
    let (Some(first), Some(libaio)) = (first, libaio) else {
        return String::new();
    };
    let name = &first.0.engine;
    let cpu = duration_human(first.2);
    if first.0.engine == libaio.0.engine {
        return format!(" At {depth} libaio made the most, for {cpu} of CPU a request.");
    }
    format!(
        " At {depth} {name} made the most, for {cpu} of CPU a request, {:.1} times libaio's.",
        first.2 / libaio.2.max(1.0)
    )
}

/// All samples of a cell.
fn samples<'a>(document: &'a Document, cell: &str) -> Vec<&'a Sample> {
    let mut found = Vec::new();
    for process in &document.processes {
        if let Some(at) = process.cells.iter().position(|name| name == cell) {
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

/// A value of all runs of a cell for each request.
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
        .flat_map(|detail| samples(document, &detail.cell))
        .map(|sample| sample.wall_ns)
        .min()
        .unwrap_or(0) as f64;
    let short = (run_ns < super::plan::RUN_NS as f64 / 2.0).then(|| {
        format!(
            "The shortest run took {}: the beginning and the end weigh in it, more so with many \
             requests at a time.",
            duration_human(run_ns)
        )
    });
    page.list(scheduler.into_iter().chain(fast).chain(short));
}
