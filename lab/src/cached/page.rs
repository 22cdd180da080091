//! The report of an experiment about cached reads: tables of the three parts, the profile, the
//! published figures, and the conclusions. It is made from the document alone.

use super::counts;
use super::findings::{Table, class_ways, recycled_ways};
use super::names;
use super::orders::Order;
use super::profile::{Profile, profiles};
use super::published::{self, CURRENT_RANDOM, CURRENT_SEQUENTIAL, OLD, SPEEDS};
use super::subject::{Counted, Document, MAIN_BLOCK_BYTES, words};
use ugeom_harness::figure::{CONFIDENCE, Figure, Unit, amount, value};
use ugeom_harness::observed::Observed;
use ugeom_measure::Interval;
use ugeom_measure::units::size_human;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Table as Printed, Value};

/// The page of a document.
pub fn page(document: &Document) -> Page {
    let subject = &document.subject;
    let asked = match &subject.file {
        Some(file) => format!("ugeom lab cached {file}"),
        None => "ugeom lab cached".to_owned(),
    };
    let mut page = Page::new(&document.experiment, &asked);
    page.question = "what does a cached read cost, and why is random slower?".to_owned();
    page.answer = answer(document);
    page.brief = brief(document);
    page.summary = Some(summary(document));
    page.pictured(picture(document));
    if let Some(facts) = &document.target {
        page.warnings.extend(facts.no_device().map(|why| {
            format!("{why}; cached reads need none, and permit no conclusion about a disk")
        }));
    }
    page.head(document, &subject.left_out);
    page.heading("Hits: everything is in memory");
    page.paragraph(resident(document));
    hits(&mut page, document);
    page.heading("The regime of 2006: buffers are recycled all the time");
    page.paragraph(format!(
        "A memory disk of {} under a cache of {}: few blocks are still cached when they are read \
         again, so nearly every read recycles a buffer and fills it.",
        size_human(subject.recycled_media_bytes),
        size_human(subject.recycled_cache_bytes)
    ));
    recycled(&mut page, document);
    page.heading("Counters of the caches");
    counts::section(&mut page, document);
    page.heading("Lookups only");
    lookups(&mut page, document);
    page.heading("What it means");
    page.list(meaning(document));
    profile_section(&mut page, &profiles(document));
    then_and_now(&mut page, document);
    page.rounds(document);
    page
}

fn figure<'a>(document: &'a Document, id: &str) -> Option<&'a Figure> {
    document.figure(id)
}

/// A share in words; at most its upper end where it may be nothing.
fn share(document: &Document, id: &str) -> String {
    match figure(document, id) {
        Some(figure) if figure.interval.low <= 0.0 => {
            format!("at most {}", value(figure.interval.high, Unit::Percent))
        }
        _ => words(document, id),
    }
}

fn main_way(index: &str) -> String {
    names::class(index, MAIN_BLOCK_BYTES)
}

/// The time of a random read of 4 KiB in each way, and the reason for slow random reads.
fn answer(document: &Document) -> String {
    let time = |way: &str| time(document, way);
    let (Some(class), Some(pread), Some(copy)) =
        (time(&main_way("hash")), time("pread"), time("memcpy"))
    else {
        return "No answer yet: too little was measured.".to_owned();
    };
    format!(
        "Random 4 KiB from memory, wall time: {class} through the cache class, {pread} by pread, \
         {copy} as a bare copy. {}",
        blame(document, 4096)
    )
}

/// The reads that the answer compares, at random and in sequence.
fn picture(document: &Document) -> Rows {
    let orders = [Order::Shuffled, Order::Sequential];
    let axis = Axis::linear("time of a read of 4 KiB", "ns");
    let mut bars = Rows::bars("A 4 KiB read from memory", axis, orders.map(Order::word));
    let table = Table::of(document);
    for (name, way) in [
        ("through the cache class", main_way("hash")),
        ("pread", "pread".to_owned()),
        ("a bare copy", "memcpy".to_owned()),
    ] {
        let seen = |order| table.seen(&names::hits(&way, 4096, order));
        bars.row(name, orders.map(seen));
    }
    bars
}

/// A random hit of 4 KiB with its interval.
fn time(document: &Document, way: &str) -> Option<String> {
    let case = names::hits(way, 4096, Order::Shuffled);
    let interval = Table::of(document).typical(&case)?;
    Some(amount(&interval, Unit::Ns))
}

fn brief(document: &Document) -> String {
    match time(document, &main_way("hash")).zip(time(document, "pread")) {
        Some((class, pread)) => {
            format!("random 4 KiB: {class} through the cache, {pread} by pread")
        }
        None => "no answer".to_owned(),
    }
}

/// The ways to read, at random and in sequence, and the parts of a hit.
fn summary(document: &Document) -> Printed {
    let columns = [
        "4 KiB read that is in memory",
        "random",
        "sequential",
        "CPU, random",
    ];
    let mut printed = Printed::new("", columns.map(Column::text));
    let table = Table::of(document);
    let mut ways: Vec<String> = ["memcpy", "mmap", "pread"].map(str::to_owned).to_vec();
    ways.extend(["hash", "splay"].map(main_way));
    ways.extend(document.subject.through.iter().cloned());
    for way in ways {
        let case = |order| names::hits(&way, 4096, order);
        let times = [Order::Shuffled, Order::Sequential].map(|order| table.typical(&case(order)));
        let [Some(random), Some(sequential)] = times else { continue };
        let cpu = cpu_ns(document, &case(Order::Shuffled));
        let cpu = cpu.map_or(String::new(), |ns| value(ns, Unit::Ns));
        let times = [random, sequential].map(|time| Cell::amount(&time, Unit::Ns));
        printed.row(
            [Cell::text(&way)]
                .into_iter()
                .chain(times)
                .chain([Cell::text(cpu)]),
        );
    }
    for (what, id) in [
        ("of a hit: the lookup", "share.lookup.hash.16k.4k"),
        ("of a hit: the copy", "share.copyout.hash.16k.4k"),
        ("of a hit: the request's path", "share.path.hash.16k.4k"),
    ] {
        let cell = Cell::text(share(document, id));
        // So that the level of the interval is stated.
        let cell = match figure(document, id) {
            Some(figure) => cell.with_value(Value::Interval(figure.interval)),
            None => cell,
        };
        printed.row([Cell::text(what), cell]);
    }
    printed
}

/// Why random is slower than sequential, if it is.
fn blame(document: &Document, read: u64) -> String {
    let (size, shown) = (names::kib(read), size_human(read));
    let of = |id: &str| figure(document, &format!("random.{id}.{size}"));
    let (Some(whole), Some(memory), Some(lookup)) =
        (of("hash.16k"), of("memory"), of("lookup.hash.16k"))
    else {
        return String::new();
    };
    if whole.significant != Some(true) || whole.interval.low <= 0.0 {
        return format!(
            "Random reads of {shown} are not significantly slower than sequential ones (difference \
             at most {}).",
            whole.at_most()
        );
    }
    let culprit = if memory.interval.low > lookup.interval.high {
        "because of memory, not the lookup"
    } else if lookup.interval.low > memory.interval.high {
        "because of the lookup"
    } else {
        "because of both memory and lookup"
    };
    format!(
        "Random reads of {shown} are slower than sequential ones by {}, {culprit}: bare copy {}, \
         lookup {}.",
        whole.amount(),
        memory.amount(),
        lookup.amount()
    )
}

fn resident(document: &Document) -> String {
    let subject = &document.subject;
    let [before, after] = subject.resident_percent;
    let (mut reads, mut runs) = (0, 0);
    for process in &document.processes {
        for round in &process.rounds {
            let cases = process.cases.iter().zip(&round.samples);
            for (_, sample) in cases.filter(|(name, _)| name.starts_with("hits/")) {
                reads += sample.device.map_or(0, |device| device.reads);
                runs += 1;
            }
        }
    }
    let caches = subject.caches.iter().filter(|cache| cache.is_of_hits());
    let count = |sum: (u64, u64), cache: &Counted| (sum.0 + cache.misses, sum.1 + cache.asked());
    let (misses, asked) = caches.fold((0, 0), count);
    let own = match subject.own_read_bytes {
        Some(bytes) => format!(" (this process read {bytes} bytes from devices)"),
        None => String::new(),
    };
    format!(
        "{} are read. {before:.1} % of the file was in the page cache before and {after:.1} % \
         after; its device completed {reads} reads of all programs during {runs} runs{own}; the \
         caches missed {misses} of {asked} blocks.",
        size_human(subject.size_bytes),
    )
}

/// A row of times: one for each order, the speed in sequence and at random, and the ratio.
fn row(document: &Document, table: &Table, part: &str, way: &str, read: u64) -> Option<Vec<Cell>> {
    let name = |order: Order| match part {
        "hits" => names::hits(way, read, order),
        _ => names::recycled(way, read, order),
    };
    let mut cells = vec![Cell::text(way), Cell::text(size_human(read))];
    for &order in &document.subject.orders {
        let time = table.typical(&name(order))?;
        cells.push(Cell::interval(&time, 0));
    }
    for order in [Order::Shuffled, Order::Sequential] {
        let time = table.typical(&name(order))?;
        cells.push(Cell::number(read as f64 * 1e3 / time.estimate, 0));
    }
    let ratio = table.ratio(&name(Order::Shuffled), &name(Order::Sequential))?;
    let ratio = ratio.at(CONFIDENCE).ok()?;
    cells.push(Cell::interval(&ratio, 2));
    let cpu_ns = cpu_ns(document, &name(Order::Shuffled))?;
    cells.push(Cell::number(cpu_ns, 0));
    Some(cells)
}

/// CPU time of this process for one iteration, ns.
fn cpu_ns(document: &Document, case: &str) -> Option<f64> {
    let cpu = Observed::of(document, |sample| {
        Some(sample.cpu.process_ns as f64 / sample.iterations.max(1) as f64)
    });
    Some(cpu.typical(case)?.estimate())
}

fn columns(document: &Document) -> Vec<Column> {
    let mut columns = vec![Column::text("way"), Column::text("read")];
    let orders = document.subject.orders.iter();
    columns.extend(orders.map(|order| Column::number(order.word(), "ns")));
    columns.push(Column::number("random", "MB/s"));
    columns.push(Column::number("seq.", "MB/s"));
    columns.push(Column::number("random/seq.", ""));
    columns.push(Column::number("CPU", "ns"));
    columns
}

fn part(page: &mut Page, document: &Document, part: &str, ways: &[String]) {
    let table = Table::of(document);
    let mut printed = Printed::new("Time of one read, by path and order", columns(document));
    for &read in &document.subject.reads_bytes {
        for way in ways {
            if let Some(cells) = row(document, &table, part, way, read) {
                printed.row(cells);
            }
        }
    }
    page.push(printed);
}

fn hits(page: &mut Page, document: &Document) {
    let plain = ["memcpy", "mmap", "pread"].map(str::to_owned);
    let served = document.subject.through.clone();
    let ways = plain.into_iter().chain(class_ways(document));
    let ways: Vec<String> = ways.chain(served.iter().cloned()).collect();
    part(page, document, "hits", &ways);
    if !served.is_empty() {
        page.paragraph(format!(
            "Through {}: the cache of {}, served by this process, queue depth 1.",
            served.join(" and "),
            main_way("hash")
        ));
    }
    let table = Table::of(document);
    let orders = [Order::Sequential, Order::Shuffled];
    let axis = Axis::linear("time of a read of 4 KiB", "ns");
    let mut bars = Rows::bars("Reading 4 KiB from memory", axis, orders.map(Order::word));
    for way in &ways {
        let time = |order| table.seen(&names::hits(way, 4096, order));
        bars.row(way, orders.map(time));
    }
    page.push(bars);
}

fn recycled(page: &mut Page, document: &Document) {
    let ways: Vec<String> = std::iter::once("md".to_owned())
        .chain(recycled_ways(document))
        .collect();
    part(page, document, "recycled", &ways);
}

fn lookups(page: &mut Page, document: &Document) {
    let mut printed = Printed::headed("", "what", "time");
    let ids = [
        "lookup.hash.hot",
        "lookup.splay.hot",
        "lookup.hash",
        "lookup.splay",
        "lookup.load",
        "lookup.hash16",
        "miss.hash.16k",
        "miss.splay.16k",
        "lookup.against.load",
        "lookup.against.splay",
    ];
    for id in ids {
        if let Some(figure) = figure(document, id) {
            printed.row([Cell::text(&figure.what), Cell::figure(figure)]);
        }
    }
    page.push(printed);
    page.paragraph(format!(
        "In 2006 a lookup among {} buffers took {} ns with a splay tree, the best case for it, and \
         hashing 16 bytes {} ns.",
        document.subject.index_blocks_small,
        published::LOOKUP_BEST_NS,
        published::HASH_16_NS
    ));
}

fn meaning(document: &Document) -> Vec<String> {
    let mut out = Vec::new();
    for &read in &document.subject.reads_bytes {
        let (size, shown) = (names::kib(read), size_human(read));
        out.push(blame(document, read));
        out.push(format!(
            "A random pread of {shown}: {} copy, {} system call and page cache. A hit of the cache \
             class: {} copy, {} lookup, {} path of the request; with a splay tree, the lookup is \
             {}.",
            share(document, &format!("share.kernel.copy.{size}")),
            share(document, &format!("share.kernel.{size}")),
            share(document, &format!("share.copyout.hash.16k.{size}")),
            share(document, &format!("share.lookup.hash.16k.{size}")),
            share(document, &format!("share.path.hash.16k.{size}")),
            share(document, &format!("share.lookup.splay.16k.{size}")),
        ));
    }
    out.push(matching_sizes(document));
    out.push(counts::reading_ahead(document));
    out.retain(|point| !point.is_empty());
    out
}

/// The finding of 2006: random hurts when the read is smaller than the block, and stops hurting
/// when they match.
fn matching_sizes(document: &Document) -> String {
    let ratio = |read: &str| {
        let id = format!("order.recycled.hash.16k.{read}");
        figure(document, &id).map(|figure| figure.interval)
    };
    let (Some(small), Some(matching)) = (ratio("4k"), ratio("16k")) else {
        return String::new();
    };
    let words = |ratio: &Interval| amount(ratio, Unit::Times);
    let verdict = if small.low > 1.0 && small.low > matching.high {
        "the result of 2006 is reproduced: random reads smaller than a block lose most, because \
         each fills a whole block and uses a part of it"
    } else {
        "the result of 2006 (random reads are slower where they are smaller than a block, and not \
         where they match it) is not reproduced"
    };
    format!(
        "With recycled buffers of 16 KiB, random reads take {} of the time of sequential ones at 4 \
         KiB and {} at 16 KiB: {verdict}.",
        words(&small),
        words(&matching)
    )
}

fn profile_section(page: &mut Page, profiles: &[Profile]) {
    if profiles.is_empty() {
        return;
    }
    page.heading("The profile");
    page.paragraph(
        "gprof's columns. A step is the difference between runs with and without it. The clock is \
         read twice a run only, so its row, the mcount of 2006, is close to 0.",
    );
    for profile in profiles {
        page.preformatted(format!("{}\n{}", profile.title, profile.text()));
    }
}

fn then_and_now(page: &mut Page, document: &Document) {
    page.heading("Then and now");
    let title = "Cached reads of 16 KiB as published";
    let mut printed = Printed::headed(title, "2006 | order", "speed (MB/s)");
    for speed in SPEEDS {
        let cells = [Cell::text(speed.kernel), Cell::text(speed.order)];
        printed.row(cells.into_iter().chain([Cell::count(speed.mb_per_s)]));
    }
    page.push(printed);
    page.paragraph(
        "As printed. The two figures of ~5.2 contradict the text around them, where splay trees \
         are slower at random; they may have been exchanged.",
    );
    let share = |rows: &[published::Row], name: &str| {
        let share = published::share_of_copy(rows, name);
        share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0))
    };
    let columns = ["lookup against copy", "2006", "here"].map(Column::text);
    let mut shapes = Printed::new(
        "The time of all lookups as a share of the copying, reads of 16 KiB, recycled buffers",
        columns,
    );
    let here = |index: &str, order: Order| {
        let title = format!("{}, reads of 16 KiB, {}", main_way(index), order.word());
        let all = profiles(document);
        let profile = all
            .iter()
            .find(|one| one.title.starts_with("Buffers recycled") && one.title.ends_with(&title));
        let share = profile.and_then(|profile| profile.share_of("lookup", "copyout"));
        share.map_or("(not measured)".to_owned(), |share| {
            format!("{:.1} %", share * 100.0)
        })
    };
    let random = share(&CURRENT_RANDOM, "buf_splay");
    let sequential = share(&CURRENT_SEQUENTIAL, "buf_splay");
    let rows = [
        ("splay tree, random", random, here("splay", Order::Shuffled)),
        (
            "splay tree, sequential",
            sequential,
            here("splay", Order::Sequential),
        ),
        (
            "hash, sequential and some random",
            share(&OLD, "gbincore"),
            here("hash", Order::Sequential),
        ),
    ];
    for (what, then, now) in rows {
        shapes.row([Cell::text(what), Cell::text(then), Cell::text(now)]);
    }
    page.push(shapes);
}
