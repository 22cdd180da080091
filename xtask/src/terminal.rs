//! The picture of a terminal in the README: the answer of `ugeom lab layers` as it is printed now.

use crate::Outcome;
use crate::run::{command, root, target_dir};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Where the picture is.
const PICTURE: &str = "docs/terminal.svg";
/// The arguments shown, without the name of the program.
const SHOWN: [&str; 2] = ["lab", "layers"];
/// The terminal's width in characters.
const COLUMNS: &str = "100";
/// Height of a line, width of a character, and the margin around them, in units of the picture.
const LINE: usize = 18;
const CHARACTER: f64 = 7.825;
const MARGIN: usize = 16;
/// Above the first line are the buttons of a window.
const TOP: usize = 44;

/// Runs the release build and draws what it prints.
pub fn run() -> Result<Outcome> {
    let built = command("cargo")
        .args(["build", "--release", "-p", "ugeom"])
        .status();
    if !built.context("cargo")?.success() {
        bail!("cargo build --release -p ugeom failed");
    }
    let program = target_dir().join("release/ugeom").display().to_string();
    let answer = command(&program)
        .args(SHOWN)
        .args(["--color", "always"])
        .env("COLUMNS", COLUMNS)
        .output()
        .context(program)?;
    if !answer.status.success() {
        bail!(
            "ugeom {}: {}",
            SHOWN.join(" "),
            String::from_utf8_lossy(&answer.stderr)
        );
    }
    // The last line repeats the words of the command, of which the picture shows none for colours.
    let text = String::from_utf8(answer.stdout).context("the answer")?;
    let text = text.replace(" --color always", "");
    std::fs::write(root().join(PICTURE), picture(&SHOWN.join(" "), &text)).context(PICTURE)?;
    println!("{PICTURE} written");
    Ok(Outcome::Passed)
}

/// The output of `ugeom WORDS`, as a terminal shows it.
fn picture(words: &str, printed: &str) -> String {
    let command = format!("$ ugeom {words}");
    let mut class = None;
    let lines = std::iter::once(&*command).chain(printed.trim_end().lines());
    let lines: Vec<_> = lines.map(|line| styled(line, &mut class)).collect();
    let characters = |pieces: &[(_, &str)]| -> usize {
        pieces.iter().map(|(_, text)| text.chars().count()).sum()
    };
    let columns = lines.iter().map(|line| characters(line)).max().unwrap_or(0);
    let width = (columns as f64 * CHARACTER) as usize + 2 * MARGIN;
    let height = TOP + lines.len() * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"ugeom {words} and its answer\">\n\
         <style>text{{font:13px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;\
         fill:#d8d8d8;white-space:pre}}.b{{font-weight:700;fill:#fff}}.y{{fill:#e5c07b}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1d22\"/>\
         <circle cx=\"18\" cy=\"14\" r=\"5\" fill=\"#e06c5f\"/>\
         <circle cx=\"36\" cy=\"14\" r=\"5\" fill=\"#e5b85c\"/>\
         <circle cx=\"54\" cy=\"14\" r=\"5\" fill=\"#7fbf6a\"/>\n"
    );
    for (at, line) in lines.iter().enumerate() {
        let count = characters(line);
        if count == 0 {
            continue;
        }
        // Fonts differ in width: the length keeps columns below each other.
        let (y, length) = (TOP + at * LINE, (count as f64 * CHARACTER) as usize);
        let _ = write!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\" textLength=\"{length}\">"
        );
        for (class, text) in line {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = match class {
                Some(class) => write!(svg, "<tspan class=\"{class}\">{text}</tspan>"),
                None => write!(svg, "{text}"),
            };
        }
        svg.push_str("</text>\n");
    }
    svg + "</svg>\n"
}

/// The pieces of a line between its escape sequences, each with the class of its style. A style
/// goes on in the next line.
fn styled<'a>(
    line: &'a str,
    class: &mut Option<&'static str>,
) -> Vec<(Option<&'static str>, &'a str)> {
    let mut pieces = Vec::new();
    for (at, piece) in line.split("\u{1b}[").enumerate() {
        let text = match (at, piece.split_once('m')) {
            (1.., Some((codes, text))) => {
                *class = match codes {
                    "1" => Some("b"),
                    "33" => Some("y"),
                    _ => None,
                };
                text
            }
            _ => piece,
        };
        if !text.is_empty() {
            pieces.push((*class, text));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{picture, styled};

    #[test]
    fn styles_become_classes_and_marks_are_escaped() {
        let line = "\u{1b}[1mGEOM adds 5 ns\u{1b}[0m, a < b & c";
        let pieces = [(Some("b"), "GEOM adds 5 ns"), (None, ", a < b & c")];
        assert_eq!(styled(line, &mut None), pieces);
        assert_eq!(styled("goes on", &mut Some("b")), [(Some("b"), "goes on")]);
        let svg = picture(
            "lab layers",
            &format!("{line}\n\n\u{1b}[33mWarning: x\u{1b}[0m\n"),
        );
        for part in [
            ">$ ugeom lab layers</text>",
            "<tspan class=\"b\">GEOM adds 5 ns</tspan>, a &lt; b &amp; c</text>",
            "y=\"98\" xml:space=\"preserve\" textLength=\"78\">",
            "<tspan class=\"y\">Warning: x</tspan>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn the_picture_in_the_readme_is_one_of_these() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/terminal.svg");
        let svg = std::fs::read_to_string(path).unwrap();
        let lines: Vec<String> = svg
            .lines()
            .filter(|line| line.starts_with("<text"))
            .map(|line| {
                let text: String = line
                    .split('<')
                    .filter_map(|tag| tag.split_once('>'))
                    .map(|tag| tag.1)
                    .collect();
                text.replace("&lt;", "<").replace("&amp;", "&")
            })
            .collect();
        assert_eq!(lines[0], "$ ugeom lab layers");
        assert!(lines[1].starts_with("ugeom lab layers: "), "{lines:?}");
        assert!(
            lines.last().unwrap().contains("docs/lab-layers.md"),
            "{lines:?}"
        );
    }
}
