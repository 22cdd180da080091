//! Pages against the text that a reader gets.

use super::*;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_measure::Interval;
use ugeom_testkit::{begins, has};

fn page() -> Page {
    let mut page = Page::new("layers", "ugeom lab layers");
    page.fact("machine", "2 cores of a test");
    page.question = "What does a layer cost?".to_owned();
    page.answer = "Little.".to_owned();
    page
}

fn around(estimate: f64, half_width: f64) -> Interval {
    Interval::around(estimate, half_width, 0.95)
}

#[test]
fn a_row_for_programs_is_one_line_and_a_paragraph_is_not() {
    let mut page = page();
    let mut table = Table::new("", ["what", "verdict"].map(Column::text));
    table.row([Cell::text("a"), Cell::text("word ".repeat(40).trim())]);
    page.push(table);
    page.paragraph("word ".repeat(40));
    let longest = |text: &str| text.lines().map(str::len).max();
    assert_eq!(longest(&page.to_text(100)), Some(99));
    let lines = page.to_lines(100);
    let long: Vec<&str> = lines.lines().filter(|line| line.len() > 100).collect();
    assert_eq!(long.len(), 1, "{lines}");
    assert_eq!(long[0].split_whitespace().count(), 41);
}

#[test]
fn a_page_begins_with_the_question_and_its_answer() {
    let mut page = page();
    page.heading("As published");
    page.paragraph("One read.");
    let mut table = Table::headed("Reads", "what", "time (ns)");
    table.row([Cell::text("md0"), Cell::interval(&around(21.25, 0.5), 2)]);
    table.row([Cell::text("all of it"), Cell::count(12_345)]);
    page.push(table);
    page.list(["one", "two"]);
    page.list::<String>([]);
    page.preformatted("64+0 records in\n");
    let expected = "\
ugeom lab layers: What does a layer cost?

Little.

machine   2 cores of a test
interval  95 % CI

AS PUBLISHED
One read.

Reads
  what                    time (ns)
  md0        21.25 (20.75 to 21.75)
  all of it                  12,345

  - one
  - two

64+0 records in
";
    assert_eq!(page.to_text(100), expected);
}

#[test]
fn rows_are_drawn_as_bars_and_points_are_not() {
    let axis = || Axis::linear("time", "ns");
    let mut bars = Rows::bars("Layers", axis(), ["direct"]);
    bars.row("md0", [Some(around(10.0, 1.0))]);
    bars.row("slice", [Some(around(5.0, 0.0))]);
    bars.row::<Seen>("none", [None]);
    bars.mark("goal", 12.0);
    let mut page = page();
    page.push(bars);
    let text = page.to_text(100);
    let full = "#".repeat(30);
    let half = "#".repeat(15);
    let expected = format!(
        "Layers\n           time (ns)\n  md0      10.0 (9.0 to 11.0)  {full}\n  \
         slice    5.000               {half}\n  goal: 12.00\n"
    );
    assert!(text.ends_with(&expected), "{text}");

    let mut points = Rows::points("Ladder", axis(), ["1 worker", "2 workers"]);
    points.row("off", [Some(around(10.0, 1.0)), Some(around(20.0, 1.0))]);
    page.push(points);
    let text = page.to_text(100);
    let expected = "\
Ladder
                  time (ns)
  off  1 worker   10.0 (9.0 to 11.0)
       2 workers  20.0 (19.0 to 21.0)
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn text_keeps_to_its_width() {
    let mut page = page();
    page.answer = "word ".repeat(50);
    page.fact("a long name", "word ".repeat(30));
    page.list(["word ".repeat(30)]);
    let mut table = Table::new(&"word ".repeat(20), [Column::text("what")]);
    table.row([Cell::text("word ".repeat(30))]);
    page.push(table);
    let (x, y) = (Axis::bytes("block size"), Axis::log10("rate", "MB/s"));
    page.push(Curves::new("Sequential reads of many sizes", x, y));
    for width in [40, 72, 100] {
        let text = page.to_text(width);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|columns| columns <= width), "{text}");
    }
}

#[test]
fn goals_come_with_their_heading_or_not_at_all() {
    let mut page = page();
    let plain = Figure::plain("a", "a read", Unit::Ns, around(20.0, 1.0));
    page.goals(std::slice::from_ref(&plain));
    assert!(page.blocks.is_empty());

    page.goals(&[plain.with_goal(Goal::Under(25.0))]);
    let text = page.to_text(100);
    has(&text, "under 25 ns  20.0 ns (19.0 to 21.0)  reached");
    let Block::Table(goals) = &page.blocks[1] else { panic!("{:?}", page.blocks[1]) };
    assert_eq!(
        goals.rows[0][2].value,
        Some(Value::Interval(around(20.0, 1.0)))
    );
    assert_eq!(goals.rows[0][2].unit.as_deref(), Some("ns"));
}

#[test]
fn a_row_has_no_more_cells_than_the_table_has_columns() {
    let mut table = Table::new("", [Column::text("one")]);
    table.row([Cell::text("a"), Cell::text("b")]);
    table.row([]);
    assert_eq!(table.rows, [vec![Cell::text("a")], vec![]]);
    assert_eq!(Cell::number(-12_345.678, 1).text, "-12,345.7");
    assert_eq!(Cell::number(-345.678, 0).text, "-346");
}

#[test]
fn the_model_of_a_page_is_shown_in_every_form() {
    let page = fixture::page();
    let (text, markdown, csv) = (page.to_text(100), page.to_markdown(), page.to_csv());
    assert!(text.contains("THE LADDER\n") && text.contains("Plot: Bandwidth; bandwidth (MB/s)"));
    assert!(markdown.starts_with("# ugeom lab sweep 'md:64m \\| disk'\n\n**Question:** Where"));
    assert!(markdown.contains("\nSequential reads, \\<direct\\> \\& \"buffered\", interleaved.\n"));
    assert!(
        markdown.contains("| block size (bytes) | rate (MB/s) | limited by |\n| ---: | ---: | ---")
    );
    assert!(markdown.contains("| 512 | 7.44 (7.15 to 7.74) | transactions \\| requests |"));
    has(&markdown, "\n```text\n65536+0 records in\n");
    begins(
        &csv,
        "experiment,sweep\nasked,ugeom lab sweep 'md:64m | disk'\n",
    );
    let header = "\n\nWhat was measured\nblock size (bytes),rate (MB/s),rate low (MB/s),\
                  rate high (MB/s),rate confidence,limited by\n512,";
    assert!(csv.contains(header), "{csv}");
    assert!(!csv.contains("fitted") && !markdown.contains("fitted"));
}

#[test]
fn numbers_of_csv_are_read_back_to_the_last_digit() {
    let columns = [
        Column::text("what"),
        Column::number("time", "ns"),
        Column::text("seen"),
    ];
    let mut table = Table::new("", columns);
    let interval = Interval {
        estimate: 1.0 / 3.0,
        low: 1e-300,
        high: 1e300,
        confidence: 0.95,
    };
    table.row([Cell::text("=1+1"), Cell::interval(&interval, 1)]);
    table.row([
        Cell::text("a,\"b\""),
        Cell::number(0.1 + 0.2, 0),
        Cell::amount(&interval, Unit::Ns),
    ]);
    table.row([Cell::text("-"), Cell::text("-5")]);
    let mut page = Page::new("layers", "@asked");
    page.heading("Under");
    page.push(table);
    let text = page.to_csv();
    let mut lines = ::csv::ReaderBuilder::new()
        .flexible(true)
        .has_headers(false)
        .from_reader(text.as_bytes());
    let rows: Vec<Vec<String>> = lines
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(rows[1], ["asked", "'@asked"]);
    let at = rows.iter().position(|row| *row == ["Under"]).unwrap();
    let names = [
        "what",
        "time (ns)",
        "time low (ns)",
        "time high (ns)",
        "time confidence",
        "seen",
        "seen low",
        "seen high",
        "seen confidence",
        "seen unit",
    ];
    assert_eq!(rows[at + 1], names);
    assert_eq!(
        rows[at + 2][0],
        "'=1+1",
        "no spreadsheet may take it for a formula"
    );
    let value = |row: usize, column: usize| rows[at + row][column].parse::<f64>().unwrap();
    assert_eq!(
        [value(2, 1), value(2, 2), value(2, 3)],
        [1.0 / 3.0, 1e-300, 1e300]
    );
    assert_eq!(
        (rows[at + 3][0].as_str(), value(3, 1), value(3, 5)),
        ("a,\"b\"", 0.1 + 0.2, 1.0 / 3.0)
    );
    assert_eq!((rows[at + 3][8].as_str(), value(2, 4)), ("0.95", 0.95));
    assert_eq!(rows[at + 3][9], "ns");
    let last = ["-", "'-5", "", "", "", "", "", "", "", ""];
    assert_eq!(rows[at + 4], last);
}

#[test]
fn the_html_file_needs_nothing_else_and_runs_nothing() {
    let mut first = fixture::page();
    first.picture = first.blocks.iter().find_map(|block| match block {
        Block::Plot(plot) => Some(plot.clone()),
        _ => None,
    });
    let html = to_html(&[Saved::alone(first), Saved::alone(page())]);
    for (attribute, values) in [
        ("src=", 0),
        ("<script", 0),
        ("<link", 0),
        ("@import", 0),
        ("url(", 0),
    ] {
        assert_eq!(html.matches(attribute).count(), values, "{attribute}");
    }
    for link in html.split("href=\"").skip(1) {
        assert!(
            link.starts_with("data:") || link.starts_with('#'),
            "{}",
            &link[..40]
        );
    }
    let elsewhere = html.match_indices("http").filter(|(at, _)| {
        !html[*at..].starts_with("http://www.w3.org/2000/svg\"")
            && !html[*at..].starts_with("http-equiv")
    });
    assert_eq!(elsewhere.count(), 0);
    assert!(html.contains("default-src 'none'"));
    assert_eq!(
        html.matches("<svg ").count(),
        2 * 7 + 1,
        "two for each plot, and the answer"
    );
    assert_eq!(html.matches("<article ").count(), 2);
}

/// A page with that text in every place but tables and plots.
pub(crate) fn page_of(text: &str) -> Page {
    let mut page = Page::new(text, text);
    (page.question, page.answer) = (text.to_owned(), text.to_owned());
    page.fact(text, text);
    page.heading(text);
    page.paragraph(text);
    page.list([text]);
    page.preformatted(text);
    page
}

#[test]
fn text_of_a_result_never_becomes_markup() {
    let evil = "</code><script>alert(1)</script>\"><img src=x onerror=alert(2)>'&amp;";
    let mut page = page_of(evil);
    let mut table = Table::new(evil, [Column::number(evil, evil)]);
    table.row([Cell::text(evil)]);
    page.push(table);
    let axis = || Axis::linear(evil, evil);
    let mut curves = Curves::new(evil, axis(), axis());
    curves.push(Curve::measured(evil).exact(1.0, 1.0));
    curves.level(evil, 1.0);
    page.push(curves);
    let mut rows = Rows::bars(evil, axis(), [evil, evil]);
    rows.row(evil, [Some(around(1.0, 0.1))]);
    rows.mark(evil, 1.0);
    page.push(rows.clone());
    page.pictured(rows);
    let html = to_html(&[Saved::alone(page.clone())]);
    assert!(
        !html.contains("<script") && !html.contains("<img"),
        "{html}"
    );
    assert!(html.contains("&lt;script&gt;"));
    // A quotation mark may not end an attribute.
    assert!(!html.contains("alert(1)</script>\"") && html.contains("&quot;&gt;&lt;img"));
    let markdown = page.to_markdown();
    for line in markdown.lines().filter(|line| !line.starts_with("</code>")) {
        assert!(!line.replace("\\<", "").contains('<'), "{line}");
    }
}
