//! Plots as SVG, for HTML: a white ground, axis titles with units, intervals, and series that are
//! told apart by markers, dashes and greys as well as by colours.

mod axis;
mod curves;
mod pen;
mod rows;
#[cfg(test)]
mod tests;

use super::plot::Plot;
use pen::{Drawn, LINE, Pen, Spot, WIDTH, text_width};
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;
use plotters::style::WHITE;
use plotters::style::text_anchor::HPos;

/// The width of the sample of a series in a legend, with the room behind it.
const SAMPLE: i32 = 84;
/// The room at the sides.
const MARGIN: i32 = 24;
/// Where a plot begins below its title.
const TOP: i32 = MARGIN + LINE + 12;

/// A plot as one SVG element; none when it has no value that its axes have a place for.
pub(super) fn svg(plot: &Plot) -> Option<String> {
    match plot {
        Plot::Curves(plot) => curves::svg(plot),
        Plot::Rows(plot) => rows::svg(plot),
    }
}

/// Draws on a white canvas of this height, below its title.
fn canvas(title: &str, height: i32, draw: impl FnOnce(Pen<'_, '_>) -> Drawn) -> Option<String> {
    let mut text = String::new();
    {
        let height = u32::try_from(height).ok()?;
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let title = pen::cut(title, WIDTH as i32 * 4 / 5);
        Pen(&area).title(&title, (MARGIN, MARGIN + LINE / 2)).ok()?;
        draw(Pen(&area)).ok()?;
        area.present().ok()?;
    }
    Some(text)
}

/// A legend: where each name stands, and how high it is.
struct Legend {
    names: Vec<(String, Spot)>,
    height: i32,
}

impl Legend {
    /// Lays out the names from left to right and from `top` down.
    fn of<'a>(names: impl IntoIterator<Item = &'a str>, top: i32) -> Self {
        let (mut x, mut y) = (MARGIN, top + LINE / 2);
        let mut spots = Vec::new();
        for name in names {
            let name = pen::cut(name, WIDTH as i32 - SAMPLE - 3 * MARGIN);
            let width = SAMPLE + text_width(&name) + 2 * MARGIN;
            if x > MARGIN && x + width > WIDTH as i32 {
                (x, y) = (MARGIN, y + LINE);
            }
            spots.push((name, (x, y)));
            x += width;
        }
        let height = if spots.is_empty() {
            0
        } else {
            y + LINE / 2 + 8 - top
        };
        Self {
            names: spots,
            height,
        }
    }

    /// Draws the names, and the sample of each with `sample`, which gets its left end.
    fn draw(&self, pen: Pen<'_, '_>, sample: impl Fn(usize, Spot) -> Drawn) -> Drawn {
        for (position, (name, (x, y))) in self.names.iter().enumerate() {
            sample(position, (*x, *y))?;
            pen.text(name, (x + SAMPLE, *y), HPos::Left)?;
        }
        Ok(())
    }
}
