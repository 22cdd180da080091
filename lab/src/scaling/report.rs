//! The report of an experiment about scaling, made from its document alone.

use super::findings::{Against, Judgement, Step, judge, rate, rates};
use super::knobs::{FINAL, Knob, POOLS_AWAY, REGISTRY_AWAY};
use super::published::{JUDGED, Line, OVERALL, PROCESSES, ROWS, judged};
use super::subject::Document;
use ugeom_harness::figure::{Figure, Unit, value};
use ugeom_measure::ministat::Difference;
use ugeom_measure::{Blocks, Interval};
use ugeom_report::text::counted;
use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Rows, Table};

/// The steps of the seed that this program has nothing like: what they were, and why not.
const NO_SUCH_LOCK: [(&str, &str); 2] = [
    (
        "lock pool of 1024",
        "no such lock here: threads sleep in their own mailboxes, there is no pool of sleep \
         mutexes that they could share",
    ),
    (
        "page-lock hash",
        "no such lock here: memory is lent by its owner and never looked up by page",
    ),
];

/// The report.
#[must_use]
pub fn report(document: &Document) -> Page {
    let mut page = Page::new("scaling", "ugeom lab scaling");
    page.head(document, &[]);
    let rates = rates(document);
    let judgement = judge(document);
    let subject = &document.subject;
    page.question = format!(
        "How many requests a second does the machinery carry when the device costs nothing, how \
         does that grow with workers, and which knob buys what? Requests as raidtest makes them up \
         (1 sector to 128 KiB, about 64 KiB, all reads as published) on {}, which touches no data.",
        subject.target
    );
    page.answer = answer(document, &rates, &judgement);
    ladder(&mut page, document, &rates);
    steps(&mut page, document, &rates, &judgement);
    taken_away(&mut page, document, &judgement);
    page.goals(&document.figures);
    page.list(shares(document));
    published(&mut page);
    limits(&mut page, document);
    page
}

fn answer(document: &Document, rates: &Blocks, judgement: &Judgement) -> String {
    let cores = document.subject.cores;
    let (Some(one), Some(all)) = (rate(rates, FINAL, 1), rate(rates, FINAL, cores)) else {
        return "There are too few rounds to say.".to_owned();
    };
    let amount = |interval: &Interval| value(interval.estimate, Unit::PerSecond);
    let mut text = format!(
        "With all knobs on one worker does {} and {cores} workers on {cores} cores do {}",
        amount(&one),
        amount(&all)
    );
    if let Some(sum) = judgement.step(Against::First, FINAL, cores) {
        text.push_str(&format!(
            ", {:.0} times as many as with none ({:.0} to {:.0})",
            sum.ratio.estimate, sum.ratio.low, sum.ratio.high
        ));
    }
    let gains = judgement
        .steps
        .iter()
        .filter(|step| step.against == Against::Before && step.workers == cores && step.proven);
    if let Some(best) = gains.max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate)) {
        text.push_str(&format!(
            "; the largest step is {}, a factor of {:.1} ({:.1} to {:.1})",
            best.row, best.ratio.estimate, best.ratio.low, best.ratio.high
        ));
    }
    text + "."
}

/// What of the share of linear is the machine's, and what the workers'.
fn shares(document: &Document) -> Option<String> {
    let amount = |id: &str| document.figure(id).map(Figure::amount);
    let (workers, machine) = (amount("scaling")?, amount("scaling.machine")?);
    let by_cpu = amount("scaling.cpu").map_or(String::new(), |cpu| {
        format!(" By processor time, which leaves out waiting for a core, they reach {cpu}.")
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
            " The {} processors are the threads of {whole} cores: linear is out of reach.",
            document.subject.cores
        ),
        (true, _) => " The system takes its processors for whole cores, but they are not always \
                      that: code that fills a core gets less of it while the other processors \
                      work, as threads of one core do. Linear is out of reach then."
            .to_owned(),
    };
    Some(format!(
        "Of linear the workers reach {workers}; on this machine threads that compute one step \
         after the other reach {machine}{filled_words}.{not_whole}{apart}{by_cpu}"
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

fn ladder(page: &mut Page, document: &Document, rates: &Blocks) {
    let subject = &document.subject;
    page.heading("The ladder: thousands of requests a second, each row adds to the one before");
    let columns = subject.workers.iter();
    let columns = columns.map(|workers| Column::number(&column(*workers, subject.cores), "k/s"));
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
        "Columns are workers; \"over\" marks more workers than the {} cores, which they share. \
         The rows that spin stand beside the ladder and take no part in it.",
        subject.cores
    ));
    let axis = Axis::log10("rate", "requests/s");
    let mut both = vec![1, subject.cores];
    both.dedup();
    let series = both.iter().map(|workers| counted(*workers, "worker"));
    let mut plot = Rows::points("The ladder, with 95 % intervals", axis, series);
    for knob in &subject.ladder {
        plot.row(
            &knob.id,
            both.iter().map(|workers| rate(rates, &knob.id, *workers)),
        );
    }
    page.push(plot);
    page.push(growth(document, rates));
}

/// Rates against workers, for the first and the last row.
fn growth(document: &Document, rates: &Blocks) -> Curves {
    let subject = &document.subject;
    let axes = (
        Axis::linear("workers", "threads"),
        Axis::log10("rate", "requests/s"),
    );
    let mut curves = Curves::new("How each row grows with workers", axes.0, axes.1);
    for knob in &subject.ladder {
        let mut curve = Curve::measured(&knob.id);
        for workers in &subject.workers {
            if let Some(rate) = rate(rates, &knob.id, *workers) {
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
        Some(_) => Cell::text("not proven"),
    }
}

/// Our verdict in a cell.
fn our_cell(step: &Step) -> Cell {
    let ratio = &step.ratio;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let interval = format!(
        "{:+.1} % ({:+.1} to {:+.1})",
        percent(ratio.estimate),
        percent(ratio.low),
        percent(ratio.high)
    );
    match step.proven {
        true => Cell::text(interval),
        false => Cell::text(format!("not proven: {interval}")),
    }
}

fn step_columns(rounds: u64) -> [Column; 4] {
    [
        Column::text("row"),
        Column::text("ministat, 3 runs"),
        Column::text(&format!("ministat, {rounds} runs")),
        Column::text("ours: paired, Holm"),
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

fn steps(page: &mut Page, document: &Document, rates: &Blocks, judgement: &Judgement) {
    let rounds = rates.rounds().len() as u64;
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
            Some(step) if step.proven => {
                Cell::text(format!("{:+.0} %", (step.ratio.estimate - 1.0) * 100.0))
            }
            Some(_) => Cell::text("not proven"),
            None => Cell::empty(),
        };
        let cells = subject.workers.iter().map(cell);
        table.row([Cell::text(&knob.id)].into_iter().chain(cells));
    }
    page.push(table);
}

/// A knob buys nothing when what it could buy at the most is less than this share.
const NOTHING_SHARE: f64 = 0.05;

/// What a knob that was taken away has bought.
fn worth(step: &Step) -> &'static str {
    let is_small = step
        .ratio
        .lies_within(1.0 - NOTHING_SHARE, 1.0 + NOTHING_SHARE);
    match (step.proven, step.ratio.estimate < 1.0) {
        (true, true) => "a loss, proven: the knob buys this",
        (true, false) => "a gain, proven: the knob costs here",
        (false, _) if is_small => "no loss proven: the knob buys nothing here",
        (false, _) => "no loss proven, too uncertain to say more",
    }
}

fn taken_away(page: &mut Page, document: &Document, judgement: &Judgement) {
    page.heading("All knobs on, and one taken away");
    let columns = ["taken away", "workers", "rate, ours", "what that says"].map(Column::text);
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
    page.paragraph("To have a row for yourself, with any command that opens a target:");
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
            none if none.is_empty() => format!("{}: as it is, with statistics=counts", knob.id),
            set => format!("{}:{set}", knob.id),
        }
    }));
}

/// The published table, through the same code.
fn published(page: &mut Page) {
    page.heading("Then: GEOM's limits as published, requests a second");
    let columns = PROCESSES.map(|count| Column::number(&count.to_string(), "/s"));
    let columns = [Column::text("row")].into_iter().chain(columns);
    let words = ["printed", "this code"].map(Column::text);
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
        "Lines are those of the column of {} processes, each row against the one before. The last \
         row against the first: printed {}, by this code {overall}. Three runs a row; that machine \
         had four cores. Hold shapes beside each other, not rates: a step of theirs against a step \
         of ours.",
        PROCESSES[JUDGED],
        line_text(&OVERALL)
    ));
}

fn line_text(line: &Line) -> String {
    match line {
        Line::NotProven => "not proven".to_owned(),
        Line::Proven { percent, .. } => format!("{:+.1} % +/- {:.1}", percent.0, percent.1),
    }
}

fn limits(page: &mut Page, document: &Document) {
    page.heading("What cannot be concluded");
    page.list([
        "No disk is this fast: the figures say what the machinery would allow, and which of its \
         parts would be in the way first."
            .to_owned(),
        format!(
            "With {} cores, more workers show how a lock behaves when its holder loses the core, \
             and not how the machinery would scale on more cores.",
            document.subject.cores
        ),
        "ministat's verdict takes runs for independent and knows nothing of the other comparisons; \
         it stands here because the published one did. Ours decides."
            .to_owned(),
    ]);
}
