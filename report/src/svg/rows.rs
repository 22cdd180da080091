//! Values of named things, a row each.

use super::axis::Spread;
use super::pen::{
    CHARACTER, Drawn, FONT, Failed, LINE, MESH, Pen, Spot, WIDTH, colour, cut, fill, stroke,
    text_width,
};
use super::{Legend, MARGIN, SAMPLE, TOP, canvas};
use crate::digits::significant;
use crate::plot::{Mark, Row, RowShape, Rows};
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::Ranged;
use plotters::style::text_anchor::HPos;
use plotters::style::{BLACK, IntoFont};
use ugeom_measure::Interval;

/// The height of a value, and the room between rows.
const BAR: i32 = 32;
const GAP: i32 = 22;
/// Room below the axes for the values and the title.
const BELOW: i32 = 84;
/// The widest name.
const NAME_WIDTH: i32 = WIDTH as i32 * 9 / 20;
/// More rows than this are not drawn: a table has them.
const ROWS_MAX: usize = 200;

pub(super) fn svg(plot: &Rows) -> Option<String> {
    let rows = &plot.rows[..plot.rows.len().min(ROWS_MAX)];
    let values = rows.iter().flat_map(|row| row.values.iter().flatten());
    let ends = values.flat_map(|value| [value.estimate, value.low, value.high]);
    let marks = plot.marks.iter().map(|mark| mark.at);
    let axis = Spread::of(&plot.axis, ends.chain(marks))?;
    let names = plot.series.iter().filter(|_| plot.series.len() > 1);
    let legend = Legend::of(names.map(String::as_str), TOP);
    // Marks are named above the rows, a line each.
    let head = TOP + legend.height + plot.marks.len() as i32 * LINE;
    let row_height = plot.series.len().max(1) as i32 * BAR + GAP;
    let height = head + rows.len() as i32 * row_height + BELOW + MARGIN;
    canvas(&plot.title, height, |pen| {
        legend.draw(pen, |position, spot| {
            sample(pen, plot.shape, position, spot)
        })?;
        let frame = Frame::draw(pen, head, plot, &axis, rows.len())?;
        if plot.shape == RowShape::Bars {
            let zero = frame.x(0.0);
            let line = vec![(zero, frame.down.0), (zero, frame.down.1)];
            pen.line(line, stroke(BLACK, 2), 0)?;
        }
        for (number, mark) in plot.marks.iter().enumerate() {
            frame.mark(mark, number)?;
        }
        for (number, row) in rows.iter().enumerate() {
            let top = frame.down.0 + number as i32 * row_height + GAP / 2;
            frame.row(row, top)?;
        }
        Ok(())
    })
}

/// What stands for a series in the legend.
fn sample(pen: Pen<'_, '_>, shape: RowShape, position: usize, (x, y): Spot) -> Drawn {
    let end = x + SAMPLE - MARGIN;
    match shape {
        RowShape::Bars => pen.bar([(x, y - BAR / 3), (end, y + BAR / 3)], fill(position)),
        RowShape::Points => {
            pen.interval([(x, y), (end, y)], colour(position), 3)?;
            pen.marker(position, (x.midpoint(end), y))
        }
    }
}

/// The rows and their axis on the canvas.
struct Frame<'a, 'b, 'c> {
    pen: Pen<'a, 'b>,
    plot: &'c Rows,
    axis: &'c Spread,
    /// Where the ends of the axis are, from the left.
    across: (i32, i32),
    /// Where the rows begin and end, from above.
    down: (i32, i32),
}

impl<'a, 'b, 'c> Frame<'a, 'b, 'c> {
    /// Draws the axis below the rows, and lines at its values through all of them.
    fn draw(
        pen: Pen<'a, 'b>,
        head: i32,
        plot: &'c Rows,
        axis: &'c Spread,
        rows: usize,
    ) -> Result<Self, Failed> {
        let (_, below) = pen.0.split_vertically(head);
        let longest = plot.rows.iter().map(|row| text_width(&row.name)).max();
        let in_words = if with_words(plot) { 8 * CHARACTER } else { 0 };
        let mut chart = ChartBuilder::on(&below)
            .margin_right(3 * MARGIN + in_words)
            .margin_left(8)
            .margin_bottom(14)
            .x_label_area_size(BELOW)
            .y_label_area_size(longest.unwrap_or(0).min(NAME_WIDTH) + 3 * CHARACTER)
            .build_cartesian_2d(axis.clone(), 0.0..rows.max(1) as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .bold_line_style(stroke(MESH, 2))
            .axis_style(stroke(BLACK, 2))
            .set_all_tick_mark_size(10)
            .label_style(("sans-serif", FONT - 2).into_font())
            .axis_desc_style(("sans-serif", FONT).into_font())
            .x_desc(&axis.title)
            .draw()?;
        let (left, bottom) = chart.backend_coord(&(axis.low, 0.0));
        let (right, top) = chart.backend_coord(&(axis.high, rows.max(1) as f64));
        let (across, down) = ((left, right), (top, bottom));
        Ok(Self {
            pen,
            plot,
            axis,
            across,
            down,
        })
    }

    /// Where a value is from the left; the end of the axis where it has no place.
    fn x(&self, value: f64) -> i32 {
        self.axis.map(&self.axis.nearest(value), self.across)
    }

    /// A line through all rows, and its name above them.
    fn mark(&self, mark: &Mark, number: usize) -> Drawn {
        if self.axis.place(mark.at).is_none() {
            return Ok(());
        }
        let x = self.x(mark.at);
        let y = self.down.0 - number as i32 * LINE;
        self.pen.mark([(x, y), (x, self.down.1)])?;
        let side = match x > WIDTH as i32 / 2 {
            true => HPos::Right,
            false => HPos::Left,
        };
        self.pen
            .text(&cut(&mark.name, WIDTH as i32 / 2), (x, y - LINE / 2), side)
    }

    fn row(&self, row: &Row, top: i32) -> Drawn {
        let middle = top + self.plot.series.len().max(1) as i32 * BAR / 2;
        let beside = (self.across.0 - CHARACTER, middle);
        self.pen
            .text(&cut(&row.name, NAME_WIDTH), beside, HPos::Right)?;
        for (position, value) in row.values.iter().enumerate() {
            if let Some(value) = value {
                let y = top + position as i32 * BAR + BAR / 2;
                self.value(position, value, y)?;
            }
        }
        Ok(())
    }

    fn value(&self, position: usize, value: &Interval, y: i32) -> Drawn {
        if self.axis.place(value.estimate).is_none() {
            return Ok(());
        }
        let (x, zero) = (self.x(value.estimate), self.x(0.0));
        let (low, high) = (self.x(value.low), self.x(value.high));
        let ends = [(low, y), (high, y)];
        match self.plot.shape {
            RowShape::Bars => {
                let half = BAR / 2 - 3;
                let corners = [(zero.min(x), y - half), (zero.max(x), y + half)];
                self.pen.bar(corners, fill(position))?;
                if low != high {
                    self.pen.interval(ends, BLACK, 3)?;
                }
            }
            RowShape::Points => {
                if low != high {
                    self.pen.interval(ends, colour(position), 3)?;
                }
                self.pen.marker(position, (x, y))?;
            }
        }
        if with_words(self.plot) {
            let behind = high.max(x).max(zero) + CHARACTER;
            self.pen
                .text(&significant(value.estimate, 3), (behind, y), HPos::Left)?;
        }
        Ok(())
    }
}

/// Bars of one series have room for their values in words.
fn with_words(plot: &Rows) -> bool {
    plot.series.len() <= 1 && plot.shape == RowShape::Bars
}
