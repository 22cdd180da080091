//! Numbers of few digits with a prefix, as fio prints them: `12.8k`, `50.1MiB/s`.

/// fio shows so many significant digits (`FIO_OPT_SIG_FIGS`).
const DIGITS: usize = 4;

/// A number in at most `length` characters, before its prefix and unit: as many decimals as fit.
pub fn short(number: u64, length: usize, binary: bool, unit: &str) -> String {
    const PREFIXES: [[&str; 7]; 2] = [
        ["", "k", "M", "G", "T", "P", "E"],
        ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
    ];
    let thousand = if binary { 1024 } else { 1000 };
    let prefixes = PREFIXES[usize::from(binary)];
    let (mut whole, mut rest, mut power) = (number, None, 0);
    while whole.to_string().len() > length && power + 1 < prefixes.len() {
        rest = Some(whole % thousand);
        whole /= thousand;
        power += 1;
    }
    let prefix = prefixes[power];
    let Some(rest) = rest else {
        return format!("{whole}{prefix}{unit}");
    };
    let decimals = length.saturating_sub(whole.to_string().len() + 1);
    if decimals == 0 {
        let whole = whole + u64::from(rest >= thousand / 2);
        return format!("{whole}{prefix}{unit}");
    }
    let fraction = format!("{:.decimals$}", rest as f64 / thousand as f64);
    // fio keeps the whole number where the fraction rounds up to one, and prints 13.98 as 13.0.
    let whole = whole + u64::from(fraction.starts_with('1'));
    format!("{whole}.{}{prefix}{unit}", &fraction[2..])
}

/// In powers of 1024: `31.9MiB`.
pub fn binary(bytes: u64, unit: &str) -> String {
    short(bytes, DIGITS, true, unit)
}

/// In powers of 1000: `33.4MB`.
pub fn decimal(number: u64, unit: &str) -> String {
    short(number, DIGITS, false, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_fio_printed_them() {
        // From outputs of fio 3.33.
        assert_eq!(decimal(12_830, ""), "12.8k");
        assert_eq!(binary(52_533_333, "B/s"), "50.1MiB/s");
        assert_eq!(decimal(52_533_333, "B/s"), "52.5MB/s");
        assert_eq!(decimal(2000, ""), "2000");
        assert_eq!(binary(4096, "B"), "4096B");
        assert_eq!(binary(64 << 20, "B"), "64.0MiB");
        assert_eq!(short(16_104_123, 6, false, ""), "16104k");
        assert_eq!(short(1452, 6, false, ""), "1452");
        assert_eq!(decimal(256_000, ""), "256k");
    }

    #[test]
    fn a_fraction_that_rounds_up_to_one_is_carried() {
        assert_eq!(binary(14_659_584, "B/s"), "14.0MiB/s");
    }
}
