//! The report, made from the document alone.

use super::cells::{THREADS, cost_name};
use super::findings::AGREE;
use super::published::{CONCLUSION, PUBLISHED, REQUESTS};
use super::subject::{Document, EXPERIMENT, JobDetail, Latency};
use crate::figure::{Figure, value};
use crate::harness::Sample;
use crate::report::{Cell, Column, Page, Table};
use ugeom_measure::units::{duration_human, size_human};

/// The report of a document.
pub fn page(document: &Document) -> Page {
    let mut page = Page::new(EXPERIMENT, &asked(document));
    page.head(document, &document.subject.left_out);
    page.question = question(document);
    page.answer = answer(document);
    jobs(&mut page, document);
    verdicts(&mut page, document);
    costs(&mut page, document);
    law(&mut page, document);
    published(&mut page);
    limits(&mut page, document);
    page
}

/// The command line that measures the same.
fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let depths: Vec<String> = subject.depths.iter().map(u32::to_string).collect();
    let size_mib = subject.size_bytes >> 20;
    let mut asked = format!(
        "ugeom lab engines --depth {} --size {size_mib}m",
        depths.join(",")
    );
    if let Some(target) = &subject.target {
        asked.push_str(&format!(" --destroy {target}"));
    }
    asked
}

fn question(document: &Document) -> String {
    let subject = &document.subject;
    let depths: Vec<String> = subject.depths.iter().map(u32::to_string).collect();
    let requests: Vec<String> = subject.requests.iter().map(u64::to_string).collect();
    format!(
        "A program that wants many requests in flight can leave them with the kernel (libaio, the \
         interface of 2002; io_uring, that of 2019), or start a thread for each that makes a plain \
         blocking call ({THREADS}). In 2007 a library of threads kept up with libaio on a disk. \
         Does it today? Random reads and writes of 4 KiB, half of each, within {}, past the \
         system's cache, {} at a time, {} requests a run.",
        size_human(subject.size_bytes),
        depths.join(", "),
        requests.join(", "),
    )
}

/// The seed's conclusion, held against what was measured.
fn answer(document: &Document) -> String {
    let pairs: Vec<&Figure> = document
        .figures
        .iter()
        .filter(|figure| figure.id.starts_with(&format!("iops.{THREADS}.")))
        .collect();
    let agree = |figure: &&&Figure| figure.interval.lies_within(1.0 - AGREE, 1.0 + AGREE);
    let agreeing = pairs.iter().filter(agree).count();
    let apart = pairs
        .iter()
        .filter(|figure| figure.interval.low > 1.0 + AGREE || figure.interval.high < 1.0 - AGREE)
        .count();
    let parts: Vec<String> = pairs
        .iter()
        .map(|figure| {
            let depth = figure.id.rsplit('.').next().unwrap_or_default();
            format!("{} at {depth}", figure.amount())
        })
        .collect();
    let verdict = match (pairs.len(), agreeing, apart) {
        (0, ..) => return "Too few rounds were measured to compare the engines.".to_owned(),
        (all, same, _) if all == same => "confirmed: blocking threads and libaio agree within 10 %",
        (_, _, 0) => "neither confirmed nor refuted here: the intervals reach over 10 %",
        _ => "refuted here: blocking threads and libaio lie more than 10 % apart",
    };
    format!(
        "The conclusion of 2007 is {verdict}. Requests a second of the threads to those of libaio: \
         {}.",
        parts.join(", ")
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
    let requests: u64 = samples.iter().map(|sample| sample.iterations).sum();
    let sum: u64 = samples.iter().map(|sample| of(sample)).sum();
    sum as f64 / requests.max(1) as f64
}

/// Reads and writes a second.
fn a_second(samples: &[&Sample], detail: &JobDetail) -> [f64; 2] {
    let all = 1e9 / a_request(samples, |sample| sample.wall_ns).max(1e-9);
    let (reads, writes) = (detail.reads.requests as f64, detail.writes.requests as f64);
    [reads, writes].map(|part| all * part / (reads + writes).max(1.0))
}

fn jobs(page: &mut Page, document: &Document) {
    page.heading("The job");
    page.paragraph(
        "`submit` is the mean time until a request was handed over (fio's slat), `complete` the \
         time from there to its end (clat): an engine may hide waiting in either, so judge the \
         sum. CPU is that of the whole process; a switch is a context switch.",
    );
    let names = || [Column::text("engine"), Column::number("depth", "")];
    let columns = [
        Column::number("reads", "/s"),
        Column::number("writes", "/s"),
        Column::number("both", "KiB/s"),
        Column::number("CPU", "us"),
        Column::number("switches", ""),
    ];
    let mut rates = Table::new(
        "How many, and what each costs",
        names().into_iter().chain(columns),
    );
    let columns = ["submit", "complete", "sum", "p99", "p99.9", "most"];
    let columns = columns.map(|name| Column::number(name, "us"));
    let mut times = Table::new("How long each takes", names().into_iter().chain(columns));
    for detail in &document.subject.jobs {
        let samples = samples(document, &detail.cell);
        let [reads, writes] = a_second(&samples, detail);
        let name = detail.cell.trim_start_matches("job/");
        let name = name.replacen(&format!(" {}", detail.depth), "", 1);
        let names = || [Cell::text(&name), Cell::count(u64::from(detail.depth))];
        let cells = [
            Cell::number(reads, 0),
            Cell::number(writes, 0),
            Cell::number((reads + writes) * 4.0, 0),
            Cell::number(a_request(&samples, |s| s.cpu.process_ns) / 1e3, 1),
            Cell::number(a_request(&samples, |s| s.cpu.switches()), 2),
        ];
        rates.row(names().into_iter().chain(cells));
        let worse = |of: fn(&Latency) -> u64| {
            of(&detail.reads.whole).max(of(&detail.writes.whole)) as f64 / 1e3
        };
        let means = detail.means_ns().map(|ns| Cell::number(ns / 1e3, 1));
        let worst = [
            worse(|latency| latency.p99_ns),
            worse(|latency| latency.p999_ns),
            worse(|latency| latency.max_ns),
        ];
        let worst = worst.map(|us| Cell::number(us, 0));
        times.row(names().into_iter().chain(means).chain(worst));
    }
    page.push(rates);
    page.push(times);
}

fn verdicts(page: &mut Page, document: &Document) {
    let columns = ["pair", "ratio", "verdict"].map(Column::text);
    let mut table = Table::new("Requests a second, each engine to libaio", columns);
    let pairs = document.figures.iter();
    for figure in pairs.filter(|figure| figure.id.starts_with("iops.")) {
        let interval = &figure.interval;
        let verdict = if interval.lies_within(1.0 - AGREE, 1.0 + AGREE) {
            "the same within 10 %"
        } else if figure.is_unproven() {
            "no difference proven"
        } else if interval.estimate > 1.0 {
            "faster than libaio"
        } else {
            "slower than libaio"
        };
        table.row([
            Cell::text(figure.id.trim_start_matches("iops.").replace('.', ", ")),
            Cell::figure(figure),
            Cell::text(verdict),
        ]);
    }
    page.heading("Pair by pair");
    page.push(table);
}

fn costs(page: &mut Page, document: &Document) {
    let columns = [
        Column::text("engine"),
        Column::number("depth", ""),
        Column::number("time", "ns"),
        Column::number("CPU", "ns"),
        Column::number("switches", ""),
    ];
    let mut table = Table::new("A 4 KiB read from the system's cache", columns);
    for figure in &document.figures {
        let Some(rest) = figure.id.strip_prefix("cached.") else {
            continue;
        };
        let Some((engine, depth)) = rest.split_once('.') else {
            continue;
        };
        let depth: u32 = depth.parse().unwrap_or(0);
        let samples = samples(document, &cost_name(engine, depth));
        table.row([
            Cell::text(engine),
            Cell::count(u64::from(depth)),
            Cell::interval(&figure.interval, 0),
            Cell::number(a_request(&samples, |sample| sample.cpu.process_ns), 0),
            Cell::number(a_request(&samples, |sample| sample.cpu.switches()), 3),
        ]);
    }
    page.heading("What an engine costs by itself");
    page.push(table);
}

fn law(page: &mut Page, document: &Document) {
    let columns = [
        Column::text("cell"),
        Column::number("steady", "/s"),
        Column::number("in flight, seen", ""),
        Column::number("by Little's law", ""),
        Column::number("at the device", ""),
    ];
    let mut table = Table::new("", columns);
    for detail in &document.subject.jobs {
        let samples = samples(document, &detail.cell);
        let wall_ns: u64 = samples.iter().map(|sample| sample.wall_ns).sum();
        let queued_ns = samples
            .iter()
            .filter_map(|sample| Some(sample.device?.queue_ns))
            .sum::<u64>();
        let number =
            |value: Option<f64>| value.map_or_else(Cell::empty, |value| Cell::number(value, 0));
        table.row([
            Cell::text(detail.cell.trim_start_matches("job/")),
            number(detail.steady_per_second),
            number(detail.in_flight),
            Cell::number(detail.in_flight_by_law, 0),
            number((queued_ns > 0).then(|| queued_ns as f64 / wall_ns.max(1) as f64)),
        ]);
    }
    page.heading("Checks");
    page.paragraph(
        "Steady is the rate while the queue was kept full, without the beginning and the end of a \
         run. The mean number in flight, as it was seen, must be the rate times the mean time of a \
         request (Little's law). What is in flight and not at the device waits in front of it.",
    );
    page.push(table);
}

fn published(page: &mut Page) {
    let columns = [
        Column::text("engine"),
        Column::number("depth", ""),
        Column::number("reads", "/s"),
        Column::number("writes", "/s"),
        Column::number("submit", "ms"),
        Column::number("complete", "ms"),
        Column::number("sum", "ms"),
        Column::number("CPU", "%"),
        Column::number("switches", ""),
    ];
    let title = "2007: Pentium 4 at 3.4 GHz, SATA drive, Linux 2.6.20; means of reads and writes";
    let mut table = Table::new(title, columns);
    for run in PUBLISHED {
        let mean = |pair: [f64; 2]| (pair[0] + pair[1]) / 2.0;
        let (submitting, completing) = (mean(run.submitting_ms), mean(run.completing_ms));
        table.row([
            Cell::text(run.engine),
            Cell::count(u64::from(run.depth)),
            Cell::count(run.iops[0]),
            Cell::count(run.iops[1]),
            Cell::number(submitting, 2),
            Cell::number(completing, 1),
            Cell::number(submitting + completing, 1),
            Cell::number(run.cpu_percent, 2),
            Cell::number(run.switches as f64 / REQUESTS as f64, 2),
        ]);
    }
    page.heading("Then");
    page.push(table);
    page.paragraph(format!("Its conclusion: \"{CONCLUSION}\""));
}

fn limits(page: &mut Page, document: &Document) {
    page.heading("What cannot be concluded");
    let scheduler = document.target.as_ref().and_then(|target| {
        let scheduler = target.scheduler.as_ref()?;
        let queue = target
            .queue_requests
            .map_or_else(String::new, |n| format!(", {n} requests"));
        Some(format!(
            "The device's scheduler was {scheduler}{queue}; others were not tried."
        ))
    });
    let fast = document.figure("cached.sync.1").map(|figure| {
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
    let short = (run_ns < 2e9).then(|| {
        format!(
            "The shortest run took {}: the beginning and the end weigh in it, more so with many \
             requests at a time.",
            duration_human(run_ns)
        )
    });
    page.list(scheduler.into_iter().chain(fast).chain(short));
}
