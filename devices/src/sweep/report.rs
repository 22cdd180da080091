//! The page of a sweep: the answer, the measurements step by step, the load of the device, and the
//! diagnosis.

use super::diagnosis::{self, Reached};
use super::findings::{Findings, Sums, WayFindings};
use super::published;
use super::subject::{CacheMode, Document, Subject, SweepTarget};
use ugeom_harness::figure::{Unit, value};
use ugeom_harness::total;
use ugeom_measure::Interval;
use ugeom_measure::units::{grouped, size_exact, size_human};
use ugeom_report::text::in_a_shell;
use ugeom_report::{Axis, Cell, Column, Curve, CurveKind, Curves, Page, Table};

/// The page of a document.
pub fn page(document: &Document) -> Page {
    let subject = &document.subject;
    let findings = Findings::of(document);
    let mut page = Page::new("sweep", &asked(document));
    page.question = "what limits this device, and from which block size on?".to_owned();
    page.answer = answer(document, &findings);
    page.brief = brief(document, &findings);
    page.summary = Some(summary(document, &findings));
    page.pictured(picture(document, &findings));
    page.warnings = warnings(document, &findings);
    page.head(document, &left_out(document, &findings));
    for found in &findings.ways {
        let Some(part) = subject.parts.get(found.part) else { continue };
        let title = title(subject, part, found);
        page.heading(&title);
        page.paragraph(format!("The target: {}", part.target));
        page.push(steps(found));
        let device = device(part, found);
        if !device.rows.is_empty() {
            page.push(device);
        }
        let said = diagnosis::of(subject, part, found);
        page.list(said);
        page.push(rates(part, found, true));
        page.push(rates(part, found, false));
    }
    page.rounds(document);
    then(&mut page);
    page
}

/// The command that would do it again.
fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let mut text = "ugeom lab sweep".to_owned();
    let blocks = || subject.cases.iter().map(|case| case.block_bytes);
    for (flag, bytes, usual) in [
        ("--min", blocks().min(), 512),
        ("--max", blocks().max(), 512 << 10),
        ("--bytes", Some(subject.bytes), 64 << 20),
    ] {
        if let Some(bytes) = bytes.filter(|bytes| *bytes != usual) {
            text += &format!(" {flag} {}", size_exact(bytes));
        }
    }
    for (flag, set) in [("--write", subject.write), ("--random", subject.random)] {
        text += if set { " " } else { "" };
        text += if set { flag } else { "" };
    }
    if let [part] = &subject.parts[..] {
        text += &format!(" {}", in_a_shell(&part.target));
    }
    text
}

/// The cases that were left out, and the block size whose runs are the shortest.
fn left_out(document: &Document, findings: &Findings) -> Vec<String> {
    let subject = &document.subject;
    let mut left_out = subject.left_out.clone();
    let short = findings
        .ways
        .iter()
        .flat_map(|found| &found.steps)
        .filter(|(block, sums)| {
            let most = subject.bytes - subject.bytes % block.max(&1);
            sums.each(sums.bytes) < 0.99 * most as f64
        });
    let least = short.map(|(block, sums)| (sums.each(sums.bytes) as u64, *block));
    if let Some((bytes, block)) = least.min() {
        left_out.push(format!(
            "bytes: runs of less than {} (blocks of {}: {})",
            size_human(subject.bytes),
            size_human(block),
            size_human(bytes)
        ));
    }
    left_out
}

/// A limit of each kind for each way that reached its device.
fn answer(document: &Document, findings: &Findings) -> String {
    let subject = &document.subject;
    let several = subject.parts.len() > 1;
    let mut said = Vec::new();
    let no_device = no_device(document, findings);
    if let Some(why) = &no_device {
        said.push(format!(
            "No device served the reads of the {}: {why}. They permit no conclusion about a disk.",
            subject
                .parts
                .first()
                .map_or("target", |part| part.name.as_str())
        ));
    }
    for found in &findings.ways {
        let Some(part) = subject.parts.get(found.part) else { continue };
        // The table has what is beside the target; without its device there is nothing else.
        let is_target = found.part == 0;
        let is_file = found.way != CacheMode::Stack;
        if no_device.is_some() && is_file || no_device.is_none() && !is_target {
            continue;
        }
        let name = match several {
            true => format!("{}, {}", part.name, found.way.word()),
            false => found.way.word().to_owned(),
        };
        let ahead = diagnosis::read_ahead(found).map_or(String::new(), |text| format!(" {text}"));
        said.push(format!("{name}: {}{ahead}", diagnosis::short(found)));
    }
    said.join(" ")
}

fn brief(document: &Document, findings: &Findings) -> String {
    if no_device(document, findings).is_some() {
        return "no device served the reads".to_owned();
    }
    match findings.ways.first() {
        Some(found) => diagnosis::short(found).trim_end_matches('.').to_owned(),
        None => "no answer".to_owned(),
    }
}

/// Why the reads of the first part reached no device; none when they did, or when it is no file.
/// The kernel's counters of direct reads decide where there are some.
fn no_device(document: &Document, findings: &Findings) -> Option<String> {
    let facts = document.target.as_ref()?;
    if let Some(why) = facts.no_device() {
        return Some(why);
    }
    let direct = findings
        .ways
        .iter()
        .find(|found| found.part == 0 && found.way == CacheMode::Direct)?;
    let counts = direct
        .steps
        .iter()
        .map(|(_, sums)| Some((sums.device?.bytes(), sums.bytes)));
    let counts: Option<Vec<(u64, u64)>> = counts.collect();
    let (moved, asked) = counts?.into_iter().fold((0.0, 0.0), |(moved, asked), one| {
        (moved + one.0 as f64, asked + one.1 as f64)
    });
    (asked > 0.0 && moved < SERVED_SHARE * asked).then(|| {
        let device = facts.device.as_deref().unwrap_or("its device");
        format!("{device} moved {:.0} % of the bytes", moved / asked * 100.0)
    })
}

/// A device that moved less than this share of the bytes did not serve them.
const SERVED_SHARE: f64 = 0.1;

fn warnings(document: &Document, findings: &Findings) -> Vec<String> {
    let facts = document.target.as_ref();
    let mut warnings = facts.map_or_else(Vec::new, |facts| facts.between());
    let left_out = &document.subject.left_out;
    if let Some(first) = left_out.first() {
        let more = match left_out.len() {
            1 => String::new(),
            all => format!(", and {} more (--all)", all - 1),
        };
        warnings.push(format!("left out: {first}{more}"));
    }
    warnings.extend(findings.ways.iter().find_map(|found| lent(document, found)));
    warnings
}

/// Bytes per ns that a core does not copy: memory gives it some 20, its second-level cache less
/// than this.
const COPIED_MAX: f64 = 100.0;

/// Reads that are faster than memory is copied: the stack lends its memory.
fn lent(document: &Document, found: &WayFindings) -> Option<String> {
    let part = document.subject.parts.get(found.part)?;
    let rate = |sums: &Sums| sums.bytes as f64 / sums.wall_ns.max(1) as f64;
    let rates = found.steps.iter().map(|(_, sums)| rate(sums));
    let fastest = rates.fold(0.0, f64::max);
    (fastest > COPIED_MAX).then(|| {
        format!(
            "{}: {} is more than memory can be copied at: no data is copied, the stack lends its \
             memory",
            part.target,
            value(fastest * 1e9, Unit::BytesPerSecond)
        )
    })
}

/// The rates of every second block size, each way a column.
fn summary(document: &Document, findings: &Findings) -> Table {
    let ways: Vec<&WayFindings> = findings.ways.iter().collect();
    let name = |found: &&WayFindings| {
        let part = document.subject.parts.get(found.part);
        let part = part.map_or("", |part| part.name.as_str());
        Column::text(&format!("{part} {}", found.way.word()))
    };
    let columns = [Column::text("block")]
        .into_iter()
        .chain(ways.iter().map(name));
    let mut table = Table::new("", columns);
    let blocks = document.subject.cases.iter().map(|case| case.block_bytes);
    let mut blocks: Vec<u64> = blocks.collect();
    blocks.sort_unstable();
    blocks.dedup();
    for block in blocks.into_iter().step_by(2) {
        let cell = |found: &&WayFindings| {
            let step = found
                .steps
                .iter()
                .zip(&found.times)
                .find(|(step, _)| step.0 == block);
            let Some((step, time)) = step else {
                return Cell::empty();
            };
            let Some(time) = time else {
                // Too few for an interval.
                let rate = step.1.per_second(step.1.bytes);
                return Cell::text(value(rate, Unit::BytesPerSecond));
            };
            let rate = |ns: f64| block as f64 * 1e9 / ns;
            let rate = Interval {
                estimate: rate(time.estimate),
                low: rate(time.high),
                high: rate(time.low),
                confidence: time.confidence,
            };
            Cell::amount(&rate, Unit::BytesPerSecond)
        };
        let cells = [Cell::text(size_human(block))]
            .into_iter()
            .chain(ways.iter().map(cell));
        table.row(cells);
    }
    table
}

fn title(subject: &Subject, part: &SweepTarget, found: &WayFindings) -> String {
    let what = match (subject.write, subject.random) {
        (false, false) => "sequential reads",
        (false, true) => "random reads",
        (true, false) => "sequential writes",
        (true, true) => "random writes",
    };
    format!("{}, {}: {what}", part.name, found.way.word())
}

/// The transfers of each block size as the program counts them.
fn steps(found: &WayFindings) -> Table {
    // Units stand in the names: eleven columns leave no room for more.
    let columns = [
        "block",
        "bytes",
        "time s",
        "MB/s",
        "IOPS",
        "user s",
        "sys s",
        "CPU %",
        "ctx sw",
        "ns/request",
        "sys ms/MiB",
    ];
    let columns = columns.map(|name| Column::number(name, ""));
    let mut table = Table::new(
        "Mean of the runs of each block size (ctx sw: context switches)",
        columns,
    );
    for (block, sums) in &found.steps {
        let seconds = |ns: u64| Cell::number(sums.each(ns) / 1e9, 3);
        let rate = sums.per_second(sums.bytes) / 1e6;
        table.row([
            block_cell(*block),
            Cell::number(sums.each(sums.bytes), 0)
                .shown_as(size_human(sums.each(sums.bytes) as u64)),
            seconds(sums.wall_ns),
            Cell::number(rate, if rate < 10.0 { 2 } else { 1 }),
            Cell::number(sums.per_second(sums.transactions), 0),
            seconds(sums.user_ns),
            seconds(sums.system_ns),
            Cell::number(sums.cpu_share() * 100.0, 1),
            Cell::number(sums.each(sums.switches), 0),
            Cell::number(sums.wall_ns as f64 / sums.transactions.max(1) as f64, 0),
            Cell::number(sums.system_ns_per_mib() / 1e6, 3),
        ]);
    }
    table
}

fn block_cell(block_bytes: u64) -> Cell {
    Cell::count(block_bytes).shown_as(size_human(block_bytes))
}

/// The load of the device during the runs, in the columns of BSD's iostat.
fn device(part: &SweepTarget, found: &WayFindings) -> Table {
    let columns = [
        "block",
        "requests",
        "transfers",
        "KiB/t",
        "tps",
        "MiB/s",
        "us",
        "ni",
        "sy",
        "in",
        "id",
    ];
    let columns = columns.map(|name| Column::number(name, ""));
    let columns = columns.into_iter().chain([Column::text("merging")]);
    let name = part.device.as_deref().unwrap_or("");
    let mut table = Table::new(
        &format!("Load of {name} during the runs, in iostat's columns"),
        columns,
    );
    for (block, sums) in &found.steps {
        let Some(counts) = sums.device else { continue };
        let transfers = counts.transfers();
        let kib = counts.bytes() as f64 / 1024.0 / transfers.max(1) as f64;
        let all_ns = total(sums.machine_ns);
        let share = |ns: &u64| Cell::number(*ns as f64 * 100.0 / all_ns.max(1) as f64, 0);
        let row = [
            block_cell(*block),
            Cell::number(sums.each(sums.transactions), 0),
            Cell::number(sums.each(transfers), 0),
            Cell::number(kib, 2),
            Cell::number(sums.per_second(transfers), 0),
            Cell::number(sums.per_second(counts.bytes()) / 1_048_576.0, 2),
        ];
        let shares = sums.machine_ns.iter().map(share);
        let reached = Reached::of(sums).map_or("", Reached::word);
        table.row(row.into_iter().chain(shares).chain([Cell::text(reached)]));
    }
    table
}

/// The plot of the answer: the rates of all ways.
fn picture(document: &Document, findings: &Findings) -> Curves {
    let rate = Axis::log10("rate", "MB/s");
    let mut all = Curves::new(
        "Throughput against block size",
        Axis::bytes("block size"),
        rate,
    );
    for found in &findings.ways {
        let Some(part) = document.subject.parts.get(found.part) else { continue };
        let measured = rates(part, found, true).curves.into_iter();
        for mut curve in measured.filter(|curve| curve.kind == CurveKind::Measured) {
            curve.name = format!("{}, {}", part.name, found.way.word());
            all.push(curve);
        }
    }
    all
}

/// Rate against block size, with the fitted limits: bytes a second, or transactions a second.
fn rates(part: &SweepTarget, found: &WayFindings, bytes: bool) -> Curves {
    let way = found.way.word();
    let (title, unit) = match bytes {
        true => (
            format!("{}, {way}: throughput against block size", part.name),
            "MB/s",
        ),
        false => (
            format!("{}, {way}: IOPS against block size", part.name),
            "1/s",
        ),
    };
    let mut curves = Curves::new(&title, Axis::bytes("block size"), Axis::log10("rate", unit));
    // From the time of one block, ns, to the rate.
    let of_time = |block: f64, ns: f64| match bytes {
        true => block / ns * 1e3,
        false => 1e9 / ns,
    };
    let mut measured = Curve::measured("measured");
    for ((block, sums), time) in found.steps.iter().zip(&found.times) {
        let block = *block as f64;
        let mean_ns = sums.wall_ns as f64 / sums.transactions.max(1) as f64;
        let rate = time.filter(|time| time.low > 0.0).map(|time| Interval {
            estimate: of_time(block, time.estimate),
            low: of_time(block, time.high),
            high: of_time(block, time.low),
            confidence: time.confidence,
        });
        let exact = || Interval::exact(of_time(block, mean_ns), 0.95);
        measured = measured.point(block, rate.unwrap_or_else(exact));
    }
    curves.push(measured);
    if let Some(fitted) = found.limits.fitted() {
        let limits = fitted.limits;
        let seen = diagnosis::seen(found);
        let doubt = if seen.is_some() {
            ""
        } else {
            " (does not fit)"
        };
        let mut model = Curve::fitted(&format!("model{doubt}, p = {:.1}", limits.sharpness));
        let (first, last) = (found.steps.first(), found.steps.last());
        let ends = first
            .zip(last)
            .map(|(first, last)| (first.0 as f64, last.0 as f64));
        let (first, last) = ends.unwrap_or((1.0, 0.0));
        let next = |at: &f64| Some(at * std::f64::consts::SQRT_2);
        // A damaged result may hold a block of nothing.
        let drawn = std::iter::successors(Some(first.max(1.0)), next);
        for at in drawn.take_while(|at| *at <= last * 1.001) {
            model = model.exact(at, of_time(at, limits.time(at)));
        }
        curves.push(model);
        // No line for a limit that was not reached, and none where nothing is said of limits.
        match (seen, bytes) {
            (Some(seen), true) if seen.bandwidth => {
                curves.level("bandwidth", limits.bandwidth() * 1e3);
            }
            (Some(seen), false) if seen.transactions => {
                curves.level("transactions", limits.transaction_rate() * 1e9);
            }
            _ => {}
        }
        if seen.is_some_and(|seen| seen.transactions && seen.bandwidth) {
            curves.upright("knee", limits.knee());
        }
    }
    curves
}

/// The figures of 2004 beside these.
fn then(page: &mut Page) {
    let Some(fitted) = published::limits() else { return };
    page.heading("Then");
    let limits = fitted.limits;
    let [first, .., last] = published::ROWS;
    page.paragraph(format!(
        "The ATA disk of 2004: at most {} transactions/s and {}, crossover at {}, p = {:.1}; the \
         model misses by {}. Its system time fell by a factor of {:.0} from blocks of 512 bytes to \
         512 KiB. The machines differ: compare shapes, not figures.",
        grouped((limits.transaction_rate() * 1e9).round() as u64),
        value(limits.bandwidth() * 1e9, Unit::BytesPerSecond),
        value(limits.knee(), Unit::Bytes),
        limits.sharpness,
        value(fitted.rms * 100.0, Unit::Percent),
        first.system_seconds / last.system_seconds,
    ));
}
