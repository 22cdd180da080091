//! Data sets: one number a line, from one column of it.
//!
//! A line is cut at each delimiter; empty pieces do not count. From a piece that begins with `#` on
//! it is a comment. Lines that end before the column are left out, as are empty ones.

use super::number::{is_space, parse};
use super::{Error, LINE_BYTES_MAX, VALUES_MAX, VALUES_MIN};

/// How much of a piece that is no number is shown.
const SHOWN_CHARS: usize = 40;

/// How lines are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// The column that holds the number, from 1.
    pub column: usize,
    /// Each of these bytes ends a column.
    pub delimiters: Vec<u8>,
}

impl Default for Format {
    /// The first column; blanks and tabs between them.
    fn default() -> Self {
        Self {
            column: 1,
            delimiters: b" \t".to_vec(),
        }
    }
}

/// A data set as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSet {
    /// Its name, usually that of the file.
    pub name: String,
    /// The values in the order of the lines, all finite, at least [`VALUES_MIN`].
    pub values: Vec<f64>,
}

impl DataSet {
    /// Reads a whole text.
    ///
    /// # Errors
    /// As [`Parser::line`] and [`Parser::finish`].
    pub fn parse(name: &str, text: &[u8], format: &Format) -> Result<Self, Error> {
        let mut parser = Parser::new(name, format);
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        for line in text.split(|byte| *byte == b'\n') {
            parser.line(line)?;
        }
        parser.finish()
    }
}

/// Takes a data set line by line.
#[derive(Debug, Clone)]
pub struct Parser<'a> {
    format: &'a Format,
    set: DataSet,
    line: u64,
    widest: usize,
}

impl<'a> Parser<'a> {
    /// An empty data set of this name.
    pub fn new(name: &str, format: &'a Format) -> Self {
        let set = DataSet {
            name: name.to_owned(),
            values: Vec::new(),
        };
        Self {
            format,
            set,
            line: 0,
            widest: 0,
        }
    }

    /// Takes the next line, with or without its line feed.
    ///
    /// # Errors
    /// [`Error::LineTooLong`], [`Error::NotANumber`], [`Error::NotFinite`], [`Error::TooMany`].
    pub fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        self.line += 1;
        if line.len() > LINE_BYTES_MAX {
            let (name, line) = (self.set.name.clone(), self.line);
            return Err(Error::LineTooLong { name, line });
        }
        // White space at the end of a line is none of its columns, whatever the delimiters are.
        let end = line.iter().rposition(|byte| !is_space(*byte));
        let line = &line[..end.map_or(0, |last| last + 1)];
        let is_delimiter = |byte: &u8| self.format.delimiters.contains(byte);
        let columns = line
            .split(is_delimiter)
            .filter(|piece| !piece.is_empty())
            .take_while(|piece| !piece.starts_with(b"#"));
        let (mut count, mut wanted) = (0, None);
        for piece in columns {
            count += 1;
            if count == self.format.column {
                wanted = Some(piece);
            }
        }
        self.widest = self.widest.max(count);
        wanted.map_or(Ok(()), |piece| self.value(piece))
    }

    fn value(&mut self, piece: &[u8]) -> Result<(), Error> {
        let (name, line) = (self.set.name.clone(), self.line);
        let Some(value) = parse(piece) else {
            let text = shown(piece);
            return Err(Error::NotANumber { name, line, text });
        };
        if !value.is_finite() {
            let text = shown(piece);
            return Err(Error::NotFinite { name, line, text });
        }
        if self.set.values.len() == VALUES_MAX {
            return Err(Error::TooMany { name, line });
        }
        self.set.values.push(value);
        Ok(())
    }

    /// Ends the input; at least [`VALUES_MIN`] values were added.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] when lines have columns but never this one, [`Error::TooFew`].
    pub fn finish(self) -> Result<DataSet, Error> {
        let (name, got) = (self.set.name.clone(), self.set.values.len());
        if got == 0 && self.widest > 0 {
            let (column, widest) = (self.format.column, self.widest);
            return Err(Error::NoSuchColumn {
                name,
                column,
                widest,
            });
        }
        if got < VALUES_MIN {
            return Err(Error::TooFew { name, got });
        }
        Ok(self.set)
    }
}

/// The beginning of text that is no number.
fn shown(piece: &[u8]) -> String {
    let text = String::from_utf8_lossy(piece);
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str, column: usize, delimiters: &str) -> Result<Vec<f64>, Error> {
        let format = Format {
            column,
            delimiters: delimiters.as_bytes().to_vec(),
        };
        DataSet::parse("set", text.as_bytes(), &format).map(|set| set.values)
    }

    #[test]
    fn comments_empty_lines_and_short_lines_are_left_out() {
        let text = "# a comment\n1 a\n\n  2\tb # c\n   \n#3\n4 #\r\n5.5";
        assert_eq!(values(text, 1, " \t"), Ok(vec![1.0, 2.0, 4.0, 5.5]));
        let table = "a 1\nb 2\nc\nd #4\ne  5\n";
        assert_eq!(values(table, 2, " \t"), Ok(vec![1.0, 2.0, 5.0]));
        assert_eq!(
            values("1,,7\n2,8\n3,9,x\n", 2, ",;"),
            Ok(vec![7.0, 8.0, 9.0])
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let told = |text: &str, column| values(text, column, " \t").unwrap_err().to_string();
        assert_eq!(
            told("1\n# 2\n3,5\n", 1),
            "set: line 3: `3,5` is not a number"
        );
        assert_eq!(
            told("1\nnan\n", 1),
            "set: line 2: `nan` is not a finite number"
        );
        assert_eq!(
            told("1\n-1e999\n", 1),
            "set: line 2: `-1e999` is not a finite number"
        );
        assert_eq!(
            told("1\n2\n#3\n", 1),
            "set: a data set needs at least 3 values, this one has 2"
        );
        assert!(told("", 1).ends_with("this one has 0"));
        assert_eq!(
            told("1 2\n1 2\n1 2\n", 3),
            "set: there is no column 3: the longest line has 2"
        );
        let long = format!("1\n{}\n", "x".repeat(LINE_BYTES_MAX + 1));
        assert_eq!(
            told(&long, 1),
            "set: line 2 is longer than 65536 bytes; is this a text?"
        );
        let word = format!("{}\n", "x".repeat(100));
        assert_eq!(
            told(&word, 1),
            format!("set: line 1: `{}...` is not a number", "x".repeat(40))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            text in vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'1'), any::<u8>()], 0..200),
            column in 1_usize..4,
            delimiters in vec(any::<u8>(), 1..3),
        ) {
            let format = Format { column, delimiters };
            if let Ok(set) = DataSet::parse("set", &text, &format) {
                prop_assert!(set.values.len() >= VALUES_MIN);
                prop_assert!(set.values.iter().all(|value| value.is_finite()));
            }
        }

        #[test]
        fn what_is_written_is_read_back(
            rows in vec((any::<i32>(), -1e300_f64..1e300), 3..50),
            comment in "[a-z0-9 #]{0,20}",
        ) {
            let lines = rows.iter().map(|(first, second)| {
                format!("{first} {second:e}\t# {comment}\n# {comment}\n")
            });
            let text: String = lines.collect();
            let expected: Vec<f64> = rows.iter().map(|row| row.1).collect();
            prop_assert_eq!(values(&text, 2, " \t"), Ok(expected));
        }
    }
}
