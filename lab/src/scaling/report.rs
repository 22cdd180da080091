//! The report of an experiment about scaling, made from its document alone.

use super::findings::{Against, Judgement, Step, judge, rate, rates, seen};
use super::knobs::{FINAL, Knob, POOLS_AWAY, REGISTRY_AWAY};
use super::published::{JUDGED, Line, OVERALL, PROCESSES, ROWS, judged};
use super::subject::Document;
use ugeom_harness::figure::{Figure, Unit, amount, value};
use ugeom_harness::observed::Observed;
use ugeom_measure::Interval;
use ugeom_measure::ministat::Difference;
use ugeom_report::text::counted;
use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Rows, Table};

/// The steps of the seed that this program has nothing like: what they were, and why not.
const NO_SUCH_LOCK: [(&str, &str); 2] = [
    (
        "lock pool of 1024",
        "no such lock: each thread sleeps in its own mailbox",
    ),
    (
        "page-lock hash",
        "no such lock: memory is lent by its owner and not looked up by page",
    ),
];

/// The result as a page, beside the table that was published.
pub fn report(document: &Document) -> Page {
    let mut page = Page::new("scaling", "ugeom lab scaling");
    let rates = rates(document);
    let judgement = judge(document);
    page.question =
        "how do IOPS without a device scale with workers, and what does each knob gain?".to_owned();
    page.answer = answer(document, &rates, &judgement);
    page.brief = brief(document);
    page.summary = Some(summary(document, &rates, &judgement));
    page.pictured(ladder_plot(document, &rates));
    page.head(document, &[]);
    page.paragraph(format!(
        "Requests as raidtest makes them (1 sector to 128 KiB, about 64 KiB, all reads as \
         published) on {}, which touches no data.",
        document.subject.target
    ));
    ladder(&mut page, document, &rates);
    steps(&mut page, document, &rates, &judgement);
    taken_away(&mut page, document, &judgement);
    page.list(shares(document));
    published(&mut page);
    page.rounds(document);
    limits(&mut page, document);
    page
}

fn answer(document: &Document, rates: &Observed, judgement: &Judgement) -> String {
    let cores = document.subject.cores;
    let (Some(one), Some(all)) = (rate(rates, FINAL, 1), rate(rates, FINAL, cores)) else {
        return "No answer yet: too few rounds.".to_owned();
    };
    let iops = |interval: &Interval| amount(interval, Unit::PerSecond);
    let mut text = format!("All knobs on: 1 worker {}", iops(&one));
    if cores > 1 {
        text.push_str(&format!(", {cores} workers {}", iops(&all)));
    }
    let (wall, cpu) = (document.figure("scaling"), document.figure("scaling.cpu"));
    if let Some((wall, cpu)) = wall.zip(cpu) {
        text.push_str(&format!(
            ": {} of linear by wall time, {} by CPU time",
            wall.amount(),
            cpu.amount()
        ));
    }
    let sum = judgement.step(Against::First, FINAL, cores);
    if let Some(sum) = sum.filter(|sum| sum.significant) {
        let factor = amount(&sum.ratio, Unit::Times);
        text.push_str(&format!(". All knobs off to on: {factor}"));
    }
    let gains = judgement.steps.iter().filter(|step| {
        step.against == Against::Before && step.workers == cores && step.significant
    });
    if let Some(best) = gains.max_by(|a, b| a.ratio.low.total_cmp(&b.ratio.low)) {
        let factor = amount(&best.ratio, Unit::Times);
        text.push_str(&format!("; largest step: {}, {factor}", best.row));
    }
    text + "."
}

fn brief(document: &Document) -> String {
    let cores = document.subject.cores;
    let (one, scaling) = (document.figure("one"), document.figure("scaling"));
    match one.zip(scaling) {
        Some((one, scaling)) => format!(
            "{} with one worker; {cores} workers: {} of linear",
            one.amount(),
            scaling.amount()
        ),
        None => one.map_or("no answer".to_owned(), |one| one.amount()),
    }
}

/// One worker, and as many as cores where there are several.
fn one_and_all(cores: u64) -> Vec<u64> {
    let mut both = vec![1, cores];
    both.dedup();
    both
}

/// The ladder with one worker and with as many as cores, and the description of each step.
fn summary(document: &Document, rates: &Observed, judgement: &Judgement) -> Table {
    let cores = document.subject.cores;
    let both = one_and_all(cores);
    let workers = both.iter().map(|workers| counted(*workers, "worker"));
    let workers: Vec<String> = workers.collect();
    let columns = std::iter::once("IOPS; each row adds a knob");
    let columns = columns.chain(workers.iter().map(String::as_str));
    let columns = columns.chain(["step", "published"]);
    let mut table = Table::new("", columns.map(Column::text));
    for knob in &document.subject.ladder {
        let cell = |workers: u64| match rate(rates, &knob.id, workers) {
            Some(rate) => {
                let iops = value(rate.estimate, Unit::PerSecond);
                Cell::amount(&rate, Unit::PerSecond).shown_as(iops.replace(" IOPS", ""))
            }
            None => Cell::empty(),
        };
        let step = judgement.step(Against::Before, &knob.id, cores);
        let step = step.map_or_else(Cell::empty, |step| match step.significant {
            true => {
                Cell::amount(&step.ratio, Unit::Times).shown_as(amount(&step.ratio, Unit::Times))
            }
            false => Cell::text("not significant"),
        });
        let line = knob.published.as_ref().and_then(|name| {
            let row = ROWS.iter().find(|row| row.knob == name)?;
            Some(line_text(row.line.as_ref()?))
        });
        let cells = std::iter::once(Cell::text(&knob.id));
        let cells = cells.chain(both.iter().map(|workers| cell(*workers)));
        table.row(cells.chain([step, Cell::text(line.unwrap_or_default())]));
    }
    table
}

/// The parts of the machine and of the workers in the share of linear.
fn shares(document: &Document) -> Option<String> {
    let amount = |id: &str| document.figure(id).map(Figure::amount);
    let (workers, machine) = (amount("scaling")?, amount("scaling.machine")?);
    let by_cpu = amount("scaling.cpu").map_or(String::new(), |cpu| {
        format!(" By CPU time, which leaves out waiting for a core, they reach {cpu}.")
    });
    let apart = amount("scaling.apart").zip(amount("scaling.shared"));
    let apart = apart.map_or(String::new(), |(apart, shared)| {
        format!(
            " With a stack each, where they share nothing, they reach {apart}: one stack for all \
             gives {shared} of that rate."
        )
    });
    let filled = document.figure("scaling.filled");
    let filled_words = filled.map_or(String::new(), |figure| {
        format!(", threads that fill their core {}", figure.amount())
    });
    let not_whole = filled.is_some_and(|figure| figure.interval.high < NOT_WHOLE_SHARE);
    let not_whole = match (not_whole, document.host.cores_whole) {
        (false, _) => String::new(),
        (true, Some(whole)) if whole < document.subject.cores => format!(
            " The {} processors are hyperthreads of {whole} cores: linear scaling is out of reach.",
            document.subject.cores
        ),
        (true, _) => " The kernel reports whole cores, but code that fills a core runs slower \
                      while the other processors work, as on hyperthreads. Linear scaling is out \
                      of reach then."
            .to_owned(),
    };
    Some(format!(
        "The workers reach {workers} of linear; on this machine, threads with dependent steps of \
         computation reach {machine}{filled_words}.{not_whole}{apart}{by_cpu}"
    ))
}

/// Where threads that fill their core reach less than this share of linear, processors share cores.
const NOT_WHOLE_SHARE: f64 = 0.95;

/// The name of a column: workers that must share a core are said to.
fn column(workers: u64, cores: u64) -> String {
    match workers {
        over if over > cores => format!("{over} over"),
        fits => fits.to_string(),
    }
}

fn ladder(page: &mut Page, document: &Document, rates: &Observed) {
    let subject = &document.subject;
    page.heading("The ladder, thousand IOPS: each row adds a knob to the one before");
    let columns = subject.workers.iter();
    let columns = columns.map(|workers| Column::number(&column(*workers, subject.cores), "k"));
    let mut table = Table::new("", [Column::text("row")].into_iter().chain(columns));
    let mut add = |knob: &Knob, name: &str| {
        let cell = |workers: &u64| match rate(rates, &knob.id, *workers) {
            Some(rate) => Cell::number(rate.estimate / 1e3, 0),
            None => Cell::empty(),
        };
        let cells = subject.workers.iter().map(cell);
        table.row([Cell::text(name)].into_iter().chain(cells));
    };
    for (index, knob) in subject.ladder.iter().enumerate() {
        add(knob, &knob.id);
        if let Some(spinning) = subject.spinning.get(index) {
            add(spinning, &format!("  {}", spinning.what));
        }
    }
    page.push(table);
    page.list(NO_SUCH_LOCK.map(|(name, why)| format!("{name}: {why}.")));
    page.paragraph(format!(
        "Columns are workers; \"over\" marks more workers than the {} cores, which they share. The \
         rows that spin are not steps of the ladder.",
        subject.cores
    ));
    page.push(ladder_plot(document, rates));
    page.push(growth(document, rates));
}

/// The ladder with one worker and with as many as cores.
fn ladder_plot(document: &Document, rates: &Observed) -> Rows {
    let subject = &document.subject;
    let axis = Axis::log10("rate", "IOPS");
    let both = one_and_all(subject.cores);
    let series = both.iter().map(|workers| counted(*workers, "worker"));
    let mut plot = Rows::points("The ladder: medians, 10th to 90th percentile", axis, series);
    for knob in &subject.ladder {
        plot.row(
            &knob.id,
            both.iter().map(|workers| seen(rates, &knob.id, *workers)),
        );
    }
    plot
}

/// Rates against workers, for the first and the last row.
fn growth(document: &Document, rates: &Observed) -> Curves {
    let subject = &document.subject;
    let axes = (
        Axis::linear("workers", "threads"),
        Axis::log10("rate", "IOPS"),
    );
    let mut curves = Curves::new("How each row scales with workers", axes.0, axes.1);
    for knob in &subject.ladder {
        let mut curve = Curve::measured(&knob.id);
        for workers in &subject.workers {
            if let Some(rate) = seen(rates, &knob.id, *workers) {
                curve = curve.point(*workers as f64, rate);
            }
        }
        curves.push(curve);
    }
    curves.upright("cores", subject.cores as f64);
    curves
}

/// ministat's verdict in a cell.
fn ministat_cell(found: Option<&Difference>) -> Cell {
    match found {
        None => Cell::text("too few"),
        Some(found) if found.proven => Cell::text(format!(
            "{:+.1} % +/- {:.1}",
            found.percent, found.percent_half_width
        )),
        Some(_) => Cell::text("not significant"),
    }
}

/// Our verdict in a cell.
fn our_cell(step: &Step) -> Cell {
    let ratio = &step.ratio;
    let interval = amount(ratio, Unit::Times);
    match (step.significant, ratio.contains(1.0)) {
        (true, _) => Cell::text(interval),
        (false, true) => Cell::text(format!("not significant: {interval}")),
        (false, false) => Cell::text(format!("too few processes: {interval}")),
    }
}

fn step_columns(rounds: u64) -> [Column; 4] {
    [
        Column::text("row"),
        Column::text("ministat, 3 runs"),
        Column::text(&format!("ministat, {rounds} runs")),
        Column::text("ugeom: processes, one family"),
    ]
}

fn step_row(table: &mut Table, step: &Step) {
    table.row([
        Cell::text(&step.row),
        ministat_cell(step.few.as_ref()),
        ministat_cell(step.all.as_ref()),
        our_cell(step),
    ]);
}

fn steps(page: &mut Page, document: &Document, rates: &Observed, judgement: &Judgement) {
    let rounds = rates.values(&[0], |one| Some(one[0])).len() as u64;
    let cores = document.subject.cores;
    for (against, words) in [
        (Against::Before, "Each row against the one before"),
        (Against::First, "Each row against the first"),
        (Against::Parked, "Spinning against parking"),
    ] {
        page.heading(&format!("{words}, {cores} workers"));
        let mut table = Table::new("", step_columns(rounds));
        let steps = judgement.steps.iter();
        for step in steps.filter(|step| step.against == against && step.workers == cores) {
            step_row(&mut table, step);
        }
        page.push(table);
    }
    page.heading("Each row against the one before, with any number of workers: ours");
    let subject = &document.subject;
    let columns = subject.workers.iter();
    let columns = columns.map(|workers| Column::text(&column(*workers, cores)));
    let mut table = Table::new("", [Column::text("row")].into_iter().chain(columns));
    for knob in subject.ladder.iter().skip(1) {
        let cell = |workers: &u64| match judgement.step(Against::Before, &knob.id, *workers) {
            Some(step) if step.significant => Cell::text(value(step.ratio.estimate, Unit::Times)),
            Some(_) => Cell::text("not significant"),
            None => Cell::empty(),
        };
        let cells = subject.workers.iter().map(cell);
        table.row([Cell::text(&knob.id)].into_iter().chain(cells));
    }
    page.push(table);
}

/// A knob buys nothing when what it could buy at the most is less than this share.
const NOTHING_SHARE: f64 = 0.05;

/// The gain of a knob that was switched off.
fn worth(step: &Step) -> &'static str {
    let is_small = step
        .ratio
        .lies_within(1.0 - NOTHING_SHARE, 1.0 + NOTHING_SHARE);
    match (step.significant, step.ratio.estimate < 1.0) {
        (true, true) => "slower, significant: the gain of the knob",
        (true, false) => "faster, significant: the cost of the knob",
        (false, _) if is_small => "within 5 %: the knob has no effect",
        (false, _) => "not significant",
    }
}

fn taken_away(page: &mut Page, document: &Document, judgement: &Judgement) {
    page.heading("All knobs but one");
    let columns = ["without", "workers", "IOPS, ugeom", "meaning"].map(Column::text);
    let mut table = Table::new("", columns);
    for knob in &document.subject.taken_away {
        let steps = judgement.steps.iter();
        for step in steps.filter(|step| step.against == Against::Last && step.row == knob.id) {
            table.row([
                Cell::text(&knob.what),
                Cell::count(step.workers),
                our_cell(step),
                Cell::text(worth(step)),
            ]);
        }
    }
    page.push(table);
    let cores = document.subject.cores;
    for (id, what) in [
        (REGISTRY_AWAY, "lock-free registry"),
        (POOLS_AWAY, "per-core pools"),
    ] {
        if let Some(step) = judgement.step(Against::Last, id, cores) {
            page.paragraph(format!(
                "Without the {what}, {cores} workers: {}.",
                worth(step)
            ));
        }
    }
    page.paragraph("The options of each row, for any command that opens a target:");
    let rows = document
        .subject
        .ladder
        .iter()
        .chain(&document.subject.taken_away);
    page.list(rows.map(|knob| {
        let words = knob
            .set
            .split_whitespace()
            .map(|word| format!(" --set {word}"));
        match words.collect::<String>() {
            none if none.is_empty() => format!("{}: the defaults, with statistics=counts", knob.id),
            set => format!("{}:{set}", knob.id),
        }
    }));
}

/// The published table, through the same code.
fn published(page: &mut Page) {
    page.heading("GEOM's limits as published, IOPS");
    let columns = PROCESSES.map(|count| Column::number(&count.to_string(), "/s"));
    let columns = [Column::text("row")].into_iter().chain(columns);
    let words = ["as published", "recomputed"].map(Column::text);
    let mut table = Table::new("", columns.chain(words));
    let mut before = None;
    for row in &ROWS {
        let rates = row.rates.map(|rate| Cell::number(rate, 0));
        let ours = before
            .zip(row.line)
            .and_then(|(base, line)| judged(base, row, &line));
        let printed = Cell::text(row.line.as_ref().map_or(String::new(), line_text));
        let ours = ours
            .as_ref()
            .map_or_else(Cell::empty, |found| ministat_cell(Some(found)));
        let name = row.knob.rsplit('.').next().unwrap_or(row.knob);
        let cells = [Cell::text(name)].into_iter().chain(rates);
        table.row(cells.chain([printed, ours]));
        before = Some(row);
    }
    page.push(table);
    let overall = judged(&ROWS[0], &ROWS[ROWS.len() - 1], &OVERALL);
    let overall = overall.map_or(String::new(), |found| {
        format!(
            "{:.3} % +/- {:.4} %",
            found.percent, found.percent_half_width
        )
    });
    page.paragraph(format!(
        "Verdicts are for {} processes, each row against the one before. The last row against the \
         first: printed {}, recomputed {overall}. Three runs a row, four cores. Compare steps, not \
         rates.",
        PROCESSES[JUDGED],
        line_text(&OVERALL)
    ));
}

fn line_text(line: &Line) -> String {
    match line {
        Line::NotProven => "not significant".to_owned(),
        Line::Proven { percent, .. } => format!("{:+.1} % +/- {:.1}", percent.0, percent.1),
    }
}

fn limits(page: &mut Page, document: &Document) {
    page.heading("What cannot be concluded");
    page.list([
        "The IOPS of a disk: these are the upper bound of the request path, and show which part of \
         it is the first limit."
            .to_owned(),
        format!(
            "Scaling beyond {} cores: more workers than cores show how a lock behaves when its \
             holder loses the core.",
            document.subject.cores
        ),
        "ministat's verdicts: they assume independent runs and do not correct for the number of \
         comparisons; they are shown because the published ones are ministat's."
            .to_owned(),
    ]);
}
