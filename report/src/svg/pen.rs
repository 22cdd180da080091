//! Drawing by places on a canvas: lines, markers and text. Colours are classes, so that the page's
//! style chooses them for a light or a dark ground; series are told apart without colours, too.

use super::escaped;
use crate::plot::Seen;
use std::fmt::Write;

/// The size of text; the style sheet sets the same.
pub(super) const FONT: f64 = 13.0;
/// The height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// The mean width of a character, on the safe side: browsers choose the font.
pub(super) const CHARACTER: f64 = 6.9;
/// The room at the sides.
pub(super) const MARGIN: f64 = 12.0;

/// Series that have a colour and a marker of their own.
pub(super) const SERIES: usize = 7;
/// Half the size of a marker, and of the stroke across the end of an interval.
const MARKER: f64 = 3.5;
const CAP: f64 = 5.0;
/// Lengths of dashes and gaps; the first line is solid.
const DASHES: [&str; 4] = ["", "9 5", "2 4", "16 6"];

/// A place on the canvas, from its upper left corner.
pub(super) type Spot = (f64, f64);

/// For what width a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// The class of the drawing, by which the style sheet shows it or hides it.
    pub class: &'static str,
    /// The width of the canvas.
    pub width: f64,
    /// The height of the part with the axes, for curves.
    pub height: f64,
    /// Whether names stand above their rows, and not beside them.
    pub is_narrow: bool,
}

/// For a page, and for the width of a telephone, of cards in an overview.
pub(super) const WIDE: Layout = Layout {
    class: "wide",
    width: 800.0,
    height: 340.0,
    is_narrow: false,
};
pub(super) const NARROW: Layout = Layout {
    class: "narrow",
    width: 370.0,
    height: 260.0,
    is_narrow: true,
};

/// The end of a text that stands at its spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The direction of an interval's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    X,
    Y,
}

/// An end of an interval on the canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IntervalEnd {
    /// Where it is along the axis of the values.
    pub at: f64,
    /// Whether the interval goes on behind the end of the axis.
    pub leaves: bool,
}

/// Draws into a text.
pub(super) struct Pen {
    out: String,
    pub layout: Layout,
}

impl Pen {
    pub fn new(layout: Layout) -> Self {
        let out = String::new();
        Self { out, layout }
    }

    /// The drawing, as an element of this height.
    pub fn finished(self, title: &str, height: f64) -> String {
        let Layout { class, width, .. } = self.layout;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"img\" \
             viewBox=\"0 0 {width} {height:.0}\" aria-label=\"{}\">{}</svg>",
            escaped(title),
            self.out
        )
    }

    /// A line through spots. Nothing for fewer than two.
    pub fn line(&mut self, class: &str, spots: &[Spot]) {
        if spots.len() > 1 {
            let path = path(spots);
            self.add(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    /// A line in the colour and the dashes of the series at a position.
    pub fn series_line(&mut self, class: &str, position: usize, spots: &[Spot]) {
        if spots.len() < 2 {
            return;
        }
        let (series, path) = (position % SERIES, path(spots));
        let dashes = DASHES[position % DASHES.len()];
        let dashes = match dashes.is_empty() {
            true => String::new(),
            false => format!(" stroke-dasharray=\"{dashes}\""),
        };
        self.add(format_args!(
            "<path class=\"{class} s{series}\"{dashes} d=\"{path}\"/>"
        ));
    }

    /// A rectangle in the fill of the series at a position.
    pub fn bar(&mut self, position: usize, [a, b]: [Spot; 2]) {
        let (x, y) = (a.0.min(b.0), a.1.min(b.1));
        let (width, height) = ((a.0 - b.0).abs(), (a.1 - b.1).abs());
        self.add(format_args!(
            "<rect class=\"b b{} s{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>",
            position % 3,
            position % SERIES
        ));
    }

    /// The frame of the axes, behind everything.
    pub fn frame(&mut self, [a, b]: [Spot; 2]) {
        self.add(format_args!(
            "<rect class=\"f\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            a.0,
            a.1,
            b.0 - a.0,
            b.1 - a.1
        ));
    }

    /// The marker of the series at a position, which shows `words` where it is pointed at.
    pub fn marker(&mut self, position: usize, (x, y): Spot, words: &str) {
        let (series, r) = (position % SERIES, MARKER);
        // Filled or open: open ones leave what they cover to be seen.
        let (kind, spots): (&str, &[Spot]) = match series {
            0 => ("m", &[]),
            1 => ("o", &[(-r, -r), (r, -r), (r, r), (-r, r)]),
            2 => ("m", &[(0.0, -4.5), (4.5, r), (-4.5, r)]),
            3 => ("o", &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
            4 => ("m", &[(-r, -r), (r, -r), (r, r), (-r, r)]),
            5 => ("o", &[(0.0, 4.5), (4.5, -r), (-4.5, -r)]),
            _ => ("m", &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
        };
        let title = match words.is_empty() {
            true => String::new(),
            false => format!("<title>{}</title>", escaped(words)),
        };
        if spots.is_empty() {
            self.add(format_args!(
                "<circle class=\"{kind} s{series}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\">{title}\
                 </circle>"
            ));
            return;
        }
        let moved: Vec<Spot> = spots.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        let path = path(&moved);
        self.add(format_args!(
            "<path class=\"{kind} s{series}\" d=\"{path}Z\">{title}</path>"
        ));
    }

    /// An interval: a line from end to end, with a stroke across each end, or an arrow where it
    /// leaves the axis. `beside` is where it is on the other axis.
    pub fn interval(&mut self, class: &str, along: Along, beside: f64, ends: [IntervalEnd; 2]) {
        let spot = |at: f64, off: f64| match along {
            Along::X => (at, beside + off),
            Along::Y => (beside + off, at),
        };
        let mut d = path(&[spot(ends[0].at, 0.0), spot(ends[1].at, 0.0)]);
        let outwards = (ends[1].at - ends[0].at).signum();
        for (end, side) in ends.into_iter().zip([-outwards, outwards]) {
            let back = if end.leaves { CAP * side } else { 0.0 };
            let corners = [
                spot(end.at - back, -CAP),
                spot(end.at, 0.0),
                spot(end.at - back, CAP),
            ];
            d.push_str(&path(&corners));
        }
        let leaves = ends.iter().any(|end| end.leaves);
        let arrow = if leaves { " arrow" } else { "" };
        self.add(format_args!("<path class=\"i{arrow} {class}\" d=\"{d}\"/>"));
    }

    /// Dots in the colour of a series: observations.
    pub fn dots(&mut self, position: usize, spots: &[Spot]) {
        if spots.is_empty() {
            return;
        }
        let mut d = String::new();
        for (x, y) in spots {
            let _ = write!(d, "M{x:.1} {y:.1}h0");
        }
        let series = position % SERIES;
        self.add(format_args!("<path class=\"r s{series}\" d=\"{d}\"/>"));
    }

    /// Text at a spot, around it in height.
    pub fn text(&mut self, class: &str, text: &str, (x, y): Spot, anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        // The middle of small letters is this far above the line on which they stand.
        let y = y + FONT * 0.35;
        let text = escaped(text);
        self.add(format_args!(
            "<text{class} x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>"
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing into memory does not fail.
        let _ = self.out.write_fmt(element);
    }
}

fn path(spots: &[Spot]) -> String {
    let mut d = String::new();
    for (number, (x, y)) in spots.iter().enumerate() {
        let letter = if number == 0 { 'M' } else { 'L' };
        let _ = write!(d, "{letter}{x:.1} {y:.1}");
    }
    d
}

/// Where the dots of observations stand beside their value: spread out, so that equal ones are
/// seen.
pub(super) fn spread(seen: &Seen, room: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
    let places = [0.0, 0.6, -0.6, 0.3, -0.3, 0.9, -0.9];
    let values = seen.raw.iter().copied();
    values
        .enumerate()
        .map(move |(number, value)| (value, places[number % places.len()] * room))
}

/// The width of a text, roughly.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// A text in lines of a width, at most so many; dots where it was cut.
pub(super) fn wrapped(text: &str, width: f64, lines_max: usize) -> Vec<String> {
    let columns = ((width / CHARACTER) as usize).max(4);
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let count = lines.len();
        let Some(line) = lines.last_mut() else { break };
        let length = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() || length <= columns {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else if count < lines_max {
            lines.push(word.to_owned());
        } else {
            line.push_str(" ...");
            break;
        }
    }
    let cut = |line: String| match line.chars().count() <= columns {
        true => line,
        false => line
            .chars()
            .take(columns - 3)
            .chain("...".chars())
            .collect(),
    };
    lines.into_iter().map(cut).collect()
}

/// A text cut to a width, with dots where it was cut.
pub(super) fn cut(text: &str, width: f64) -> String {
    wrapped(text, width, 1).pop().unwrap_or_default()
}
