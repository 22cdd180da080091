//! Plots as the elements that they are drawn with.

use super::*;
use crate::plot::{Axis, Curve, Curves, Mark, Plot, Rows};
use ugeom_measure::Interval;

fn around(value: f64, half_width: f64) -> Option<Interval> {
    Some(Interval::around(value, half_width, 0.95))
}

/// How often an element or an attribute stands in a drawing.
fn count(drawing: &str, what: &str) -> usize {
    drawing.matches(what).count()
}

fn curves() -> Curves {
    Curves::new(
        "Rates",
        Axis::bytes("block size"),
        Axis::log10("rate", "MB/s"),
    )
}

#[test]
fn a_curve_has_its_markers_intervals_titles_and_units() {
    let mut plot = curves();
    let interval = Interval::around(10.0, 1.0, 0.95);
    plot.push(
        Curve::measured("direct")
            .point(512.0, interval)
            .point(1024.0, interval)
            .exact(2048.0, 12.0),
    );
    plot.level("limit: 56 MB/s", 56.0);
    plot.upright("knee", 1000.0);
    let drawing = svg(&Plot::Curves(plot)).unwrap();
    // One of each is the legend's.
    assert_eq!(count(&drawing, "<circle"), 3 + 1, "{drawing}");
    for text in [
        "Rates",
        "direct",
        "block size",
        "rate (MB/s)",
        "limit: 56 MB/s",
        "knee",
        "512 B",
        "2 KiB",
    ] {
        assert_eq!(
            count(&drawing, &format!(">\n{text}\n<")),
            1,
            "{text}: {drawing}"
        );
    }
    // Each interval is a line with two ends, in the colour of its curve; the value without one
    // has none. The curve itself and its sample join points.
    let black = "stroke=\"#000000\" stroke-width=\"3\"";
    assert_eq!(count(&drawing, black), 2 * 3, "{drawing}");
}

#[test]
fn series_are_told_apart_without_colours() {
    let mut rows = Rows::points(
        "Ladder",
        Axis::linear("rate", "1/s"),
        ["one", "two", "three"],
    );
    rows.row(
        "step",
        [around(1.0, 0.0), around(2.0, 0.0), around(3.0, 0.0)],
    );
    let drawing = svg(&Plot::Rows(rows.clone())).unwrap();
    // A disc, an open square, a filled triangle; each in the legend, too.
    assert_eq!(count(&drawing, "<circle"), 2);
    assert_eq!(count(&drawing, "<polygon"), 2);
    rows.shape = crate::plot::RowShape::Bars;
    let drawing = svg(&Plot::Rows(rows)).unwrap();
    for grey in ["#6E6E6E", "#E1E1E1", "#A0A0A0"] {
        assert_eq!(
            count(&drawing, &format!("fill=\"{grey}\"")),
            2,
            "{grey}: {drawing}"
        );
    }
}

#[test]
fn a_bar_has_its_interval_its_value_and_the_goal() {
    let mut rows = Rows::bars("Layers", Axis::linear("time", "ns"), [""]);
    rows.row("mbr", [around(1.456, 0.1)]);
    rows.row("none", [None]);
    rows.mark("goal: under 2 ns", 2.0);
    let drawing = svg(&Plot::Rows(rows)).unwrap();
    for text in ["mbr", "none", "1.46", "goal: under 2 ns", "time (ns)"] {
        assert_eq!(
            count(&drawing, &format!(">\n{text}\n<")),
            1,
            "{text}: {drawing}"
        );
    }
    assert_eq!(
        count(&drawing, "stroke-width=\"3\" points"),
        3 + dashes(&drawing),
        "{drawing}"
    );
}

/// The dashes of the lines of marks.
fn dashes(drawing: &str) -> usize {
    count(drawing, "stroke=\"#5A5A5A\" stroke-width=\"3\"")
}

#[test]
fn a_plot_without_values_is_none() {
    assert_eq!(svg(&Plot::Curves(curves())), None);
    let mut plot = curves();
    plot.push(Curve::measured("all below zero").exact(-1.0, -1.0));
    assert_eq!(svg(&Plot::Curves(plot)), None);
    let rows = Rows::bars("Layers", Axis::linear("time", "ns"), [""]);
    assert_eq!(svg(&Plot::Rows(rows)), None);
}

#[test]
fn many_rows_and_long_names_stay_on_the_canvas() {
    let mut rows = Rows::bars(&"title ".repeat(100), Axis::linear("time", "ns"), [""]);
    for _ in 0..10_000 {
        rows.row(&"name ".repeat(1000), [around(1.0, 0.1)]);
    }
    let drawing = svg(&Plot::Rows(rows)).unwrap();
    assert!(drawing.len() < 1 << 20, "{} bytes", drawing.len());
}

/// Plots with these points and marks, on axes of every kind.
fn plots(values: &[[f64; 4]]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for axis in [
        Axis::linear("a", ""),
        Axis::log10("a", "ns"),
        Axis::bytes("a"),
        Axis::quantiles("a"),
    ] {
        let mut plot = Curves::new("any", axis.clone(), axis.clone());
        let mut rows = Rows::bars("any", axis, [""]);
        for kind in [Curve::measured, Curve::fitted, Curve::steps] {
            let mut curve = kind("any");
            for [x, estimate, low, high] in values.iter().copied() {
                let confidence = 0.95;
                let y = Interval {
                    estimate,
                    low,
                    high,
                    confidence,
                };
                curve = curve.point(x, y);
                rows.row("any", [Some(y)]);
            }
            plot.push(curve);
        }
        for [at, level, ..] in values {
            let (name, level) = ("any".to_owned(), *level > 1.0);
            plot.marks.push(Mark {
                name,
                level,
                at: *at,
            });
            rows.mark("any", *at);
        }
        plots.extend([Plot::Curves(plot), Plot::Rows(rows)]);
    }
    plots
}

proptest::proptest! {
    /// Whatever values a result holds, a plot is drawn or it is not.
    #[test]
    fn any_values_are_drawn_or_not(
        values in proptest::collection::vec(
            proptest::array::uniform4(proptest::num::f64::ANY), 0..6)
    ) {
        for plot in plots(&values) {
            let whole = svg(&plot).is_none_or(|text| text.trim_end().ends_with("</svg>"));
            proptest::prop_assert!(whole);
        }
    }
}
