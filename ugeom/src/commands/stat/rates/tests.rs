//! Known answers for the arithmetic of rates.

use super::*;
use ugeom_serve::control::Timing;

fn kind(operations: u64, bytes: u64) -> OperationTotals {
    OperationTotals { operations, bytes }
}

fn spread(samples: u64, sum_ns: u64) -> Spread {
    Spread {
        samples,
        sum_ns,
        buckets: Vec::new(),
    }
}

fn look(at_ns: u64, providers: Vec<Layer>) -> Figures {
    let timing = Timing {
        counts: true,
        one_in: 16,
        clock_ns: 20.0,
        look_ns: 1000,
    };
    Figures {
        at_ns,
        timing,
        providers,
        consumers: Vec::new(),
    }
}

fn layer(id: u64, name: &str, below: &[u64]) -> Layer {
    Layer {
        id,
        name: name.to_owned(),
        below: below.to_vec(),
        ..Layer::default()
    }
}

/// 200 reads of 4 KiB, of which 10 were timed with 300 us each, 20 writes of 1 KiB, of which 2
/// were timed with 2 ms each, 4 DELETEs of 1 MiB and a FLUSH, in 2 seconds.
fn two_seconds() -> (Figures, Figures) {
    let mut before = layer(7, "md0", &[]);
    before.counted.read = kind(1000, 1_000_000);
    before.times.read = spread(100, 5_000_000);
    before.times.exclusive_ns = 1_000_000;
    before.times.busy_ns = 3_000_000;
    let mut after = before.clone();
    after.counted = Counted {
        in_flight: 3,
        errors: 4,
        read: kind(1200, 1_000_000 + 200 * 4096),
        write: kind(20, 20 * 1024),
        delete: kind(4, 4 << 20),
        flush: kind(1, 0),
        extents: kind(25, 0),
        ..Counted::default()
    };
    after.times.read = spread(110, 5_000_000 + 10 * 300_000);
    after.times.write = spread(2, 2 * 2_000_000);
    after.times.exclusive_ns += 12 * 250;
    after.times.busy_ns += 12 * 400_000;
    (
        look(5_000_000_000, vec![before]),
        look(7_000_000_000, vec![after]),
    )
}

fn rate(per_s: f64, kib_per_s: f64, kib_each: f64, ms_each: Option<f64>) -> Rate {
    Rate {
        per_s,
        kib_per_s,
        kib_each,
        ms_each,
    }
}

#[test]
fn rates_are_those_of_the_interval() {
    let (before, after) = two_seconds();
    let interval = Interval::between(&before, &after);
    assert_eq!(interval.seconds, 2.0);
    let row = &interval.rows[0];
    assert_eq!(
        (row.in_flight, row.per_s, row.errors_per_s),
        (3, 112.5, 2.0)
    );
    assert_eq!(row.read, rate(100.0, 400.0, 4.0, Some(0.3)));
    assert_eq!(row.write, rate(10.0, 10.0, 1.0, Some(2.0)));
    assert_eq!(row.delete, rate(2.0, 2048.0, 1024.0, None));
    assert_eq!((row.other.per_s, row.other.ms_each), (0.5, None));
    assert_eq!(row.extents_per_s, 12.5);
    assert_eq!((row.samples, row.exclusive_ns), (12, Some(250.0)));
    // 12 of 250 requests, EXTENTS among them, were busy for 4.8 ms, so all of them for 100 ms,
    // of 2 s.
    let busy = row.busy_percent.expect("known");
    assert!((busy - 5.0).abs() < 1e-9, "{busy}");
    assert!(!interval.is_mostly_clock(250.0) && interval.is_mostly_clock(99.0));
}

#[test]
fn nothing_in_no_time_is_nothing() {
    let (_, after) = two_seconds();
    let interval = Interval::between(&after, &after);
    let row = &interval.rows[0];
    assert_eq!(
        (row.per_s, row.read, row.write),
        (0.0, Rate::default(), Rate::default())
    );
    assert_eq!((row.exclusive_ns, row.samples), (None, 0));
    // Three requests are in flight and none ends: it is busy all the time.
    assert_eq!(row.busy_percent, Some(100.0));
    let idle = look(1, vec![layer(1, "a", &[])]);
    assert_eq!(
        Interval::between(&idle, &idle).rows[0].busy_percent,
        Some(0.0)
    );
}

#[test]
fn busy_is_not_known_without_a_sample_and_never_above_all() {
    let (before, mut after) = two_seconds();
    after.providers[0].times = before.providers[0].times.clone();
    let row = Interval::between(&before, &after).rows.remove(0);
    assert_eq!((row.busy_percent, row.read.ms_each), (None, None));
    after.providers[0].times.read.samples += 1;
    after.providers[0].times.busy_ns += 1 << 60;
    let row = Interval::between(&before, &after).rows.remove(0);
    assert_eq!(row.busy_percent, Some(100.0));
}

#[test]
fn what_came_counts_from_nothing_and_what_went_is_gone() {
    let (before, mut after) = two_seconds();
    after.providers[0].id = 8;
    let rows = Interval::between(&before, &after).rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].read.per_s, 600.0);
}

#[test]
fn rows_stand_in_the_order_of_the_tree() {
    let layers = vec![
        layer(1, "a", &[]),
        layer(2, "b", &[]),
        layer(3, "mirror", &[1, 2]),
        layer(4, "as1", &[1]),
        layer(5, "top", &[3]),
        layer(6, "bs1", &[2]),
    ];
    let mut figures = look(1, layers);
    for (id, class) in [(9, "NOP"), (10, "DEV")] {
        figures.consumers.push(Consumer {
            id,
            geom: "x".to_owned(),
            class: class.to_owned(),
            provider: 4,
            ..Consumer::default()
        });
    }
    let interval = Interval::between(&figures, &figures);
    let order: Vec<(usize, &str)> = interval
        .rows
        .iter()
        .map(|row| (row.depth, row.name.as_str()))
        .collect();
    let expected = [
        (0, "a"),
        (1, "mirror"),
        (2, "top"),
        (1, "as1"),
        (2, "NOP x -> as1"),
        (2, "DEV -> as1"),
        (0, "b"),
        (1, "bs1"),
    ];
    assert_eq!(order, expected);
}

#[test]
fn layers_that_stand_on_each_other_are_shown_once() {
    let layers = vec![
        layer(1, "a", &[2]),
        layer(2, "b", &[1]),
        layer(3, "c", &[3]),
    ];
    let figures = look(1, layers);
    let rows = Interval::between(&figures, &figures).rows;
    assert_eq!(rows.len(), 3);
}

#[test]
fn bars_are_powers_of_two_without_what_was_there_before() {
    let spread = |buckets: &[(u64, u64)]| Spread {
        samples: buckets.iter().map(|(_, count)| count).sum(),
        sum_ns: 0,
        buckets: buckets.to_vec(),
    };
    let before = Times {
        read: spread(&[(100, 5), (4096, 7)]),
        ..Times::default()
    };
    let mut after = before.clone();
    after.read = spread(&[(0, 1), (100, 15), (120, 10), (4096, 7)]);
    after.write = spread(&[(1024, 70), (1040, 4)]);
    let bars = Bars::between(Some(&before), &after);
    assert_eq!(bars.samples, 95);
    let expected = vec![
        (0, 1),
        (1, 0),
        (2, 0),
        (4, 0),
        (8, 0),
        (16, 0),
        (32, 0),
        (64, 20),
        (128, 0),
        (256, 0),
        (512, 0),
        (1024, 74),
    ];
    assert_eq!(bars.bars, expected);
    assert_eq!((bars.median_ns, bars.p99_ns), (1024, 1040));
    assert_eq!(Bars::between(Some(&after), &after), Bars::default());
    assert_eq!(Bars::between(None, &before).samples, 12);
}

#[test]
fn the_share_of_timed_requests_is_that_of_the_interval_and_not_of_the_next() {
    let (before, mut after) = two_seconds();
    after.timing.one_in = 1;
    assert_eq!(Interval::between(&before, &after).timed_one_in, 16);
}
