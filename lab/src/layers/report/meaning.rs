//! What the rows mean: the answer, the findings, and what they do not say.

use super::super::subject::{Disk, Document};
use ugeom_harness::figure::{Figure, Reached, Unit, value};
use ugeom_measure::units::{duration_human, size_human};
use ugeom_report::head::{doubts, is_disturbed};
use ugeom_report::text::too_few;

/// The answer in one sentence with its interval, and what an interval is.
pub(super) fn answer(document: &Document) -> String {
    sentence(document).unwrap_or_else(|| {
        format!(
            "There is none yet: {} for an interval, which needs three.",
            too_few(document.rounds())
        )
    })
}

/// On a busy machine the times of memory disks are those of other work; CPU time is not. A target
/// may have to wait for its device, which CPU time knows nothing of.
fn answers_by_cpu(document: &Document) -> bool {
    document.subject.target.is_none() && is_disturbed(document)
}

fn sentence(document: &Document) -> Option<String> {
    let by_cpu = answers_by_cpu(document);
    let find = |id: &str| match by_cpu {
        true => document.figure(&format!("by_cpu.{id}")),
        false => document.figure(id),
    };
    let (geom, layer) = (find("geom.cost"), find("layer.mean"));
    let adds = |who: &str, figure: &Figure| match is_above_zero(figure) {
        true => format!("{who} adds {}", figure.amount()),
        false => format!("what {who} adds is not proven, {}", figure.amount()),
    };
    let geom_adds = geom.map(|geom| adds("GEOM itself", geom));
    let parts: Vec<String> = geom_adds
        .into_iter()
        .chain(layer.map(|layer| adds("each layer", layer)))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let mut text = parts.join(" to a read and ");
    if by_cpu {
        text = format!("By CPU time, because other work ran as well: {text}");
    } else if let Some(first) = text.get(..1) {
        text = first.to_uppercase() + &text[1..];
    }
    let disk = &document.subject.disk;
    let shares: Vec<String> = geom
        .into_iter()
        .chain(layer)
        .map(|one| share(one, disk))
        .collect();
    Some(format!(
        "{text}: {} of a real disk's {} ({}). In parentheses stands the interval in which the true \
         value lies with 95 % confidence.",
        shares.join(" and "),
        duration_human(disk.read_ns),
        disk.source
    ))
}

fn is_above_zero(figure: &Figure) -> bool {
    figure.interval.low > 0.0 && !figure.is_unproven()
}

/// A cost as a share of a real disk's read; its upper end when it may be nothing.
fn share(figure: &Figure, disk: &Disk) -> String {
    let percent = |ns: f64| value(ns / disk.read_ns * 100.0, Unit::Percent);
    match is_above_zero(figure) {
        true => percent(figure.interval.estimate),
        false => format!("at most {}", percent(figure.interval.high.max(0.0))),
    }
}

/// What the figures mean, a line or two each.
pub(super) fn findings(document: &Document) -> Vec<String> {
    let lines = [
        layers(document),
        flat(document),
        sizes(document),
        slopes(document),
        statistics(document),
        queued(document),
        served(document),
        goals(document),
    ];
    lines.into_iter().flatten().collect()
}

/// The layers of the chain, one by one.
fn layers(document: &Document) -> Option<String> {
    let chain = document.subject.chain.iter().skip(1);
    let step = |link: &super::super::Link| {
        let figure = document.figure(&format!("layer.{}", link.provider))?;
        let proven = if figure.is_unproven() {
            ", not proven"
        } else {
            ""
        };
        Some(format!(
            "{} {}{proven}",
            link.class.to_lowercase(),
            figure.amount()
        ))
    };
    let steps: Vec<String> = chain.filter_map(step).collect();
    let share = document.figure("layer.share")?.amount();
    let below = document.subject.bottom();
    Some(format!(
        "Layer by layer: {}. On average that is {share} of the time of {below}.",
        steps.join("; ")
    ))
}

/// Without GEOM the providers are one and the same path.
fn flat(document: &Document) -> Option<String> {
    let flat = document
        .figures
        .iter()
        .filter(|figure| figure.id.starts_with("plain."));
    let (moved, still): (Vec<&Figure>, Vec<&Figure>) =
        flat.partition(|figure| figure.proven == Some(true));
    if moved.is_empty() {
        let half = |figure: &&Figure| figure.interval.half_width();
        let provable = still.iter().map(half).max_by(f64::total_cmp)?;
        return Some(format!(
            "Without GEOM the providers cost the same: no difference is proven, one of {} would \
             have been.",
            value(provable, Unit::Ns)
        ));
    }
    let moved: Vec<String> = moved
        .iter()
        .map(|figure| format!("{}: {}", figure.what, figure.amount()))
        .collect();
    Some(format!(
        "Without GEOM the providers should cost the same, and do not ({}): so much is the place in \
         memory and no layer.",
        moved.join("; ")
    ))
}

fn sizes(document: &Document) -> Option<String> {
    let figure = |size: &u64| document.figure(&format!("size.{size}"));
    let figures: Vec<(&u64, &Figure)> = document
        .subject
        .sizes_bytes
        .iter()
        .filter_map(|size| Some((size, figure(size)?)))
        .collect();
    let (largest, last) = figures.last()?;
    let moved: Vec<String> = figures
        .iter()
        .filter(|(_, figure)| figure.proven == Some(true))
        .map(|(size, figure)| format!("{} at {}", figure.amount(), size_human(**size)))
        .collect();
    let provable = value(last.interval.half_width(), last.unit);
    Some(if moved.is_empty() {
        format!(
            "The size of the read does not change what the layers cost, as far as can be seen: up \
             to {} no difference is proven (one of {provable} would have been).",
            size_human(**largest)
        )
    } else {
        format!(
            "The size of the read changes what the layers cost: {}.",
            moved.join(", ")
        )
    })
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
    // Results of earlier versions have no such pile.
    let passed = amount("slope.passed.counts").map_or_else(String::new, |passed| {
        format!(
            " Slicers are asked for this experiment only: else the stack knows their step and \
             makes it itself, and one more costs {passed} with counts."
        )
    });
    Some(format!(
        "In piles of up to {deepest} layers, one more slicer costs {off} without statistics and \
         {counts} with counts; a layer that also sees requests come back (a completion hook) \
         {hooks}. The least that a layer can cost that is asked, a bare indirect call, is {limit} \
         here.{passed}"
    ))
}

fn statistics(document: &Document) -> Option<String> {
    let counts = document.figure("statistics.counts")?;
    let time = document.figure("statistics.time")?;
    let told = |figure: &Figure| {
        let proven = if figure.is_unproven() {
            ", not proven"
        } else {
            ""
        };
        format!("{}{proven}", figure.amount())
    };
    Some(format!(
        "Statistics on every provider of {}: counting costs {}, counting and timing one read in {} \
         costs {}.",
        document.subject.deepest(),
        told(counts),
        super::super::memory::TIME_ONE_IN,
        told(time)
    ))
}

fn queued(document: &Document) -> Option<String> {
    let figure = |id: &str| document.figure(id).map(Figure::estimate);
    let wall = document.figure("wall.queued")?.amount();
    let threads = document.figure("queued.scaling").map(|ratio| {
        let times = ratio.amount();
        format!(" Two threads together get {times} as many reads done as one.")
    });
    Some(format!(
        "Queued instead of direct (GEOM's own threads g_down and g_up carry each request, as in \
         2002): {wall} a read. The calling thread is charged {} of CPU time for it, GEOM's threads \
         {}, the whole machine {}: the warning of 2002 not to look at the caller alone.{}",
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
            "through {way} {time}, of which the stack with its layers is {}",
            stack.estimate()
        ))
    };
    let ways: Vec<String> = document.subject.through.iter().filter_map(way).collect();
    if ways.is_empty() {
        return None;
    }
    Some(format!(
        "Served to another program, one read of {} at a time: {}. Who waits for each answer waits \
         for wake-ups and system calls, not for layers.",
        document.subject.deepest(),
        ways.join("; ")
    ))
}

fn goals(document: &Document) -> Option<String> {
    let judged: Vec<(&Figure, Reached)> = document
        .figures
        .iter()
        .filter_map(|figure| Some((figure, figure.reached()?)))
        .collect();
    if judged.is_empty() {
        return None;
    }
    let reached = judged
        .iter()
        .filter(|(_, reached)| *reached == Reached::Yes)
        .count();
    let list = |wanted: Reached| {
        let those = judged.iter().filter(|(_, reached)| *reached == wanted);
        let names: Vec<String> = those
            .map(|(figure, _)| format!("{}, {}", figure.what, figure.amount()))
            .collect();
        names.join("; ")
    };
    let mut text = format!("Goals: {reached} of {} reached", judged.len());
    for (word, which) in [("missed", Reached::No), ("undecided", Reached::Open)] {
        let names = list(which);
        if !names.is_empty() {
            text.push_str(&format!(". {word}: {names}"));
        }
    }
    Some(text + ".")
}

/// What cannot be concluded.
pub(super) fn limits(document: &Document) -> Vec<String> {
    let subject = &document.subject;
    let mut lines = Vec::new();
    if subject.target.is_none() {
        lines.push(format!(
            "How long a disk takes: the {} above are {}. With a target they are measured.",
            value(subject.disk.read_ns, Unit::Ns),
            subject.disk.source
        ));
        lines.push(
            "What a kernel's GEOM costs: these layers run inside one program, and no read but the \
             control's, and those that are served, enters the kernel."
                .to_owned(),
        );
    }
    lines.push(
        "What a program with other work sees: here the same bytes are read again and again, from \
         the processor's nearest cache."
            .to_owned(),
    );
    if !document.by_process() {
        lines.push(format!(
            "Differences of a nanosecond between single rows: where code and data happen to lie \
             in memory makes as much, and only {} fresh processes would show it.",
            ugeom_harness::document::PROCESSES_MIN
        ));
    }
    if !doubts(document).is_empty() {
        lines.push("Much from absolute times: see what is doubtful above.".to_owned());
    }
    lines
}
