//! A media size as FreeBSD's tools print it.
//!
//! Source: humanize_number(3) of FreeBSD's libutil, as diskinfo and gpart call it: a buffer of five
//! bytes, `HN_B | HN_NOSPACE | HN_DECIMAL`, scaled until it fits.

/// The prefix after each division by 1,024; "B" before the first.
const PREFIXES: [&str; 7] = ["B", "K", "M", "G", "T", "P", "E"];

/// A media size as `diskinfo -v` prints it in parentheses: at most four characters, binary, with
/// "B" and without a blank. The original's number is signed; sizes beyond 2^63 - 1 are written as
/// that.
pub fn diskinfo_size(bytes: u64) -> String {
    let (mut whole, mut rest, mut times) = (bytes.min(i64::MAX as u64), 0, 0);
    // Three digits fit, also after rounding.
    while whole > 999 || (whole == 999 && rest >= 512) {
        (whole, rest, times) = (whole / 1024, whole % 1024, times + 1);
    }
    let prefix = PREFIXES[times];
    // One digit behind the point below 10; from 9.95 on, that would be 10.0.
    if times > 0 && (whole < 9 || (whole == 9 && rest < 973)) {
        let tenths = whole * 10 + (rest * 10 + 512) / 1024;
        return format!("{}.{}{prefix}", tenths / 10, tenths % 10);
    }
    format!("{}{prefix}", whole + (rest + 512) / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_sizes_read_as_diskinfo_prints_them() {
        for (bytes, text) in [
            (0, "0B"),
            (512, "512B"),
            (999, "999B"),
            (1000, "1.0K"),
            (1023, "1.0K"),
            (1 << 10, "1.0K"),
            (1_474_560, "1.4M"),
            (999 * 1024 + 511, "999K"),
            (999 * 1024 + 512, "1.0M"),
            (1000 << 10, "1.0M"),
            (1 << 20, "1.0M"),
            (1996 << 10, "1.9M"),
            (1997 << 10, "2.0M"),
            (2099 << 10, "2.0M"),
            (2100 << 10, "2.1M"),
            (10_188 << 10, "9.9M"),
            (10_189 << 10, "10M"),
            (10 << 20, "10M"),
            (40_020_664_320, "37G"),
            (1_000_204_886_016, "932G"),
            (1 << 40, "1.0T"),
            (1 << 60, "1.0E"),
            (i64::MAX as u64, "8.0E"),
            (u64::MAX, "8.0E"),
        ] {
            assert_eq!(diskinfo_size(bytes), text, "{bytes}");
        }
    }
}
