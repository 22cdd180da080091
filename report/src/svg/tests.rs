//! Plots as the elements that they are drawn with.

use super::*;
use crate::plot::{Axis, Curve, CurveKind, Curves, Mark, Plot, Rows};
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

/// The values of an attribute of elements of a class, in the first drawing.
fn attributes(drawing: &str, class: &str, attribute: &str) -> Vec<String> {
    let begin = format!(" {attribute}=\"");
    let elements = drawing.split('<').filter(|element| {
        let classes = element.split_once("class=\"").map(|(_, rest)| rest);
        let classes = classes.and_then(|rest| rest.split('"').next());
        classes.is_some_and(|classes| classes.split(' ').any(|one| one == class))
    });
    let value = |element: &str| {
        let (_, rest) = element.split_once(&begin)?;
        Some(rest.split('"').next()?.to_owned())
    };
    elements.filter_map(value).collect()
}

/// The first two spots of a path.
fn first_line(d: &str) -> [Spot; 2] {
    let numbers: Vec<f64> = d
        .split(['M', 'L', ' '])
        .filter_map(|part| part.parse().ok())
        .take(4)
        .collect();
    [(numbers[0], numbers[1]), (numbers[2], numbers[3])]
}

/// Where the frame of the axes is: left, top, right, bottom.
fn frame(drawing: &str) -> [f64; 4] {
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|attribute| {
        let found = attributes(drawing, "f", attribute);
        found[0].parse::<f64>().unwrap()
    });
    [x, y, x + width, y + height]
}

/// Every interval of a plot in its drawing: those that are missing, and how many end in an arrow.
/// Places are computed from the frame and from the lines at the axis's values.
fn intervals(plot: &Plot, drawing: &str) -> (Vec<String>, usize) {
    let [left, top, right, bottom] = frame(drawing);
    let (axis, pixels, seen): (&Axis, _, Vec<&Seen>) = match plot {
        Plot::Curves(plot) => {
            let measured =
                |curve: &&Curve| matches!(curve.kind, CurveKind::Measured | CurveKind::Ranges);
            let curves = plot.curves.iter().filter(measured);
            let points = curves.flat_map(|curve| &curve.points).map(|point| &point.y);
            (&plot.y, (bottom, top), points.collect())
        }
        Plot::Rows(plot) => {
            let values = plot.rows.iter().flat_map(|row| row.values.iter().flatten());
            (&plot.axis, (left, right), values.collect())
        }
    };
    let wide = seen
        .iter()
        .flat_map(|seen| [seen.interval.low, seen.interval.high]);
    let marks: Vec<f64> = match plot {
        Plot::Curves(plot) => plot
            .marks
            .iter()
            .filter(|mark| mark.level)
            .map(|m| m.at)
            .collect(),
        Plot::Rows(plot) => plot.marks.iter().map(|mark| mark.at).collect(),
    };
    let modelled: Vec<f64> = match plot {
        Plot::Curves(plot) => {
            let points = plot.curves.iter().flat_map(|curve| &curve.points);
            points.map(|point| point.y.interval.estimate).collect()
        }
        Plot::Rows(_) => Vec::new(),
    };
    let estimates = seen.iter().map(|seen| seen.interval.estimate);
    let values = estimates.chain(marks).chain(modelled);
    let spread = Spread::of(axis, values, wide, 10).unwrap();
    let paths: Vec<[Spot; 2]> = attributes(drawing, "i", "d")
        .iter()
        .map(|d| first_line(d))
        .collect();
    let mut missing = Vec::new();
    for seen in seen {
        let drawable = spread.place(seen.interval.estimate).is_some();
        if !drawable || seen.interval.half_width() == 0.0 {
            continue;
        }
        let ends = [seen.interval.low, seen.interval.high]
            .map(|value| spread.pixel(spread.nearest(value), pixels));
        let found = paths.iter().any(|[a, b]| {
            let drawn = match plot {
                Plot::Curves(_) => [a.1, b.1],
                Plot::Rows(_) => [a.0, b.0],
            };
            (drawn[0] - ends[0]).abs() < 0.11 && (drawn[1] - ends[1]).abs() < 0.11
        });
        if !found {
            missing.push(format!("{:?}", seen.interval));
        }
    }
    (missing, attributes(drawing, "arrow", "d").len())
}

#[test]
fn every_interval_of_a_page_is_in_its_drawings() {
    let mut plots = 0;
    for block in crate::fixture::page().blocks {
        let crate::Block::Plot(plot) = block else { continue };
        for drawing in [one(&plot, WIDE), one(&plot, NARROW), small(&plot)] {
            let (missing, _) = intervals(&plot, &drawing.unwrap());
            assert!(missing.is_empty(), "{}: {missing:?}", plot.title());
        }
        plots += 1;
    }
    assert_eq!(plots, 7);
}

#[test]
fn an_interval_that_leaves_the_axis_ends_in_an_arrow() {
    let mut plot = curves();
    let low = |low| Interval {
        low,
        ..Interval::around(10.0, 1.0, 0.95)
    };
    let curve = Curve::measured("direct").point(512.0, low(9.0));
    plot.push(curve.point(1024.0, low(-3.0)).point(2048.0, low(1e-9)));
    let plot = Plot::Curves(plot);
    let drawing = one(&plot, WIDE).unwrap();
    assert_eq!(intervals(&plot, &drawing), (Vec::new(), 2), "{drawing}");

    let mut rows = Rows::points("Ladder", Axis::linear("rate", "1/s"), [""]);
    rows.row("a", [around(10.0, 1.0)]);
    rows.row("b", [around(11.0, 1e9)]);
    let plot = Plot::Rows(rows);
    let drawing = one(&plot, NARROW).unwrap();
    assert_eq!(intervals(&plot, &drawing), (Vec::new(), 1), "{drawing}");
    let [left, _, right, _] = frame(&drawing);
    let [_, far] = attributes(&drawing, "i", "d").try_into().unwrap();
    let [(from, _), (to, _)] = first_line(&far);
    assert!(
        (from - left).abs() < 0.1 && (to - right).abs() < 0.1,
        "{far}"
    );
}

#[test]
fn a_curve_has_its_markers_titles_and_units() {
    let mut plot = curves();
    let interval = Interval::around(10.0, 1.0, 0.95);
    let seen = Seen {
        interval,
        raw: vec![9.0, 10.0, 12.5],
    };
    plot.push(
        Curve::measured("direct")
            .point(512.0, seen)
            .point(1024.0, interval)
            .exact(2048.0, 12.0),
    );
    plot.level("limit: 56 MB/s", 56.0);
    plot.upright("knee", 1000.0);
    let drawing = one(&Plot::Curves(plot), WIDE).unwrap();
    // One is the legend's.
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
            count(&drawing, &format!(">{text}<")),
            1,
            "{text}: {drawing}"
        );
    }
    let hover = "direct, 512: 10.0 (9.0 to 11.0) MB/s; 3 observations from 9.000 to 12.50";
    assert!(drawing.contains(hover), "{drawing}");
    let dots = attributes(&drawing, "r", "d");
    assert_eq!(dots.iter().map(|d| count(d, "h0")).collect::<Vec<_>>(), [3]);
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
    let drawing = one(&Plot::Rows(rows.clone()), WIDE).unwrap();
    // A disc, an open square, a filled triangle; each in the legend, too.
    assert_eq!(count(&drawing, "<circle class=\"m"), 2);
    assert_eq!(count(&drawing, "<path class=\"o"), 2);
    assert_eq!(count(&drawing, "<path class=\"m"), 2);
    rows.shape = crate::plot::RowShape::Bars;
    let drawing = one(&Plot::Rows(rows), WIDE).unwrap();
    for class in ["b0", "b1", "b2"] {
        assert_eq!(
            attributes(&drawing, class, "x").len(),
            2,
            "{class}: {drawing}"
        );
    }
}

#[test]
fn a_bar_has_its_interval_its_value_and_the_goal() {
    let mut rows = Rows::bars("Layers", Axis::linear("time", "ns"), [""]);
    rows.row("mbr", [around(1.456e6, 0.1e6)]);
    rows.row::<Seen>("none", [None]);
    rows.mark("goal: under 20 ms", 20e6);
    let drawing = one(&Plot::Rows(rows), WIDE).unwrap();
    for text in ["mbr", "none", "1.46", "goal: under 20 ms", "time (ms)"] {
        assert_eq!(
            count(&drawing, &format!(">{text}<")),
            1,
            "{text}: {drawing}"
        );
    }
    assert_eq!(attributes(&drawing, "i", "d").len(), 1, "{drawing}");
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
    /// A plot is drawn or it is not, for any values of a result.
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
