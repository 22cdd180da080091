//! From the samples of an experiment about cached reads to its figures.
//!
//! Everything is a difference or a ratio within rounds. A figure whose cases were not measured, or
//! not often enough, is not there.

use super::names::{self, HitStep};
use super::orders::Order;
use super::subject::{Counted, Document, MAIN_BLOCK_BYTES, Subject};
use ugeom_harness::figure::{CONFIDENCE, Figure, Goal, Unit};
use ugeom_harness::observed::Observed;
use ugeom_measure::units::size_human;
use ugeom_measure::{Center, Interval, Noise};
use ugeom_report::Seen;

/// Goals are for caches that no processor holds, bytes.
const GOALS_FROM_BYTES: u64 = 1 << 30;

/// Computes all figures of a document from its samples, and puts them in.
pub fn compute(document: &mut Document) {
    let table = Table::of(document);
    let subject = &document.subject;
    let mut figures = differences(&table, subject);
    figures.extend(orders(&table, subject));
    figures.extend(ahead(&table, subject));
    figures.extend(ways(&table, subject));
    figures.extend(shares(&table, subject));
    figures.extend(lookups(&table, subject));
    figures.extend(floors(&table));
    let overhead = Interval::exact(subject.overhead_bytes_a_block, CONFIDENCE);
    let what = "memory of the cache beyond its blocks, for each block";
    let overhead = Figure::plain("overhead", what, Unit::Bytes, overhead);
    figures.push(overhead.with_goal(Goal::Under(64.0)));
    if subject.size_bytes < GOALS_FROM_BYTES {
        figures.iter_mut().for_each(|figure| figure.goal = None);
    }
    document.noise = table.noise();
    document.figures = figures;
}

/// The ways to read that a document has in the part of the hits, beside the kernel's and the bare
/// ones.
pub fn class_ways(document: &Document) -> Vec<String> {
    ways_where(document, Counted::is_of_hits)
}

/// The ways of the caches that read while buffers are recycled.
pub fn recycled_ways(document: &Document) -> Vec<String> {
    let ways = ways_where(document, |counted| !counted.is_of_hits());
    match ways.is_empty() {
        // An older result, which did not count in this part.
        true => class_ways(document),
        false => ways,
    }
}

fn ways_where(document: &Document, is: impl Fn(&Counted) -> bool) -> Vec<String> {
    let mut ways = Vec::new();
    for counted in document.subject.caches.iter().filter(|one| is(one)) {
        if !ways.contains(&counted.way) {
            ways.push(counted.way.clone());
        }
    }
    ways
}

/// The observations, by the names of the cases.
pub struct Table {
    times: Observed,
}

impl Table {
    /// Those of a document.
    pub fn of(document: &Document) -> Self {
        Self {
            times: Observed::times(document),
        }
    }

    /// A weighted sum of cases within rounds; none when one of them was not measured.
    pub fn contrast(&self, weights: &[(&str, f64)]) -> Option<Center> {
        self.times.contrast(weights)
    }

    /// The time of one iteration of a case with its spread, ns.
    pub fn typical(&self, name: &str) -> Option<Interval> {
        Some(self.times.typical(name)?.interval())
    }

    /// The same with its observations.
    pub fn seen(&self, name: &str) -> Option<Seen> {
        Some(Seen::from(&self.times.typical(name)?))
    }

    /// The estimate of a difference, ns.
    pub fn difference(&self, changed: &str, base: &str) -> Option<f64> {
        Some(self.times.difference(base, changed)?.estimate())
    }

    /// How often `base` goes into `changed`.
    pub fn ratio(&self, changed: &str, base: &str) -> Option<Center> {
        self.times.ratio(changed, base)
    }

    /// A weighted sum of cases as a share of the case `whole`, per cent, within rounds: parts of a
    /// read never exceed the read, except where a part has no more than noise; then the share ends
    /// at 0 and at 100.
    pub fn share(&self, whole: &str, weights: &[(&str, f64)]) -> Option<Center> {
        let names = std::iter::once(whole).chain(weights.iter().map(|one| one.0));
        let cases: Option<Vec<usize>> = names.map(|name| self.times.position(name)).collect();
        let values = self.times.values(&cases?, |values| {
            let (whole, parts) = values.split_first()?;
            let part: f64 = parts.iter().zip(weights).map(|(ns, one)| ns * one.1).sum();
            (*whole > 0.0).then(|| (part / whole * 100.0).clamp(0.0, 100.0))
        });
        Center::of(&values).ok()
    }

    fn noise(&self) -> Option<Noise> {
        let (first, second) = (
            names::hits("pread", 4096, Order::Shuffled),
            names::hits_again("pread", 4096, Order::Shuffled),
        );
        self.times.noise(&first, &second)
    }
}

/// A way's part of a figure's name: `hash.16k`.
fn id(way: &str) -> String {
    way.replace(' ', ".")
}

/// The cost of random order over sequential, divided into memory and lookup: for each size of a
/// read a family.
fn differences(table: &Table, subject: &Subject) -> Vec<Figure> {
    let mut out = Vec::new();
    for &read in &subject.reads_bytes {
        let mut family = Vec::new();
        let mut add = |name: &str, what: &str, case: &dyn Fn(Order) -> String| {
            let (shuffled, sequential) = (case(Order::Shuffled), case(Order::Sequential));
            let center = table.contrast(&[(&shuffled, 1.0), (&sequential, -1.0)]);
            let id = format!("random.{name}.{}", names::kib(read));
            let what = format!("random less sequential, {} reads: {what}", size_human(read));
            family.extend(center.map(|center| (id, what, center)));
        };
        add("memory", "the bare copy", &|order| {
            names::hits("memcpy", read, order)
        });
        add("pread", "pread", &|order| names::hits("pread", read, order));
        for index in ["hash", "splay"] {
            let way = names::class(index, MAIN_BLOCK_BYTES);
            let what = format!("a read through the cache ({way})");
            add(&id(&way), &what, &|order| names::hits(&way, read, order));
            let what = format!("the lookup alone ({way})");
            let name = format!("lookup.{}", id(&way));
            add(&name, &what, &|order| {
                names::steps(HitStep::Lookup, &way, read, order)
            });
        }
        let count = family.len();
        out.extend(
            family
                .iter()
                .filter_map(|(id, what, center)| Figure::judged(id, what, Unit::Ns, center, count)),
        );
    }
    out
}

/// The ways of the hits, and those of the recycled buffers, that cases may exist for.
fn all_ways(subject: &Subject) -> Vec<String> {
    let plain = ["memcpy", "mmap", "pread", "md"].map(str::to_owned);
    let blocks = subject.blocks_bytes.iter();
    let classes =
        blocks.flat_map(|block| ["hash", "splay"].map(|index| names::class(index, *block)));
    let ahead = names::ahead(&names::class("hash", MAIN_BLOCK_BYTES));
    let more = std::iter::once(ahead).chain(subject.through.iter().cloned());
    plain.into_iter().chain(classes).chain(more).collect()
}

/// The ratio of random to sequential.
fn orders(table: &Table, subject: &Subject) -> Vec<Figure> {
    let mut out = Vec::new();
    for way in all_ways(subject) {
        for &read in &subject.reads_bytes {
            let (size, shown) = (names::kib(read), size_human(read));
            let parts: [(&str, &dyn Fn(Order) -> String); 2] = [
                ("hits", &|order| names::hits(&way, read, order)),
                ("recycled", &|order| names::recycled(&way, read, order)),
            ];
            for (part, case) in parts {
                let (shuffled, sequential) = (case(Order::Shuffled), case(Order::Sequential));
                let Some(ratio) = table.ratio(&shuffled, &sequential) else { continue };
                let what = format!("{part}: random against sequential, {way}, {shown} reads");
                let id = format!("order.{part}.{}.{size}", id(&way));
                out.extend(Figure::typical(&id, &what, Unit::Times, &ratio));
            }
        }
    }
    out
}

/// The gain of read-ahead for a sequential reader while buffers are recycled.
fn ahead(table: &Table, subject: &Subject) -> Vec<Figure> {
    let plain = names::class("hash", MAIN_BLOCK_BYTES);
    let figure = |read: &u64| {
        let case = |way: &str| names::recycled(way, *read, Order::Sequential);
        let ratio = table.ratio(&case(&plain), &case(&names::ahead(&plain)))?;
        let (size, shown) = (names::kib(*read), size_human(*read));
        let what =
            format!("sequential, {shown} reads, {plain}: without reading ahead against with");
        let id = format!("ahead.{}.{size}", id(&plain));
        Figure::typical(&id, &what, Unit::Times, &ratio)
    };
    subject.reads_bytes.iter().filter_map(figure).collect()
}

/// A hit of the class against the page cache, a mapping and the bare copy; at random.
fn ways(table: &Table, subject: &Subject) -> Vec<Figure> {
    let mut out = Vec::new();
    for &read in &subject.reads_bytes {
        let (size, shown) = (names::kib(read), size_human(read));
        let case = |way: &str| names::hits(way, read, Order::Shuffled);
        let (least, most) = if read == 4096 { (2.0, 1.2) } else { (1.5, 1.1) };
        for way in all_ways(subject) {
            let hit = case(&way);
            let is_main = way == names::class("hash", MAIN_BLOCK_BYTES);
            let mut add = |against: &str, what: String, ratio: Option<Center>, goal: Goal| {
                let id = format!("hit.{against}.{}.{size}", id(&way));
                let figure = ratio.and_then(|it| Figure::typical(&id, &what, Unit::Times, &it));
                out.extend(figure.map(|figure| match is_main {
                    true => figure.with_goal(goal),
                    false => figure,
                }));
            };
            if !way.starts_with("hash") && !way.starts_with("splay") {
                continue;
            }
            let what = format!("pread against a hit of {way}, {shown} at random");
            let ratio = table.ratio(&case("pread"), &hit);
            add("pread", what, ratio, Goal::AtLeast(least));
            let what = format!("a hit of {way} against mmap and copy, {shown} at random");
            let ratio = table.ratio(&hit, &case("mmap"));
            // No request asked for more than one copy's worth where a read is long.
            add("mmap", what, ratio, Goal::Under(1.0));
            let what = format!("a hit of {way} against the bare copy, {shown} at random");
            let ratio = table.ratio(&hit, &case("memcpy"));
            add("memcpy", what, ratio, Goal::Under(most));
        }
    }
    out
}

/// The parts of a cached read: differences as shares of the whole.
fn shares(table: &Table, subject: &Subject) -> Vec<Figure> {
    let mut out = Vec::new();
    for &read in &subject.reads_bytes {
        let (size, shown) = (names::kib(read), size_human(read));
        let mut add = |name: &str, what: &str, whole: &str, weights: &[(&str, f64)]| {
            let Some(center) = table.share(whole, weights) else { return };
            let id = format!("share.{name}.{size}");
            let what = format!("{what}, {shown} at random");
            out.extend(Figure::typical(&id, &what, Unit::Percent, &center));
        };
        let order = Order::Shuffled;
        for index in ["hash", "splay"] {
            let way = names::class(index, MAIN_BLOCK_BYTES);
            let (hit, way_id) = (names::hits(&way, read, order), id(&way));
            let with_copy = names::steps(HitStep::LookupAndCopy, &way, read, order);
            let without = names::steps(HitStep::Lookup, &way, read, order);
            let name = |part: &str| format!("{part}.{way_id}");
            let what = |part: &str| format!("{part}, of a hit of {way}");
            let path = [(hit.as_str(), 1.0), (with_copy.as_str(), -1.0)];
            add(&name("path"), &what("the path of the request"), &hit, &path);
            let copy = [(with_copy.as_str(), 1.0), (without.as_str(), -1.0)];
            add(&name("copyout"), &what("the copy"), &hit, &copy);
            let lookup = [(without.as_str(), 1.0), (names::LOOP, -1.0)];
            add(&name("lookup"), &what("the lookup"), &hit, &lookup);
        }
        let (pread, mmap) = (
            names::hits("pread", read, order),
            names::hits("mmap", read, order),
        );
        let kernel = [(pread.as_str(), 1.0), (mmap.as_str(), -1.0)];
        let what = "system call and page cache, of a pread";
        add("kernel", what, &pread, &kernel);
        add(
            "kernel.copy",
            "the copy, of a pread",
            &pread,
            &[(mmap.as_str(), 1.0)],
        );
    }
    out
}

/// The lookup alone, and a miss.
fn lookups(table: &Table, subject: &Subject) -> Vec<Figure> {
    let (small, large) = (subject.index_blocks_small, subject.index_blocks);
    let mean = |id: &str, what: String, case: &str| {
        let mean = table.typical(case)?;
        Some(Figure::plain(id, &what, Unit::Ns, mean))
    };
    let lookup = |index: &str, id: &str, blocks: u64| {
        let what = format!("a lookup, {index}, {blocks} blocks");
        mean(id, what, &names::lookup(index, blocks))
    };
    let miss = |index: &str| {
        let way = names::class(index, MAIN_BLOCK_BYTES);
        let what = format!("a miss without the read below, {way}");
        mean(&format!("miss.{}", id(&way)), what, &names::miss(&way))
    };
    let ratio = |id: &str, what: String, changed: String, base: &str, goal: Goal| {
        let ratio = table.ratio(&changed, base)?;
        Some(Figure::typical(id, &what, Unit::Times, &ratio)?.with_goal(goal))
    };
    let hot = lookup("hash", "lookup.hash.hot", small);
    let hash = names::lookup("hash", large);
    let load = "a dependent load from an array of the hash index's size";
    let against_load = format!("a lookup among {large} blocks against a dependent load");
    let against_splay = format!("splay against hash, a lookup among {large} blocks");
    let figures = [
        hot.map(|figure| figure.with_goal(Goal::Under(10.0))),
        lookup("splay", "lookup.splay.hot", small),
        lookup("hash", "lookup.hash", large),
        lookup("splay", "lookup.splay", large),
        mean("lookup.load", load.to_owned(), names::LOAD),
        mean(
            "lookup.hash16",
            "hashing 16 bytes".to_owned(),
            names::HASH_16,
        ),
        miss("hash").map(|figure| figure.with_goal(Goal::Under(150.0))),
        miss("splay"),
        ratio(
            "lookup.against.load",
            against_load,
            hash.clone(),
            names::LOAD,
            Goal::Under(1.3),
        ),
        ratio(
            "lookup.against.splay",
            against_splay,
            names::lookup("splay", large),
            &hash,
            Goal::AtLeast(5.0),
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// The cost of the bench itself.
fn floors(table: &Table) -> Vec<Figure> {
    let floors = [
        (
            "floor.loop",
            "one iteration of the loop over offsets",
            names::LOOP,
        ),
        ("floor.clock", "reading the clock", names::CLOCK),
    ];
    let figure = |(id, what, case): (&str, &str, &str)| {
        Some(Figure::plain(id, what, Unit::Ns, table.typical(case)?))
    };
    floors.into_iter().filter_map(figure).collect()
}
