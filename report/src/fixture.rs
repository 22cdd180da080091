//! A page with every kind of block and plot, its values made by formulas.

use super::*;
use ugeom_measure::Interval;

fn around(value: f64, share: f64) -> Interval {
    Interval::around(value, value * share, 0.95)
}

pub(super) fn page() -> Page {
    let mut page = Page::new("sweep", "ugeom lab sweep 'md:64m | disk'");
    page.question = "Where does the limit of this disk lie?".to_owned();
    page.answer = "At 14,577 transactions/s (14,400 to 14,760) below 4 KiB, and 56.0 MB/s (55.1 \
                   to 56.9) above."
        .to_owned();
    page.fact(
        "machine",
        "2 cores of an example, a virtual machine, Linux 6.1, load 0.2",
    );
    page.fact(
        "noise",
        "A/A: the same thing measured twice in a round differs by up to 1.2 %",
    );
    page.heading("Rates");
    page.paragraph("Sequential reads, <direct> & \"buffered\", interleaved.");
    for plot in sweep() {
        page.push(plot);
    }
    page.push(sweep_table());
    page.heading("The ladder");
    page.push(ladder(RowShape::Points));
    page.push(ladder(RowShape::Bars));
    page.heading("Layers");
    page.push(layers());
    page.heading("Latencies");
    page.push(percentiles());
    page.push(histogram());
    page.list(["The first thing that it means.", "The second one."]);
    page.preformatted("65536+0 records in\n65536+0 records out\n0.04u 0.5s 0:04.62 11.6% 0+0k\n");
    page
}

const SIZES: [f64; 11] = [
    512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0, 262144.0, 524288.0,
];

/// Transactions a second by the model with so many at most, and 56 MB/s.
fn rate(bytes: f64, most: f64) -> f64 {
    let seconds = ((1.0 / most).powf(2.5) + (bytes / 56e6).powf(2.5)).powf(1.0 / 2.5);
    1.0 / seconds
}

fn sweep() -> [Curves; 2] {
    let kinds = [("direct", 14_577.0), ("buffered", 40_000.0)];
    let draw = |title: &str, y: Axis, value: &dyn Fn(f64, f64) -> f64| {
        let mut plot = Curves::new(title, Axis::bytes("block size"), y);
        for (name, most) in kinds {
            let points = SIZES.iter().enumerate().map(|(n, size)| {
                let off = 1.0 + 0.03 * ((n * 7 % 5) as f64 - 2.0) / 2.0;
                (*size, around(value(*size, most) * off, 0.04))
            });
            plot.push(points.fold(Curve::measured(name), |curve, (x, y)| curve.point(x, y)));
        }
        for (name, most) in kinds {
            let sizes = (0..=100).map(|step| 512.0 * 2f64.powf(f64::from(step) / 10.0));
            let fitted = Curve::fitted(&format!("{name}, fitted"));
            plot.push(sizes.fold(fitted, |curve, x| curve.exact(x, value(x, most))));
        }
        plot
    };
    let transactions = Axis::log10("transactions", "1/s");
    let mut rates = draw("Transactions per second", transactions, &rate);
    rates.level("limit of direct: 14,577/s", 14_577.0);
    rates.upright("knee of direct: 3.84 KB", 3842.0);
    let megabytes = |size: f64, most: f64| rate(size, most) * size / 1e6;
    let mut bandwidth = draw("Bandwidth", Axis::linear("bandwidth", "MB/s"), &megabytes);
    bandwidth.level("limit: 56.0 MB/s", 56.0);
    [rates, bandwidth]
}

fn sweep_table() -> Table {
    let columns = [
        Column::number("block size", "bytes"),
        Column::number("rate", "MB/s"),
        Column::text("limited by"),
    ];
    let mut table = Table::new("What was measured", columns);
    for size in SIZES {
        let megabytes = around(rate(size, 14_577.0) * size / 1e6, 0.04);
        let by = if size < 3842.0 {
            "transactions | requests"
        } else {
            "bandwidth"
        };
        table.row([
            Cell::count(size as u64),
            Cell::interval(&megabytes, 2),
            Cell::text(by),
        ]);
    }
    table
}

fn ladder(shape: RowShape) -> Rows {
    let axis = Axis::linear("IOPS", "1/s");
    let series = ["1 worker", "2 workers = cores", "4 workers, oversubscribed"];
    let mut rows = match shape {
        RowShape::Points => Rows::points("The ladder of knobs", axis, series),
        RowShape::Bars => Rows::bars("The same as bars", axis, series),
    };
    let steps = [
        ("statistics on", 2.1e6),
        ("statistics off", 3.4e6),
        (
            "direct dispatch, queues parked, a long name that has to be cut somewhere",
            9.8e6,
        ),
        ("lock-free registry", 14.0e6),
        ("per-core pools", 21.5e6),
    ];
    for (name, one) in steps {
        let values = [1.0, 1.9, 1.85].map(|factor| Some(around(one * factor, 0.03)));
        rows.row(name, values);
    }
    rows.row::<Seen>("page-lock hash: no such lock here", [None, None, None]);
    rows.mark("goal: 20 M/s", 20e6);
    rows
}

fn layers() -> Rows {
    let mut rows = Rows::bars("What each layer adds", Axis::linear("time", "ns"), [""]);
    rows.row("GEOM itself", [Some(around(17.5, 0.02))]);
    rows.row("mbr", [Some(around(1.45, 0.1))]);
    rows.row("bsd", [Some(around(3.87, 0.6))]);
    rows.row("control", [Some(Interval::around(-1.5, 2.5, 0.95))]);
    rows.mark("goal: under 25 ns", 25.0);
    rows
}

fn percentiles() -> Curves {
    let mut plot = Curves::new(
        "Latency",
        Axis::quantiles("share of requests that were at least as fast"),
        Axis::log10("latency", "ns"),
    );
    for (name, base) in [("direct", 30.0), ("queued", 4000.0)] {
        let quantiles = (0..50).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
        let tail = |q: f64| base * (1.0 - q).powf(-0.35);
        plot.push(quantiles.fold(Curve::steps(name), |curve, q| curve.exact(q, tail(q))));
    }
    plot
}

fn histogram() -> Curves {
    let (x, y) = (
        Axis::log10("latency", "ns"),
        Axis::linear("share of requests", "%"),
    );
    let mut plot = Curves::new("Distribution of latencies", x, y);
    for (name, middle) in [("direct", 3.4), ("queued", 8.5)] {
        let bins = (0..24).map(|step| f64::from(step) * 0.5);
        let share = |at: f64| 20.0 * (-(at - middle).powi(2)).exp();
        let steps = Curve::steps(name);
        plot.push(bins.fold(steps, |curve, at| curve.exact(at.exp(), share(at))));
    }
    plot
}
