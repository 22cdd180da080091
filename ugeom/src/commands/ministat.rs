//! `ugeom ministat`: ministat(1) to the letter, the classic and the current version. The statistics
//! and the output are in `ugeom_measure::ministat`; here are its flags and its files.

use crate::failure::Usage;
use crate::output::{self, printable};
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use rustix::termios;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use ugeom_measure::ministat::{
    Confidence, DataSet, Difference, Format, LINE_BYTES_MAX, MinistatOptions, Parser, Report,
    SETS_MAX, SYMBOLS, Statistics, Version, WIDTH, WIDTH_MIN,
};

const LONG_ABOUT: &str = "\
Prints what ministat(1) prints: count, minimum, maximum, median, average and standard deviation of \
each data set, a plot, and for every set after the first whether its mean differs from that of the \
first (Student's t, pooled variance).

A data set is a file with a number a line, or standard input where no file is named (also as -). \
A column that begins with # starts a comment.

The output is that of FreeBSD's current version: the median of an even number of values is the \
mean of the middle two, variances are computed in two passes, and the interval in % \
includes the spread of the first set. --classic prints what the version up to 2017 prints, which \
Debian packages. Both versions use the quantiles of 99.8 % for -c 99.5.

Use it to compare with published figures; `ugeom ab` and `ugeom compare` have stricter rules.";

const EXAMPLES: &str = "\
Examples:
  ugeom ministat before after            # did it help?
  ugeom ministat -c 99 -s before after   # at 99 %, one bar for each set
  ugeom ministat -A -C 3 -d , runs.csv   # the third column, no plot";

/// The widest plot, columns.
const WIDTH_MAX: i64 = 10_000;

/// Compare data sets as ministat(1) does
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES, args_override_self = true)]
pub struct Ministat {
    /// Data sets, at most 7; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// Behave like versions up to 2017, including Debian's
    #[arg(long)]
    classic: bool,

    /// Print statistics only: neither plot nor comparisons
    #[arg(short = 'n')]
    statistics_only: bool,

    /// Print a bar for each data set in the plot
    #[arg(short = 's')]
    separate_bars: bool,

    /// Print no plot
    #[arg(short = 'A')]
    no_plot: bool,

    /// Print neither the names of the sets nor headings
    #[arg(short = 'q')]
    quiet: bool,

    /// Column with the numbers
    #[arg(short = 'C', value_name = "N", default_value_t = 1, value_parser = column)]
    column: usize,

    /// Confidence in %: 80, 90, 95, 98, 99 or 99.5
    #[arg(short = 'c', value_name = "PERCENT", default_value = "95", value_parser = confidence)]
    confidence: Confidence,

    /// Each of these characters ends a column [default: blank and tab]
    #[arg(short = 'd', value_name = "CHARACTERS", hide_default_value = true,
          default_value = " \t", value_parser = delimiters)]
    delimiters: String,

    /// The width of the plot [default: that of the terminal, or 74]
    #[arg(short = 'w', value_name = "COLUMNS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(WIDTH_MIN as i64..=WIDTH_MAX))]
    width: Option<i64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result as JSON.
#[derive(Serialize)]
struct Document<'a> {
    version: Version,
    confidence_percent: f64,
    sets: Vec<Set<'a>>,
}

#[derive(Serialize)]
struct Set<'a> {
    name: &'a str,
    symbol: char,
    #[serde(flatten)]
    statistics: Statistics,
    /// Against the first set.
    difference: Option<Difference>,
}

fn column(text: &str) -> Result<usize, String> {
    let column = text.parse().ok().filter(|column| *column > 0);
    column.ok_or_else(|| "columns are counted from 1".to_owned())
}

fn confidence(text: &str) -> Result<Confidence, String> {
    let known = text.parse().ok().and_then(Confidence::from_percent);
    known.ok_or_else(|| "not one of 80, 90, 95, 98, 99 and 99.5".to_owned())
}

fn delimiters(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("at least one character must end a column".to_owned());
    }
    Ok(text.to_owned())
}

impl Ministat {
    pub fn run(&self) -> Result<()> {
        let sets = self.read()?;
        let options = MinistatOptions {
            version: self.version(),
            confidence: self.confidence,
            statistics_only: self.statistics_only,
            no_plot: self.no_plot || self.json,
            separate_bars: self.separate_bars,
            quiet: self.quiet,
            width: self.width(),
        };
        let report = Report::new(&sets, options).context("plotting (-A omits the plot)")?;
        if self.json {
            return output::print_json(&self.document(&report));
        }
        let mut out = output::stdout();
        for line in report.lines() {
            writeln!(out, "{line}").map_err(output::stdout_error)?;
        }
        out.flush().map_err(output::stdout_error)
    }

    fn version(&self) -> Version {
        if self.classic {
            Version::Classic
        } else {
            Version::Current
        }
    }

    /// As the original: COLUMNS, or two less than the terminal has, for the frame.
    fn width(&self) -> usize {
        if let Some(width) = self.width {
            return width as usize;
        }
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return WIDTH;
        }
        let columns = std::env::var("COLUMNS").ok();
        let told = columns.and_then(|columns| columns.trim().parse().ok());
        let terminal = || {
            let size = termios::tcgetwinsize(&stdout).ok()?;
            usize::from(size.ws_col).checked_sub(2)
        };
        let width = told.or_else(terminal).filter(|width| *width >= WIDTH_MIN);
        width.unwrap_or(WIDTH).min(WIDTH_MAX as usize)
    }

    fn read(&self) -> Result<Vec<DataSet>> {
        let format = Format {
            column: self.column,
            delimiters: self.delimiters.clone().into_bytes(),
        };
        if self.files.is_empty() {
            return Ok(vec![read_set(io::stdin().lock(), "<stdin>", &format)?]);
        }
        let count = self.files.len();
        if count > SETS_MAX {
            let problem = format!("{count} data sets; the plot has symbols for {SETS_MAX}");
            return Err(Usage(problem).into());
        }
        let is_stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
        if self.files.iter().filter(is_stdin).count() > 1 {
            let problem = "standard input (-) can be only one of the data sets";
            return Err(Usage(problem.to_owned()).into());
        }
        let sets = self.files.iter().map(|path| self.read_file(path, &format));
        sets.collect()
    }

    fn read_file(&self, path: &Path, format: &Format) -> Result<DataSet> {
        let name = printable(&path.display().to_string());
        if path == Path::new("-") {
            let name = if self.classic { "<stdin>" } else { "-" };
            return read_set(io::stdin().lock(), name, format);
        }
        let file = File::open(path).with_context(|| name.to_owned())?;
        read_set(BufReader::new(file), &name, format)
    }

    fn document<'a>(&self, report: &'a Report) -> Document<'a> {
        let first = None;
        let differences = report.differences().iter().copied().map(Some);
        let differences = std::iter::once(first).chain(differences);
        let sets = report.names().iter().zip(report.statistics());
        let padded = differences.chain(std::iter::repeat(None));
        let sets =
            sets.zip(SYMBOLS)
                .zip(padded)
                .map(|(((name, statistics), symbol), difference)| Set {
                    name,
                    symbol,
                    statistics: *statistics,
                    difference,
                });
        Document {
            version: self.version(),
            confidence_percent: self.confidence.percent(),
            sets: sets.collect(),
        }
    }
}

/// Reads a data set line by line, none of them longer than the parser takes.
fn read_set(mut input: impl BufRead, name: &str, format: &Format) -> Result<DataSet> {
    let mut parser = Parser::new(name, format);
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than is allowed, so that the parser sees that it is too long.
        let mut limited = input.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut line);
        if read.with_context(|| name.to_owned())? == 0 {
            return parser.finish().map_err(shown);
        }
        parser.line(&line).map_err(shown)?;
    }
}

/// The text in a file may control the terminal; its error is shown without that.
fn shown(error: ugeom_measure::ministat::Error) -> anyhow::Error {
    anyhow::Error::msg(printable(&error.to_string()))
}
