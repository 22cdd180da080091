//! Values with more behind them: fio reads a number as far as it goes, and leaves the rest out
//! without a word (`size=2g // all of it`, `per_job_logs=0/1`). Public job files have such values.
//! They are read in the same way here, and a warning names the part that was read.

/// The forms of values that begin with a number.
const NUMBERS: [&str; 12] = [
    "SIZE",
    "SIZE|PERCENT%",
    "SIZE[-SIZE]",
    "SIZE[,SIZE[,SIZE]]",
    "SIZE[,...]",
    "N",
    "N[,...]",
    "PERCENT",
    "PERCENT[,...]",
    "TIME",
    "TIME[,...]",
    "BOOL",
];

/// Those of whole numbers: what stands behind a point is left out, too.
const WHOLE: [&str; 4] = ["N", "N[,...]", "PERCENT", "PERCENT[,...]"];

/// The form of a range, of which fio reads a number on each side.
const RANGE: &str = "MIN-MAX[,...]";

/// The readings of a part of a value of this form that is wrong as a whole, the longest first;
/// nothing where no part may stand for the whole.
pub fn parts(form: &str, value: &str) -> Vec<String> {
    if !value.starts_with(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    if form == RANGE {
        let sides = value.split_once('-').or_else(|| value.split_once(':'));
        let range = sides.map(|(low, high)| format!("{}-{}", number(low), number(high)));
        return range.into_iter().collect();
    }
    if !NUMBERS.contains(&form) {
        return Vec::new();
    }
    let whole = WHOLE.contains(&form);
    let is_end = |c: char| ends_number(c) || (whole && c == '.');
    let ends = value.char_indices().rev().filter(|(_, c)| is_end(*c));
    let ends = ends.map(|(at, _)| value[..at].trim_end().to_owned());
    let is_list = form.contains("[,") && value.contains(',');
    let numbers = || value.split(',').map(number).collect::<Vec<_>>().join(",");
    is_list.then(numbers).into_iter().chain(ends).collect()
}

/// The number at the beginning of a text.
fn number(text: &str) -> &str {
    &text[..text.find(ends_number).unwrap_or(text.len())]
}

/// Commas divide lists, whose parts are all read.
fn ends_number(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '.' | ',' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_comes_first_and_units_stay_with_their_numbers() {
        let size = parts("SIZE|PERCENT%", "2g    // => all of it");
        assert_eq!(size.last().map(String::as_str), Some("2g"));
        let sizes = parts("SIZE[-SIZE]", "16-8k/8M-512M");
        assert_eq!(sizes, ["16-8k/8M", "16-8k", "16"]);
        assert_eq!(parts("PERCENT[,...]", "33.7"), ["33"]);
        assert_eq!(parts("SIZE[,...]", "1k-9k,4k"), ["1k,4k", "1k"]);
        let range = parts(RANGE, "512/25:1k:25:2k:25:4k/25");
        assert_eq!(range, ["512-1k"]);
    }

    #[test]
    fn names_and_lists_of_other_forms_have_no_parts() {
        assert!(parts("PATTERN", "randread:x").is_empty());
        assert!(parts("SIZE", "k/2").is_empty());
        assert!(parts("SIZE/PERCENT:...[,...]", "4k/50:8k").is_empty());
        assert!(parts("N", "4x").is_empty());
        assert!(parts("SIZE", "1.5m").is_empty());
    }
}
