//! Curves over a continuous axis.

use super::axis::Spread;
use super::pen::{
    CHARACTER, Drawn, FONT, Failed, LINE, MESH, Pen, Spot, colour, cut, stroke, text_width,
};
use super::{Legend, MARGIN, SAMPLE, TOP, canvas};
use crate::plot::{Curve, CurveKind, Curves, Mark};
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::Ranged;
use plotters::style::text_anchor::HPos;
use plotters::style::{BLACK, IntoFont};

/// The height of the part with the axes.
const HEIGHT: i32 = 860;
/// Room below the axes for the values and the title.
const BELOW: i32 = 84;

pub(super) fn svg(plot: &Curves) -> Option<String> {
    let marks = |level: bool| plot.marks.iter().filter(move |mark| mark.level == level);
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let x = points().map(|point| point.x);
    let x = Spread::of(&plot.x, x.chain(marks(false).map(|mark| mark.at)))?;
    let y = points().flat_map(|point| [point.y.estimate, point.y.low, point.y.high]);
    let y = Spread::of(&plot.y, y.chain(marks(true).map(|mark| mark.at)))?;
    let looks = looks(&plot.curves);
    let legend = Legend::of(plot.curves.iter().map(|curve| curve.name.as_str()), TOP);
    let head = TOP + legend.height;
    canvas(&plot.title, head + HEIGHT, |pen| {
        legend.draw(pen, |position, spot| match looks.get(position) {
            Some(look) => look.sample(pen, spot),
            None => Ok(()),
        })?;
        let frame = Frame::draw(pen, head, &x, &y)?;
        for mark in &plot.marks {
            frame.mark_line(mark)?;
        }
        for look in &looks {
            frame.curve(look)?;
        }
        for (number, mark) in plot.marks.iter().enumerate() {
            frame.mark_name(mark, number)?;
        }
        Ok(())
    })
}

/// How a curve is told from the others.
struct Look<'a> {
    curve: &'a Curve,
    /// Its number among the measured or the fitted ones: what has the same number in both has the
    /// same colour.
    position: usize,
    /// Whether its points are joined: not where a model says how they hang together.
    joined: bool,
}

fn looks(curves: &[Curve]) -> Vec<Look<'_>> {
    let joined = curves.iter().all(|curve| curve.kind != CurveKind::Fitted);
    let (mut measured, mut fitted) = (0, 0);
    let mut looks = Vec::with_capacity(curves.len());
    for curve in curves {
        let count = match curve.kind {
            CurveKind::Fitted => &mut fitted,
            CurveKind::Measured | CurveKind::Steps | CurveKind::Ranges => &mut measured,
        };
        looks.push(Look {
            curve,
            position: *count,
            joined: joined || curve.kind != CurveKind::Measured,
        });
        *count += 1;
    }
    looks
}

impl Look<'_> {
    /// What stands for the curve in the legend.
    fn sample(&self, pen: Pen<'_, '_>, (x, y): Spot) -> Drawn {
        let end = x + SAMPLE - MARGIN;
        self.line(pen, vec![(x, y), (end, y)])?;
        match self.curve.kind {
            CurveKind::Measured | CurveKind::Ranges => {
                pen.marker(self.position, (x.midpoint(end), y))
            }
            CurveKind::Fitted | CurveKind::Steps => Ok(()),
        }
    }

    fn line(&self, pen: Pen<'_, '_>, spots: Vec<Spot>) -> Drawn {
        let colour = colour(self.position);
        match self.curve.kind {
            CurveKind::Ranges => Ok(()),
            _ if !self.joined => Ok(()),
            CurveKind::Measured => pen.line(spots, stroke(colour, 2), 0),
            CurveKind::Fitted => pen.line(spots, stroke(colour, 4), self.position + 1),
            CurveKind::Steps => pen.line(spots, stroke(colour, 4), self.position),
        }
    }
}

/// The axes on the canvas.
struct Frame<'a, 'b, 'c> {
    pen: Pen<'a, 'b>,
    x: &'c Spread,
    y: &'c Spread,
    /// Where the ends of `x` are, from the left.
    across: (i32, i32),
    /// Where the ends of `y` are, from below; the canvas counts from above.
    upwards: (i32, i32),
}

impl<'a, 'b, 'c> Frame<'a, 'b, 'c> {
    /// Draws the axes below `head`.
    fn draw(pen: Pen<'a, 'b>, head: i32, x: &'c Spread, y: &'c Spread) -> Result<Self, Failed> {
        let (_, below) = pen.0.split_vertically(head);
        let longest = y.ticks.iter().map(|tick| text_width(&tick.label)).max();
        let mut chart = ChartBuilder::on(&below)
            .margin_right(2 * MARGIN)
            .margin_top(MARGIN)
            .margin_left(8)
            .margin_bottom(14)
            .x_label_area_size(BELOW)
            .y_label_area_size(longest.unwrap_or(0) + 2 * LINE + MARGIN)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(stroke(MESH, 2))
            .axis_style(stroke(BLACK, 2))
            .set_all_tick_mark_size(10)
            .label_style(("sans-serif", FONT - 2).into_font())
            .axis_desc_style(("sans-serif", FONT).into_font())
            .x_desc(&x.title)
            .y_desc(&y.title)
            .draw()?;
        let (left, bottom) = chart.backend_coord(&(x.low, y.low));
        let (right, top) = chart.backend_coord(&(x.high, y.high));
        let (across, upwards) = ((left, right), (bottom, top));
        Ok(Self {
            pen,
            x,
            y,
            across,
            upwards,
        })
    }

    fn spot(&self, x: f64, y: f64) -> Spot {
        (self.x.map(&x, self.across), self.y.map(&y, self.upwards))
    }

    fn curve(&self, look: &Look<'_>) -> Drawn {
        let seen = look.curve.points.iter().filter_map(|point| {
            let x = self.x.place(point.x)?;
            let spot = self.spot(x, self.y.place(point.y.estimate)?);
            let end = |value| self.spot(x, self.y.nearest(value));
            Some((spot, [end(point.y.low), end(point.y.high)]))
        });
        let seen: Vec<(Spot, [Spot; 2])> = seen.collect();
        let spots = seen.iter().map(|(spot, _)| *spot).collect();
        let spots = match look.curve.kind {
            CurveKind::Steps => stairs(spots),
            CurveKind::Measured | CurveKind::Fitted | CurveKind::Ranges => spots,
        };
        look.line(self.pen, spots)?;
        if !matches!(look.curve.kind, CurveKind::Measured | CurveKind::Ranges) {
            return Ok(());
        }
        for (spot, ends) in seen {
            if ends[0] != ends[1] {
                self.pen.interval(ends, colour(look.position), 3)?;
            }
            self.pen.marker(look.position, spot)?;
        }
        Ok(())
    }

    fn ends(&self, mark: &Mark) -> Option<[Spot; 2]> {
        Some(if mark.level {
            let at = self.y.place(mark.at)?;
            [self.spot(self.x.low, at), self.spot(self.x.high, at)]
        } else {
            let at = self.x.place(mark.at)?;
            [self.spot(at, self.y.low), self.spot(at, self.y.high)]
        })
    }

    fn mark_line(&self, mark: &Mark) -> Drawn {
        match self.ends(mark) {
            Some(ends) => self.pen.mark(ends),
            None => Ok(()),
        }
    }

    /// The name of a mark: above a level line, at its left and right end in turn; beside an
    /// upright one, each a line higher than the one before.
    fn mark_name(&self, mark: &Mark, number: usize) -> Drawn {
        let Some([from, to]) = self.ends(mark) else {
            return Ok(());
        };
        let width = self.across.1 - self.across.0;
        let name = cut(&mark.name, width / 2);
        let (left, above) = (number.is_multiple_of(2), from.1 - LINE / 2);
        let (spot, side) = match (mark.level, left) {
            (true, true) => ((from.0 + CHARACTER, above), HPos::Left),
            (true, false) => ((to.0 - CHARACTER, above), HPos::Right),
            (false, _) => {
                let up = (number % 8 + 1) as i32 * LINE;
                match from.0 - self.across.0 < width / 2 {
                    true => ((from.0 + CHARACTER, from.1 - up), HPos::Left),
                    false => ((from.0 - CHARACTER, from.1 - up), HPos::Right),
                }
            }
        };
        self.pen.text(&name, spot, side)
    }
}

/// Each value from its own place to the next one's.
fn stairs(spots: Vec<Spot>) -> Vec<Spot> {
    let mut stairs: Vec<Spot> = Vec::with_capacity(2 * spots.len());
    for (x, y) in spots {
        if let Some((_, before)) = stairs.last().copied() {
            stairs.push((x, before));
        }
        stairs.push((x, y));
    }
    stairs
}
