//! The experiment on samples whose truth is known, and once for real, small and short.

use super::names::HitStep;
use super::subject::MAIN_BLOCK_BYTES;
use super::*;
use std::sync::atomic::AtomicBool;
use ugeom_experiment::run_here;
use ugeom_harness::Settings;
use ugeom_harness::scratch::Scratch;
use ugeom_harness::{Control, CpuTimes, DeviceCounts, Machine, Measured};
use ugeom_harness::{Round, Sample, Work};
use ugeom_testkit::{ends, has};

/// As short as it can be.
fn short() -> Common {
    Common {
        seed: Some(5),
        budget_ns: Some(1),
        ..Common::default()
    }
}

/// The cost of a read on a simulated machine, ns: the copy at 10 bytes a ns, twice as slow from
/// random places where `memory` is set, and a lookup of 5 ns, or of 300 ns from random places where
/// `memory` is not set.
fn cost_ns(case: &str, memory: bool) -> f64 {
    let bytes = if case.contains(" 4k ") {
        4096.0
    } else {
        16384.0
    };
    let sequential = case.contains("sequential");
    let copy = bytes / 10.0 * if memory && !sequential { 2.0 } else { 1.0 };
    let lookup = match (case.contains("splay"), memory || sequential) {
        (true, _) => 500.0,
        (false, true) => 5.0,
        (false, false) => 300.0,
    };
    let (part, what) = case.split_once('/').unwrap();
    match part {
        "floor" => 1.0,
        "lookup" => 20.0,
        "steps" if what.starts_with("getnewbuf") => 90.0,
        "steps" if what.starts_with("lookup+copyout") => lookup + copy + 1.0,
        "steps" => lookup + 1.0,
        // A small read at random fills a whole block of 16 KiB.
        "recycled" if !sequential => 2000.0 + copy,
        "recycled" => 500.0 + copy + 1500.0 * bytes / 16384.0,
        _ if what.starts_with("pread") => copy + 400.0,
        _ if what.starts_with("m") => copy,
        _ => lookup + copy + 15.0,
    }
}

fn cases(subject: &Subject) -> Vec<String> {
    let mut cases = vec![names::LOOP.to_owned(), names::CLOCK.to_owned()];
    cases.push(names::LOAD.to_owned());
    for index in ["hash", "splay"] {
        cases.push(names::lookup(index, subject.index_blocks));
        cases.push(names::lookup(index, subject.index_blocks_small));
        cases.push(names::miss(&names::class(index, MAIN_BLOCK_BYTES)));
    }
    for &read in &subject.reads_bytes {
        for &order in &subject.orders {
            for way in ["memcpy", "mmap", "pread", "hash 16k", "splay 16k"] {
                cases.push(names::hits(way, read, order));
            }
            for way in ["md", "hash 16k", "splay 16k", "hash 16k ahead"] {
                cases.push(names::recycled(way, read, order));
            }
            for way in ["hash 16k", "splay 16k"] {
                cases.push(names::steps(HitStep::Lookup, way, read, order));
                cases.push(names::steps(HitStep::LookupAndCopy, way, read, order));
            }
        }
    }
    cases.push(names::hits_again("pread", 4096, Order::Shuffled));
    cases
}

/// The counts of the caches: of the blocks read ahead 95 % were used.
fn counted() -> Vec<Counted> {
    let hits = ["hash 16k", "splay 16k"].map(|way| Counted {
        part: names::HITS.to_owned(),
        way: way.to_owned(),
        order: Some(Order::Shuffled),
        hits: 1000,
        ..Counted::default()
    });
    let ahead = |order, readahead| Counted {
        part: names::RECYCLED.to_owned(),
        way: "hash 16k ahead".to_owned(),
        order: Some(order),
        hits: 975_000,
        misses: 25_000,
        evictions: 400_000,
        readahead,
        readahead_used: readahead / 20 * 19,
        readahead_wasted: readahead / 50,
        ..Counted::default()
    };
    let plain = ["hash 16k", "splay 16k"].map(|way| Counted {
        way: way.to_owned(),
        readahead: 0,
        ..ahead(Order::Sequential, 0)
    });
    let ahead = [ahead(Order::Sequential, 300_000), ahead(Order::Shuffled, 0)];
    hits.into_iter().chain(plain).chain(ahead).collect()
}

/// Twelve rounds, each faster or slower as a whole, each sample off by a little.
fn document(memory: bool) -> Document {
    let options = CachedOptions {
        common: short(),
        size_bytes: Some(SIZE_BYTES),
        ..CachedOptions::default()
    };
    let host = Host {
        memory_available_bytes: 64 << 30,
        ..Host::now()
    };
    let mut subject = planned(&options, &host);
    subject.overhead_bytes_a_block = 29.0;
    subject.own_read_bytes = Some(0);
    subject.caches = counted();
    let cases = cases(&subject);
    let mut random = fastrand::Rng::with_seed(3);
    let mut round = || {
        let drift = 1.0 + 0.1 * random.f64();
        let mut sample = |case: &String| {
            let off = 1.0 + 0.004 * (random.f64() - 0.5);
            let wall_ns = (cost_ns(case, memory) * 1e6 * drift * off) as u64;
            Sample {
                iterations: 1_000_000,
                wall_ns,
                cpu: CpuTimes {
                    process_ns: wall_ns,
                    ..CpuTimes::default()
                },
                work: Work::of(4096, 1),
                device: Some(DeviceCounts {
                    reads: if case.starts_with("recycled/") {
                        900_000
                    } else {
                        0
                    },
                    ..DeviceCounts::default()
                }),
                core: None,
                reference_ns: None,
                reference_cores: 1,
            }
        };
        Round {
            order: (0..cases.len()).collect(),
            samples: cases.iter().map(&mut sample).collect(),
            null_floor: None,
        }
    };
    let measured = Measured::of(cases.clone(), (0..12).map(|_| round()).collect());
    let mut document = Document::new(EXPERIMENT, host, Settings::default(), subject, measured);
    compute(&mut document);
    document
}

fn estimate(document: &Document, id: &str) -> f64 {
    let figure = document.figure(id);
    figure
        .unwrap_or_else(|| panic!("no figure {id}"))
        .interval
        .estimate
}

#[test]
fn slow_memory_is_blamed_on_the_memory_and_a_slow_lookup_on_the_lookup() {
    let slow_memory = document(true);
    // 410 ns more for the copy of 4 KiB; the drift of rounds makes everything 5 % larger.
    let lost = estimate(&slow_memory, "random.memory.4k");
    assert!((420.0..=440.0).contains(&lost), "{lost}");
    let answer = page(&slow_memory).answer;
    has(&answer, "because of memory, not the lookup");
    let slow_lookup = document(false);
    let answer = page(&slow_lookup).answer;
    // 295 ns more for the lookup, with the drift.
    let lost = estimate(&slow_lookup, "random.hash.16k.4k");
    assert!((300.0..=325.0).contains(&lost), "{lost}");
    has(&answer, "slower than sequential ones by 3");
    has(&answer, "because of the lookup");
}

#[test]
fn a_share_that_may_be_nothing_is_bounded() {
    let mut noisy = document(true);
    let mut figures = noisy.figures.iter_mut();
    let path = figures.find(|figure| figure.id == "share.path.hash.16k.4k");
    let interval = &mut path.unwrap().interval;
    (interval.low, interval.high) = (0.0, 65.0);
    let text = page(&noisy).to_screen(100, ugeom_report::Style::Plain);
    has(&text, "at most 65 %");
}

#[test]
fn shares_and_ratios_are_those_of_the_costs() {
    let document = document(true);
    // A hit of 4 KiB at random: lookup 5, copy 819, path 14, loop 1.
    let whole = 5.0 + 819.2 + 15.0;
    let near = |id: &str, truth: f64| {
        let seen = estimate(&document, id);
        assert!(
            (seen / truth - 1.0).abs() < 0.05,
            "{id}: {seen}, not {truth}"
        );
    };
    near("share.copyout.hash.16k.4k", 100.0 * 819.2 / whole);
    near(
        "share.lookup.splay.16k.4k",
        100.0 * 500.0 / (500.0 + 819.2 + 15.0),
    );
    near("hit.pread.hash.16k.4k", (819.2 + 400.0) / whole);
    near("hit.memcpy.hash.16k.4k", whole / 819.2);
    near("share.kernel.4k", 100.0 * 400.0 / (819.2 + 400.0));
    near("order.hits.memcpy.16k", 2.0);
    near("miss.hash.16k", 94.0);
    assert_eq!(estimate(&document, "overhead"), 29.0);
    assert!(document.figures.iter().any(|figure| figure.goal.is_some()));
    assert!(document.noise.is_some());
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_has_all_parts_and_says_whether_2006_holds() {
    let document = document(true);
    let text = page(&document).to_text(100);
    let flat = one_line(&text);
    for words in [
        "HITS: EVERYTHING IS IN MEMORY",
        "THE REGIME OF 2006",
        "LOOKUPS ONLY",
        "the result of 2006 is reproduced",
        "time   seconds   seconds    calls  ns/call  ns/call  name",
        "md (the read below)",
        "Buffers recycled (90 reads below for 100), hash 16k, reads of 16 KiB",
        "getnewbuf",
        "466",
        "COUNTERS OF THE CACHES",
        "Read-ahead over this memory disk of 400 MiB: sequential reads reach 1.00 x",
        "95.0 % were used",
        "at most 0 bytes were dirty",
        "14.3 %",
    ] {
        // Paragraphs wrap anywhere.
        let expected = one_line(words);
        assert!(flat.contains(&expected), "no {words:?} in:\n{text}");
    }
    assert!(!text.contains("(not measured)"), "{text}");
}

#[test]
fn the_level_of_the_shares_in_the_table_is_stated() {
    let certain = page(&document(true)).certain();
    has(&certain, "% CI, [ ] 10th to 90th");
}

#[test]
fn a_real_run_measures_hits_and_keeps_its_document() {
    let folder = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    let scratch = Scratch::new(Some(folder.path()), 5 << 20, 3, &never).unwrap();
    let options = CachedOptions {
        file: Some(scratch.path().to_owned()),
        size_bytes: Some(64 << 20),
        common: short(),
        servers: crate::served_tests::SERVERS.to_vec(),
        ..CachedOptions::default()
    };
    let mut control = Control::silent();
    let document = run_here::<Cached>(&options, &Machine, &mut control).unwrap();
    let subject = &document.subject;
    assert_eq!(subject.size_bytes, 5 << 20, "the file has no more");
    assert_eq!(subject.resident_percent, [100.0; 2]);
    assert_eq!(subject.through, ["COPY"]);
    assert!(document.figure("order.hits.COPY.16k").is_some());
    for cache in &subject.caches {
        match cache.is_of_hits() {
            true => assert!(cache.hits > 0 && cache.misses == 0, "{cache:?}"),
            false => assert!(cache.misses > 0 && cache.evictions > 0, "{cache:?}"),
        }
        assert_eq!(cache.dirty_bytes, 0);
    }
    let ahead = |order| {
        let mut caches = subject.caches.iter();
        let row = caches.find(|row| row.way == "hash 16k ahead" && row.order == Some(order));
        row.unwrap()
    };
    assert!(ahead(Order::Sequential).readahead_used > 0);
    assert!(document.figure("ahead.hash.16k.16k").is_some());
    assert!(document.rounds() >= 10);
    let json = document.to_json().unwrap();
    assert_eq!(Document::from_json(&json, EXPERIMENT).unwrap(), document);
    let text = page(&document).to_text(100);
    has(&text, "\nRandom 4 KiB from memory, wall time: ");
    has(&text, "Through COPY: the cache of hash 16k");
    is_documented(&document, &json);
}

fn is_documented(document: &Document, json: &str) {
    let documentation = include_str!("../../../docs/results.md");
    for field in [
        "resident_percent",
        "own_read_bytes",
        "recycled_media_bytes",
        "overhead_bytes_a_block",
        "readahead_wasted",
        "dirty_bytes",
    ] {
        assert!(
            documentation.contains(field) && json.contains(field),
            "{field}"
        );
    }
    for figure in &document.figures {
        let family = figure.id.split('.').next().unwrap();
        assert!(
            documentation.contains(&format!("`{family}")),
            "{}",
            figure.id
        );
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let refused = |path: &Path| {
        let options = CachedOptions {
            file: Some(path.to_owned()),
            common: short(),
            ..CachedOptions::default()
        };
        let mut control = Control::silent();
        run_here::<Cached>(&options, &Machine, &mut control)
            .unwrap_err()
            .to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short.img");
    std::fs::write(&short, [1; 4096]).unwrap();
    let error = refused(&short);
    ends(&error, "it has 4096 bytes; a cache needs at least 4194304");
    let error = refused(Path::new("/dev/zero"));
    has(&error, "only a regular file");
    let error = refused(&folder.path().join("missing"));
    has(&error, "missing: ");
}
