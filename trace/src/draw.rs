//! Pictures of a trace as SVG: a flame graph of exclusive times, a heat map of latencies.
//!
//! Source: Brendan Gregg, The Flame Graph, ACM Queue 14(2), 2016, for the first; Visualizing system
//! latency, ACM Queue 8(5), 2010, for the second.

use crate::figures::{LayerFigures, Traced, used_rows};
use std::fmt::Write;
use ugeom_report::escaped;

const WIDTH: f64 = 1000.0;
const ROW: f64 = 20.0;
/// Boxes narrower than this get no text.
const TEXT_MIN: f64 = 40.0;
/// Width of a character, about.
const CHARACTER: f64 = 6.6;

/// A flame graph: a box for each layer as wide as its time with all below it, and above it one for
/// each of its phases.
pub fn flame(traced: &Traced) -> String {
    let depth = traced
        .layers
        .iter()
        .map(|layer| layer.depth + 1)
        .max()
        .unwrap_or(0);
    let height = (depth as f64 + 2.0) * ROW + 40.0;
    let mut svg = head(height, &format!("Time of {} requests", traced.requests));
    let whole = traced.whole_ns.max(1) as f64;
    let scale = (WIDTH - 20.0) / whole;
    // Layers come in the order of the tree, so each begins where the ones before it have ended.
    let mut ends: Vec<f64> = vec![10.0];
    for (at, layer) in traced.layers.iter().enumerate() {
        ends.truncate(layer.depth + 1);
        let left = ends[layer.depth.min(ends.len() - 1)];
        let width = below_ns(&traced.layers, at) * scale;
        let y = height - 10.0 - (layer.depth as f64 + 1.0) * ROW;
        let percent = 100.0 * width / (WIDTH - 20.0);
        let names = [layer.name.as_str(); 2];
        boxed(&mut svg, (left, y, width), "#e9a15b", names, percent);
        let mut x = left;
        for (phase, ns) in &layer.phases_ns {
            let width = *ns as f64 * scale;
            let percent = 100.0 * width / (WIDTH - 20.0);
            let word = phase.word();
            let full = format!("{}: {word}", layer.name);
            boxed(
                &mut svg,
                (x, y - ROW, width),
                "#f2cf63",
                [&full, word],
                percent,
            );
            x += width;
        }
        ends[layer.depth] = left + width;
        // The layer below begins after this layer's own time.
        ends.push(x);
    }
    let width = traced.wake_up.whole_ns as f64 * scale;
    let place = (WIDTH - 10.0 - width, height - 10.0 - ROW, width);
    let percent = traced.wake_up.share_percent;
    boxed(
        &mut svg,
        place,
        "#c9c9c9",
        ["wake-up of the thread"; 2],
        percent,
    );
    svg.push_str("</svg>\n");
    svg
}

/// The exclusive time of a layer and of all below it, ns.
fn below_ns(layers: &[LayerFigures], at: usize) -> f64 {
    let own = |layer: &LayerFigures| layer.exclusive_mean_ns * layer.requests as f64;
    let depth = layers[at].depth;
    let below = layers[at + 1..]
        .iter()
        .take_while(|layer| layer.depth > depth);
    own(&layers[at]) + below.map(own).sum::<f64>()
}

/// A heat map: time from left to right, latency upwards in powers of two, darker for more requests.
pub fn heat(traced: &Traced) -> String {
    let heat = &traced.heat;
    let Some((first, last)) = used_rows(heat) else {
        return head(40.0, "No requests") + "</svg>\n";
    };
    let rows = last - first + 1;
    let height = rows as f64 * ROW + 80.0;
    let mut svg = head(height, "Latency over time");
    let width = (WIDTH - 110.0) / heat.columns.len().max(1) as f64;
    let most = heat
        .columns
        .iter()
        .flatten()
        .max()
        .copied()
        .unwrap_or(1)
        .max(1);
    for (x, column) in heat.columns.iter().enumerate() {
        for (row, count) in column.iter().enumerate().filter(|(_, count)| **count > 0) {
            let y = height - 40.0 - (row.saturating_sub(first) + 1) as f64 * ROW;
            let dark = f64::from(*count).ln_1p() / f64::from(most).ln_1p();
            let grey = (225.0 - 215.0 * dark) as u8;
            let left = 100.0 + x as f64 * width;
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{ROW}\" \
                 fill=\"rgb({grey},{grey},255)\"><title>{count} requests, {} to {}</title></rect>",
                time(1 << row),
                time(2 << row)
            );
        }
    }
    for row in first..=last {
        let y = height - 40.0 - (row - first) as f64 * ROW;
        let _ = writeln!(svg, "<text x=\"5\" y=\"{y:.1}\">{}</text>", time(1 << row));
    }
    let seconds = heat.column_ns as f64 * heat.columns.len() as f64 / 1e9;
    let _ = writeln!(svg, "<text x=\"100\" y=\"{:.1}\">0 s</text>", height - 15.0);
    let right = WIDTH - 80.0;
    let _ = writeln!(
        svg,
        "<text x=\"{right}\" y=\"{:.1}\">{seconds:.2} s</text>",
        height - 15.0
    );
    svg.push_str("</svg>\n");
    svg
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Stands in each picture, so that it is known when it is to be overwritten.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn head(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n\
         <!-- ugeom {VERSION} -->\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"13\">{}</text>\n",
        escaped(title)
    )
}

/// A box with its full name when pointed at, and the short one inside where there is room.
fn boxed(
    svg: &mut String,
    (x, y, width): (f64, f64, f64),
    fill: &str,
    names: [&str; 2],
    percent: f64,
) {
    if width < 0.05 {
        return;
    }
    let [name, short] = names.map(escaped);
    let _ = writeln!(
        svg,
        "<g><title>{name} ({percent:.1} %)</title><rect x=\"{x:.2}\" y=\"{y:.1}\" \
         width=\"{width:.2}\" height=\"{:.1}\" fill=\"{fill}\" stroke=\"white\"/>",
        ROW - 1.0
    );
    if width > TEXT_MIN {
        let room = ((width - 6.0) / CHARACTER) as usize;
        let text: String = short.chars().take(room).collect();
        // An entity that was cut would not be text.
        let text = match text.rfind('&') {
            Some(at) if !text[at..].contains(';') => &text[..at],
            _ => &text,
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.2}\" y=\"{:.1}\">{text}</text>",
            x + 3.0,
            y + 14.0
        );
    }
    svg.push_str("</g>\n");
}
