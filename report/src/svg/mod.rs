//! Plots as SVG, for HTML: axis titles with units, intervals, observations, and series that are
//! told apart by markers and dashes as well as by colours. A plot is drawn twice, for a page and
//! for the width of a telephone; the style sheet shows one of them.

mod axis;
mod curves;
mod pen;
mod rows;
#[cfg(test)]
mod tests;

use super::plot::{Plot, Seen};
use crate::digits::in_words;
use axis::Spread;
use pen::{Anchor, IntervalEnd, LINE, Layout, MARGIN, NARROW, Pen, Spot, WIDE, text_width};

/// The width of the sample of a series in a legend, with the room behind it.
const SAMPLE: f64 = 40.0;

/// So much wider than others bold letters are.
const BOLD: f64 = 1.15;

/// The longest name of a value that is shown where its marker is pointed at.
const HOVER_CHARACTERS: usize = 200;

/// Text for an element or an attribute; control characters, which XML forbids, are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A plot as two SVG elements; none when it has no value that its axes have a place for.
pub(super) fn svg(plot: &Plot) -> Option<String> {
    Some(one(plot, WIDE)? + &one(plot, NARROW)?)
}

/// A plot as one SVG element of the width of a card.
pub(super) fn small(plot: &Plot) -> Option<String> {
    let layout = Layout {
        class: "small",
        height: 190.0,
        ..NARROW
    };
    one(plot, layout)
}

fn one(plot: &Plot, layout: Layout) -> Option<String> {
    match plot {
        Plot::Curves(plot) => curves::svg(plot, layout),
        Plot::Rows(plot) => rows::svg(plot, layout),
    }
}

/// A canvas with a title; below it is room from the second value on.
fn titled(title: &str, layout: Layout) -> (Pen, f64) {
    let mut pen = Pen::new(layout);
    let mut y = MARGIN + LINE / 2.0;
    // Bold letters are wider.
    for line in pen::wrapped(title, (layout.width - 2.0 * MARGIN) / BOLD, 3) {
        pen.text("t", &line, (MARGIN, y), Anchor::Start);
        y += LINE;
    }
    (pen, y - LINE / 2.0 + 6.0)
}

/// The ends of an interval on a canvas, `pixel` being the place of a value there.
fn ends(seen: &Seen, axis: &Spread, pixel: impl Fn(f64) -> f64) -> [IntervalEnd; 2] {
    [seen.interval.low, seen.interval.high].map(|value| IntervalEnd {
        at: pixel(value),
        leaves: axis.leaves(value),
    })
}

/// A value in words, and its operands.
fn words(name: &str, at: &str, seen: &Seen, axis: &Spread) -> String {
    let fitted = seen.map(|value| value / axis.fitting.size);
    let name: String = name.chars().take(HOVER_CHARACTERS).collect();
    let mut text = format!("{name}{at}: {}", in_words(&fitted.interval));
    if !axis.fitting.unit.is_empty() {
        text.push_str(&format!(" {}", axis.fitting.unit));
    }
    let ends = fitted.raw.iter().copied().fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((f64::min(low, value), f64::max(high, value)))
    });
    if let Some((low, high)) = ends {
        let [low, high] = [low, high].map(crate::digits::exact);
        text.push_str(&format!(
            "; {} observations from {low} to {high}",
            fitted.raw.len()
        ));
    }
    text
}

/// A legend: where each name stands, and how high it is.
struct Legend {
    names: Vec<(String, Spot)>,
    height: f64,
}

impl Legend {
    /// Lays out the names from left to right and from `top` down.
    fn of<'a>(names: impl IntoIterator<Item = &'a str>, top: f64, layout: Layout) -> Self {
        let (mut x, mut y) = (MARGIN, top + LINE / 2.0);
        let mut spots = Vec::new();
        for name in names {
            let name = pen::cut(name, layout.width - SAMPLE - 2.0 * MARGIN);
            let width = SAMPLE + text_width(&name) + MARGIN;
            if x > MARGIN && x + width > layout.width {
                (x, y) = (MARGIN, y + LINE);
            }
            spots.push((name, (x, y)));
            x += width;
        }
        let height = match spots.is_empty() {
            true => 0.0,
            false => y + LINE / 2.0 + 4.0 - top,
        };
        Self {
            names: spots,
            height,
        }
    }

    /// Draws the names, and the sample of each with `sample`, which gets its left end.
    fn draw(&self, pen: &mut Pen, sample: impl Fn(&mut Pen, usize, Spot)) {
        for (position, (name, (x, y))) in self.names.iter().enumerate() {
            sample(pen, position, (*x, *y));
            pen.text("", name, (x + SAMPLE, *y), Anchor::Start);
        }
    }
}
