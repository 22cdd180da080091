//! Drawing by places on the canvas: lines, markers and text in styles that are told apart without
//! colours, too.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, RGBColor, ShapeStyle};

/// The canvas is as wide as this and shown at half of it: places are whole numbers, so that they
/// are twice as exact.
pub(super) const WIDTH: u32 = 1640;
/// The size of text, as the library counts it; 1.24 of it are one pixel.
pub(super) const FONT: u32 = 31;
/// The mean width of a character of that size.
pub(super) const CHARACTER: i32 = 13;
/// The height of a line of text.
pub(super) const LINE: i32 = 36;

/// The canvas.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing can fail with; into memory it does not.
pub(super) type Failed = DrawingAreaErrorKind<std::io::Error>;
/// Whether it was drawn.
pub(super) type Drawn = Result<(), Failed>;
/// A place on the canvas, from its upper left corner.
pub(super) type Spot = (i32, i32);

/// Colours that people with any kind of sight tell apart, and that differ as greys: Okabe and Ito,
/// *Color Universal Design* (2008), in an order of our own, its yellow left out.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
/// Lengths of dashes and gaps; none for a solid line.
const DASHES: [Option<(u32, u32)>; 4] = [None, Some((18, 10)), Some((5, 7)), Some((32, 14))];
/// Greys of bars, dark and light in turn.
const FILLS: [u8; 5] = [110, 225, 160, 60, 195];

/// The colour of marks.
const GREY: RGBColor = RGBColor(90, 90, 90);
/// The colour of the lines at the values of an axis.
pub(super) const MESH: RGBColor = RGBColor(222, 222, 222);

/// Half the size of a marker.
const MARKER: i32 = 8;

/// The colour of the series at a position.
pub(super) fn colour(position: usize) -> RGBColor {
    COLOURS[position % COLOURS.len()]
}

/// The fill of the bars of the series at a position.
pub(super) fn fill(position: usize) -> RGBColor {
    let grey = FILLS[position % FILLS.len()];
    RGBColor(grey, grey, grey)
}

/// Of a line, a marker's edge.
pub(super) fn stroke(colour: RGBColor, width: u32) -> ShapeStyle {
    ShapeStyle::from(&colour).stroke_width(width)
}

/// Draws on an area.
#[derive(Clone, Copy)]
pub(super) struct Pen<'a, 'b>(pub &'a Area<'b>);

impl Pen<'_, '_> {
    /// A line through spots, in the dashes of a position.
    pub fn line(&self, spots: Vec<Spot>, style: ShapeStyle, dashes: usize) -> Drawn {
        match DASHES[dashes % DASHES.len()] {
            None => self.0.draw(&PathElement::new(spots, style)),
            Some((dash, gap)) => self
                .0
                .draw(&DashedPathElement::new(spots, dash, gap, style)),
        }
    }

    /// The line of a mark.
    pub fn mark(&self, spots: [Spot; 2]) -> Drawn {
        let style = stroke(GREY, 3);
        self.0.draw(&DashedPathElement::new(spots, 3, 9, style))
    }

    /// A filled rectangle with an edge.
    pub fn bar(&self, corners: [Spot; 2], fill: RGBColor) -> Drawn {
        self.0.draw(&Rectangle::new(corners, fill.filled()))?;
        self.0.draw(&Rectangle::new(corners, stroke(BLACK, 1)))
    }

    /// The marker of the series at a position: of other forms for other positions, filled or open.
    pub fn marker(&self, position: usize, (x, y): Spot) -> Drawn {
        let (colour, r) = (colour(position), MARKER);
        let corners: Vec<Spot> = match position % 7 {
            0 => return self.0.draw(&Circle::new((x, y), r - 1, colour.filled())),
            1 => vec![
                (x - r, y - r),
                (x + r, y - r),
                (x + r, y + r),
                (x - r, y + r),
            ],
            2 => vec![(x, y - r - 2), (x + r + 1, y + r), (x - r - 1, y + r)],
            3 => vec![
                (x, y - r - 3),
                (x + r + 3, y),
                (x, y + r + 3),
                (x - r - 3, y),
            ],
            4 => return self.strokes(&[(-1, -1), (-1, 1)], (x, y), colour),
            5 => vec![(x, y + r + 2), (x + r + 1, y - r), (x - r - 1, y - r)],
            _ => return self.strokes(&[(0, -1), (-1, 0)], (x, y), colour),
        };
        // Open ones leave what they cover to be seen.
        if !matches!(position % 7, 1 | 3) {
            self.0
                .draw(&Polygon::new(corners.clone(), colour.filled()))?;
        }
        let edge = corners.iter().chain(&corners[..2]).copied();
        self.0.draw(&PathElement::new(
            edge.collect::<Vec<_>>(),
            stroke(colour, 3),
        ))
    }

    /// Strokes through a spot, each from one side to the opposite one.
    fn strokes(&self, sides: &[(i32, i32)], (x, y): Spot, colour: RGBColor) -> Drawn {
        for (dx, dy) in sides {
            let (dx, dy) = (dx * (MARKER + 1), dy * (MARKER + 1));
            let ends = vec![(x - dx, y - dy), (x + dx, y + dy)];
            self.0.draw(&PathElement::new(ends, stroke(colour, 4)))?;
        }
        Ok(())
    }

    /// An interval: a line between two spots with a stroke across each end.
    pub fn interval(&self, [from, to]: [Spot; 2], colour: RGBColor, width: u32) -> Drawn {
        let style = stroke(colour, width);
        self.0.draw(&PathElement::new(vec![from, to], style))?;
        let (dx, dy) = if from.1 == to.1 {
            (0, MARKER)
        } else {
            (MARKER, 0)
        };
        for (x, y) in [from, to] {
            let cap = vec![(x - dx, y - dy), (x + dx, y + dy)];
            self.0.draw(&PathElement::new(cap, style))?;
        }
        Ok(())
    }

    /// Text beside a spot: to its right, around it or to its left; around it in height.
    pub fn text(&self, text: &str, spot: Spot, side: HPos) -> Drawn {
        let font = ("sans-serif", FONT).into_font().color(&BLACK);
        let style = font.pos(Pos::new(side, VPos::Center));
        self.0.draw(&Text::new(text.to_owned(), spot, style))
    }

    /// The title of a plot.
    pub fn title(&self, text: &str, spot: Spot) -> Drawn {
        let font = ("sans-serif", FONT + 5).into_font();
        let font = font.style(plotters::style::FontStyle::Bold).color(&BLACK);
        let style = font.pos(Pos::new(HPos::Left, VPos::Center));
        self.0.draw(&Text::new(text.to_owned(), spot, style))
    }
}

/// The width of a text, roughly: browsers choose the font.
pub(super) fn text_width(text: &str) -> i32 {
    i32::try_from(text.chars().count())
        .unwrap_or(i32::MAX / CHARACTER)
        .saturating_mul(CHARACTER)
}

/// A text cut to a width, with dots where it was cut.
pub(super) fn cut(text: &str, width: i32) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let room = (width / CHARACTER).max(4) as usize - 3;
    text.chars().take(room).chain("...".chars()).collect()
}
