//! Texts without characters that would speak to a terminal or turn the direction of writing: names
//! come from results, and those from disks, that are not trusted.

use super::page::{Block, Page};
use super::plot::Plot;
use super::table::Table;

impl Page {
    /// The page with every text made harmless; each renderer begins with this.
    pub(super) fn cleaned(&self) -> Self {
        let mut page = self.clone();
        let heads = [
            &mut page.experiment,
            &mut page.asked,
            &mut page.again,
            &mut page.question,
            &mut page.answer,
            &mut page.brief,
            &mut page.certainty,
            &mut page.manual,
        ];
        heads.into_iter().for_each(line);
        page.summary.iter_mut().for_each(table);
        page.picture.iter_mut().for_each(plot);
        page.warnings.iter_mut().for_each(line);
        for fact in &mut page.facts {
            line(&mut fact.name);
            line(&mut fact.text);
        }
        page.blocks.iter_mut().for_each(block);
        page
    }
}

fn block(block: &mut Block) {
    match block {
        Block::Heading(text) | Block::Paragraph(text) => line(text),
        Block::List(items) => items.iter_mut().for_each(line),
        Block::Table(one) => table(one),
        Block::Plot(one) => plot(one),
        Block::Preformatted(text) => {
            let lines = text
                .split('\n')
                .map(|text| cleaned(text.trim_end_matches('\r')));
            *text = lines.collect::<Vec<_>>().join("\n");
        }
    }
}

fn table(table: &mut Table) {
    line(&mut table.title);
    for column in &mut table.columns {
        line(&mut column.name);
        line(&mut column.unit);
    }
    for cell in table.rows.iter_mut().flatten() {
        line(&mut cell.text);
        cell.unit.iter_mut().for_each(line);
    }
}

fn plot(plot: &mut Plot) {
    let (title, axes, marks) = match plot {
        Plot::Curves(plot) => {
            plot.curves
                .iter_mut()
                .for_each(|curve| line(&mut curve.name));
            (
                &mut plot.title,
                vec![&mut plot.x, &mut plot.y],
                &mut plot.marks,
            )
        }
        Plot::Rows(plot) => {
            plot.series.iter_mut().for_each(line);
            plot.rows.iter_mut().for_each(|row| line(&mut row.name));
            (&mut plot.title, vec![&mut plot.axis], &mut plot.marks)
        }
    };
    line(title);
    for axis in axes {
        line(&mut axis.title);
        line(&mut axis.unit);
    }
    marks.iter_mut().for_each(|mark| line(&mut mark.name));
}

fn line(text: &mut String) {
    *text = one_line(text);
}

/// A text made harmless that is wrapped where it is shown: a line feed in it is a blank.
pub(super) fn one_line(text: &str) -> String {
    cleaned(&text.replace(['\n', '\r', '\t'], " "))
}

fn cleaned(text: &str) -> String {
    let harmless = |c: char| match c {
        '\t' => '\t',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        // Of no meaning in HTML, and not allowed there.
        '\u{fdd0}'..='\u{fdef}' => '\u{fffd}',
        c if u32::from(c) & 0xfffe == 0xfffe || c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Cell, Column, Curve, Curves, Rows};

    #[test]
    fn no_text_of_a_page_can_speak_to_a_terminal() {
        let evil = "a\u{1b}[31m\u{202e}b\nc\0\u{ffff}";
        let mut page = crate::tests::page_of(evil);
        let mut table = Table::new(evil, [Column::number(evil, evil)]);
        table.row([Cell {
            unit: Some(evil.to_owned()),
            ..Cell::text(evil)
        }]);
        page.push(table);
        let mut curves = Curves::new(evil, Axis::linear(evil, evil), Axis::linear(evil, evil));
        curves.push(Curve::measured(evil));
        curves.level(evil, 1.0);
        page.push(curves);
        let mut rows = Rows::bars(evil, Axis::linear(evil, evil), [evil]);
        rows.row::<crate::Seen>(evil, [None]);
        rows.mark(evil, 1.0);
        page.push(rows);

        let shown = format!("{:?}", page.cleaned());
        let clean = "a\u{fffd}[31m\u{fffd}b c\u{fffd}\u{fffd}";
        // Every text, the lines that are kept as they are counted apart.
        assert_eq!(shown.matches(clean).count(), 28, "{shown}");
        assert_eq!(shown.matches("b\\nc\u{fffd}\u{fffd}").count(), 1, "{shown}");
        for escaped in ["\\u{1b}", "\\u{202e}", "\\0", "\\u{ffff}"] {
            assert!(!shown.contains(escaped), "{escaped}: {shown}");
        }
    }
}
