//! Curves over a continuous axis.

use super::axis::Spread;
use super::pen::{
    Along, Anchor, CHARACTER, LINE, Layout, MARGIN, Pen, SERIES, Spot, cut, spread, text_width,
};
use super::{Legend, SAMPLE, ends, titled, words};
use crate::plot::{Curve, CurveKind, Curves, Mark, Point};

/// Half the width of the dots of observations.
const DOTS: f64 = 4.0;
/// Room below the axes: the values, and the title.
const BELOW: f64 = 2.0 * LINE + 12.0;

pub(super) fn svg(plot: &Curves, layout: Layout) -> Option<String> {
    let marks = |level: bool| plot.marks.iter().filter(move |mark| mark.level == level);
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let places = |length: f64| (length / (9.0 * CHARACTER)) as usize;
    let x = points().map(|point| point.x);
    let x = x.chain(marks(false).map(|mark| mark.at));
    let x = Spread::of(&plot.x, x, [], places(layout.width - 60.0))?;
    let y = points().map(|point| point.y.interval.estimate);
    let y = y.chain(marks(true).map(|mark| mark.at));
    let wide = points().flat_map(|point| [point.y.interval.low, point.y.interval.high]);
    let y = Spread::of(&plot.y, y, wide, (layout.height / (1.7 * LINE)) as usize)?;
    let looks = looks(&plot.curves);
    let (mut pen, top) = titled(&plot.title, layout);
    let names = plot.curves.iter().map(|curve| curve.name.as_str());
    let named = plot.curves.len() > 1 || plot.curves.iter().any(|curve| !curve.name.is_empty());
    let legend = Legend::of(names.filter(|_| named), top, layout);
    legend.draw(&mut pen, |pen, position, spot| {
        if let Some(look) = looks.get(position) {
            look.sample(pen, spot);
        }
    });
    let head = top + legend.height + LINE;
    let frame = Frame::draw(&mut pen, head, &x, &y);
    for mark in &plot.marks {
        if let Some(ends) = frame.ends(mark) {
            pen.line("k", &ends);
        }
    }
    for look in &looks {
        frame.curve(&mut pen, look);
    }
    for (number, mark) in plot.marks.iter().enumerate() {
        frame.mark_name(&mut pen, mark, number);
    }
    Some(pen.finished(&plot.title, head + layout.height + BELOW + 4.0))
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
    /// The sample of the curve in the legend.
    fn sample(&self, pen: &mut Pen, (x, y): Spot) {
        let end = x + SAMPLE - MARGIN;
        self.line(pen, &[(x, y), (end, y)]);
        if self.has_markers() {
            pen.marker(self.position, (x.midpoint(end), y), "");
        }
    }

    fn has_markers(&self) -> bool {
        matches!(self.curve.kind, CurveKind::Measured | CurveKind::Ranges)
    }

    fn line(&self, pen: &mut Pen, spots: &[Spot]) {
        match self.curve.kind {
            CurveKind::Ranges => {}
            _ if !self.joined => {}
            CurveKind::Measured => pen.series_line("l", self.position, spots),
            CurveKind::Fitted => pen.series_line("h", self.position + SERIES * 4 + 1, spots),
            CurveKind::Steps => pen.series_line("h", self.position, spots),
        }
    }
}

/// The axes on the canvas.
struct Frame<'a> {
    x: &'a Spread,
    y: &'a Spread,
    /// Where the ends of `x` are, from the left.
    across: (f64, f64),
    /// Where the ends of `y` are, from below; the canvas counts from above.
    upwards: (f64, f64),
}

impl<'a> Frame<'a> {
    /// Draws the axes below `head`.
    fn draw(pen: &mut Pen, head: f64, x: &'a Spread, y: &'a Spread) -> Self {
        let layout = pen.layout;
        let longest = y.ticks.iter().map(|tick| text_width(&tick.label));
        let left = longest.fold(0.0, f64::max) + MARGIN + 8.0;
        let (right, bottom) = (layout.width - 1.5 * MARGIN, head + layout.height);
        let frame = Self {
            x,
            y,
            across: (left, right),
            upwards: (bottom, head),
        };
        pen.frame([(left, head), (right, bottom)]);
        pen.text(
            "",
            &y.title,
            (MARGIN, head - LINE / 2.0 - 2.0),
            Anchor::Start,
        );
        for tick in &y.ticks {
            let at = y.pixel(tick.place, frame.upwards);
            pen.line("g", &[(left, at), (right, at)]);
            pen.text("n", &tick.label, (left - 6.0, at), Anchor::End);
        }
        let mut free = f64::MIN;
        for tick in &x.ticks {
            let at = x.pixel(tick.place, frame.across);
            pen.line("g", &[(at, head), (at, bottom)]);
            let half = text_width(&tick.label) / 2.0;
            let inside = at.min(layout.width - half);
            // A label that would touch the one before is left out; its line stays.
            if inside - half < free {
                continue;
            }
            free = inside + half + CHARACTER / 2.0;
            let spot = (inside, bottom + LINE / 2.0 + 4.0);
            pen.text("n", &tick.label, spot, Anchor::Middle);
        }
        pen.line("a", &[(left, head), (left, bottom), (right, bottom)]);
        let middle = (left.midpoint(right), bottom + 1.5 * LINE + 6.0);
        pen.text("", &x.title, middle, Anchor::Middle);
        frame
    }

    fn spot(&self, x: f64, y: f64) -> Spot {
        (self.x.pixel(x, self.across), self.y.pixel(y, self.upwards))
    }

    fn curve(&self, pen: &mut Pen, look: &Look<'_>) {
        let seen = look.curve.points.iter().filter_map(|point| {
            let x = self.x.place(point.x)?;
            Some((
                self.spot(x, self.y.place(point.y.interval.estimate)?),
                point,
            ))
        });
        let seen: Vec<(Spot, &Point)> = seen.collect();
        let spots: Vec<Spot> = seen.iter().map(|(spot, _)| *spot).collect();
        match look.curve.kind {
            CurveKind::Steps => look.line(pen, &stairs(spots)),
            CurveKind::Measured | CurveKind::Fitted | CurveKind::Ranges => look.line(pen, &spots),
        }
        if !look.has_markers() {
            return;
        }
        let pixel = |value| self.y.pixel(self.y.nearest(value), self.upwards);
        for ((x, y), point) in seen {
            let inside = spread(&point.y, DOTS).filter(|(value, _)| !self.y.leaves(*value));
            let dots: Vec<Spot> = inside.map(|(value, off)| (x + off, pixel(value))).collect();
            pen.dots(look.position, &dots);
            if point.y.interval.half_width() != 0.0 {
                let class = format!("s{}", look.position % SERIES);
                pen.interval(&class, Along::Y, x, ends(&point.y, self.y, pixel));
            }
            let gap = if look.curve.name.is_empty() { "" } else { ", " };
            let at = format!("{gap}{}", self.x.words(point.x));
            let words = words(&look.curve.name, &at, &point.y, self.y);
            pen.marker(look.position, (x, y), &words);
        }
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

    /// The name of a mark: above a level line, at its left and right end in turn; beside an
    /// upright one, each a line higher than the one before.
    fn mark_name(&self, pen: &mut Pen, mark: &Mark, number: usize) {
        let Some([from, to]) = self.ends(mark).filter(|_| !mark.name.is_empty()) else { return };
        let width = self.across.1 - self.across.0;
        let name = cut(&mark.name, width / 2.0);
        let (left, above) = (number.is_multiple_of(2), from.1 - LINE / 2.0);
        let (spot, anchor) = match (mark.level, left) {
            (true, true) => ((from.0 + CHARACTER, above), Anchor::Start),
            (true, false) => ((to.0 - CHARACTER, above), Anchor::End),
            (false, _) => {
                let up = (number % 8 + 1) as f64 * LINE;
                match from.0 - self.across.0 < width / 2.0 {
                    true => ((from.0 + CHARACTER, from.1 - up), Anchor::Start),
                    false => ((from.0 - CHARACTER, from.1 - up), Anchor::End),
                }
            }
        };
        pen.text("w", &name, spot, anchor);
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
