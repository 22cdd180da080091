//! ministat's data sets: any bytes are read or refused, and a set that was read can be computed,
//! compared and plotted without a panic. The first three bytes choose the column, the delimiter and
//! the version; a line of `=` ends a data set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ugeom_measure::ministat::{DataSet, Format, MinistatOptions, Report, VALUES_MIN, Version};

fuzz_target!(|data: &[u8]| {
    let Some((&[column, delimiter, choice], text)) = data.split_first_chunk() else { return };
    let format = Format {
        column: usize::from(column % 4) + 1,
        delimiters: vec![b' ', b'\t', delimiter],
    };
    let (version, separate_bars) = match choice % 4 {
        0 => (Version::Classic, false),
        1 => (Version::Classic, true),
        2 => (Version::Current, false),
        _ => (Version::Current, true),
    };
    let mut sets = Vec::new();
    for text in text.split(|byte| *byte == b'=') {
        if let Ok(set) = DataSet::parse("set", text, &format) {
            assert!(set.values.len() >= VALUES_MIN);
            assert!(set.values.iter().all(|value| value.is_finite()));
            sets.push(set);
        }
    }
    let options = MinistatOptions {
        version,
        separate_bars,
        width: usize::from(choice / 4) + 2,
        ..MinistatOptions::default()
    };
    if let Ok(report) = Report::new(&sets, options) {
        let width = options.width + 2;
        let framed = |line: &String| !line.starts_with('|') || line.chars().count() == width;
        assert!(report.lines().all(|line| framed(&line)));
    }
});
