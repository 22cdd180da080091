//! The tables of the job: rates and costs, times, checks, and the published figures.

use super::{a_request, samples};
use crate::engines::published::{CONCLUSION, PUBLISHED, REQUESTS};
use crate::engines::subject::{Document, JobDetail, Latency};
use ugeom_harness::{Sample, total};
use ugeom_report::{Axis, Cell, Curve, Curves, Page, Table};

/// Bytes of a request, KiB.
const REQUEST_KIB: f64 = 4.0;

/// Reads and writes a second.
fn a_second(samples: &[&Sample], detail: &JobDetail) -> [f64; 2] {
    let all = 1e9 / a_request(samples, |sample| sample.wall_ns).max(1e-9);
    let (reads, writes) = (detail.reads.requests as f64, detail.writes.requests as f64);
    [reads, writes].map(|part| all * part / (reads + writes).max(1.0))
}

/// The name of a row: the engine, and what makes it another one than that of the same depth.
fn row_name(detail: &JobDetail) -> String {
    let case = detail.case.trim_start_matches("job/");
    case.replacen(&format!(" {}", detail.depth), "", 1)
}

pub(super) fn jobs(page: &mut Page, document: &Document) {
    page.heading("The job");
    page.paragraph(
        "`submit` is the mean submission latency (fio's slat), `complete` the mean completion \
         latency (clat). Engines wait in either, so compare the sum. CPU time and context switches \
         are per request.",
    );
    let columns = "queue depth | read IOPS | (KiB/s) | write IOPS | (KiB/s) | \
                   CPU per request (us) | system-wide CPU (us) | context switches";
    let mut rates = Table::headed("IOPS, and the cost of a request", "engine", columns);
    let columns = "queue depth | submit | complete | sum | p50 | p99 | p99.9 | max";
    let mut times = Table::headed("Latency, us", "engine", columns);
    for detail in &document.subject.jobs {
        let samples = samples(document, &detail.case);
        let [reads, writes] = a_second(&samples, detail);
        let name = row_name(detail);
        let names = || [Cell::text(&name), Cell::count(u64::from(detail.depth))];
        let cells = [
            Cell::number(reads, 0),
            Cell::number(reads * REQUEST_KIB, 0),
            Cell::number(writes, 0),
            Cell::number(writes * REQUEST_KIB, 0),
            Cell::number(a_request(&samples, |s| s.cpu.process_ns) / 1e3, 1),
            Cell::number(a_request(&samples, |s| s.cpu.machine_ns) / 1e3, 1),
            Cell::number(a_request(&samples, |s| s.cpu.switches()), 2),
        ];
        rates.row(names().into_iter().chain(cells));
        let worse = |of: fn(&Latency) -> u64| {
            of(&detail.reads.whole).max(of(&detail.writes.whole)) as f64 / 1e3
        };
        let means = detail.means_ns().map(|ns| Cell::number(ns / 1e3, 1));
        let worst = [
            worse(|latency| latency.p50_ns),
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

/// How the latency of reads is spread, a plot for each queue depth.
pub(super) fn latencies(page: &mut Page, document: &Document) {
    let subject = &document.subject;
    for depth in &subject.depths {
        let title = format!("Latency of reads at queue depth {depth}");
        let share = Axis::quantiles("share of requests that took no longer");
        let mut plot = Curves::new(&title, share, Axis::log10("latency", "ns"));
        let details = subject.jobs.iter().filter(|detail| detail.depth == *depth);
        for detail in details.filter(|detail| detail.scheduler.is_none()) {
            let quantiles = detail.reads.whole.quantiles(detail.reads.requests);
            let curve = quantiles
                .into_iter()
                .fold(Curve::measured(&row_name(detail)), |curve, (share, ns)| {
                    curve.exact(share, ns as f64)
                });
            if curve.points.len() > 1 {
                plot.push(curve);
            }
        }
        if !plot.curves.is_empty() {
            page.push(plot);
        }
    }
}

pub(super) fn checks(page: &mut Page, document: &Document) {
    let mut table = Table::headed(
        "",
        "case",
        "steady IOPS | in flight, counted | by Little's law | at the device",
    );
    for detail in &document.subject.jobs {
        let samples = samples(document, &detail.case);
        let wall_ns = total(samples.iter().map(|sample| sample.wall_ns));
        let queued = samples.iter().filter_map(|sample| sample.device);
        let queued_ns = total(queued.map(|device| device.queue_ns));
        let number =
            |value: Option<f64>| value.map_or_else(Cell::empty, |value| Cell::number(value, 0));
        table.row([
            Cell::text(detail.case.trim_start_matches("job/")),
            number(detail.steady_per_second),
            number(detail.in_flight),
            Cell::number(detail.in_flight_by_law, 0),
            number((queued_ns > 0).then(|| queued_ns as f64 / wall_ns.max(1) as f64)),
        ]);
    }
    page.heading("Checks");
    page.paragraph(
        "`steady IOPS` is the rate while the queue was full, without ramp-up and drain. The mean \
         number in flight must be IOPS times mean latency (Little's law). Requests in flight that \
         are not at the device wait in front of it.",
    );
    page.push(table);
}

pub(super) fn published(page: &mut Page) {
    let title = "2007: Pentium 4 at 3.4 GHz, SATA drive, Linux 2.6.20; means of reads and writes";
    let mut table = Table::headed(
        title,
        "engine",
        "queue depth | read IOPS | write IOPS | submit (ms) | complete (ms) | sum (ms) | \
         CPU (%) | context switches",
    );
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
