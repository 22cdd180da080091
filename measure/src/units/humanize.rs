//! Sizes as FreeBSD's tools print them.
//!
//! Source: humanize_number(3) of FreeBSD's libutil, its documented behaviour; the rounding at the
//! edges follows the table of `lib/libutil/tests/humanize_number_test.c`.

/// How far a number is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As often as needed to fit the width (HN_AUTOSCALE).
    Auto,
    /// This often, 0 to 6 times.
    Fixed(u32),
}

/// The form of the output: the flags of humanize_number(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Humanize<'a> {
    /// The width of the buffer in bytes, of which the terminating zero of the original takes one.
    pub width_bytes: usize,
    /// The text after the prefix.
    pub suffix: &'a str,
    /// How far to divide.
    pub scale: Scale,
    /// One digit behind the point where the number is below 10 (HN_DECIMAL).
    pub decimal: bool,
    /// No blank between number and prefix (HN_NOSPACE).
    pub no_space: bool,
    /// "B" in the place of the prefix when the number was not divided (HN_B).
    pub bytes: bool,
    /// Divide by 1,000 instead of 1,024 (HN_DIVISOR_1000).
    pub thousands: bool,
    /// Prefixes Ki, Mi, Gi instead of K, M, G (HN_IEC_PREFIXES); not together with `thousands`.
    pub iec: bool,
}

/// The largest number of divisions: exa.
const SCALE_MAX: u32 = 6;

/// Writes `number` in the given form. None where the original answers -1: the width is too small, a
/// fixed scale is above 6, or IEC prefixes are asked for with a divisor of 1,000.
pub fn humanize_number(number: i64, form: &Humanize<'_>) -> Option<String> {
    if (form.thousands && form.iec) || matches!(form.scale, Scale::Fixed(7..)) {
        return None;
    }
    let divisor = if form.thousands { 1000 } else { 1024 };
    let space = if form.no_space { "" } else { " " };
    // The sign, one digit, the blank, the prefix and the suffix must fit before the zero at the
    // end; what is left over is for more digits.
    let sign_bytes = usize::from(number < 0);
    let prefix_bytes = if form.iec { 2 } else { 1 };
    let taken = sign_bytes + 1 + space.len() + prefix_bytes + form.suffix.len();
    let digits = form
        .width_bytes
        .checked_sub(taken)
        .filter(|digits| *digits > 0)?;
    // 19 digits hold every number.
    let limit = 10_u64.saturating_pow(digits.min(19) as u32);
    let mut value = Divided {
        whole: number.unsigned_abs(),
        rest: 0,
        times: 0,
    };
    match form.scale {
        Scale::Auto => {
            while value.times < SCALE_MAX && value.overflows(limit, divisor) {
                value.divide(divisor);
            }
        }
        Scale::Fixed(times) => (0..times).for_each(|_| value.divide(divisor)),
    }
    let (whole, tenths) = if form.decimal && value.times > 0 && value.is_below_ten(divisor) {
        let tenths = value.whole * 10 + (value.rest * 10 + divisor / 2) / divisor;
        (tenths / 10, format!(".{}", tenths % 10))
    } else {
        (
            value.whole + (value.rest + divisor / 2) / divisor,
            String::new(),
        )
    };
    // The original multiplies sign and whole part, so that a number above -1 has no sign.
    let sign = if number < 0 && whole > 0 { "-" } else { "" };
    let prefix = prefix(value.times, form);
    let text = format!("{sign}{whole}{tenths}{space}{prefix}{}", form.suffix);
    // The original writes into a buffer of this width and loses what does not fit.
    Some(
        text.chars()
            .take(form.width_bytes.saturating_sub(1))
            .collect(),
    )
}

/// A number on its way down.
struct Divided {
    whole: u64,
    rest: u64,
    times: u32,
}

impl Divided {
    fn divide(&mut self, divisor: u64) {
        self.rest = self.whole % divisor;
        self.whole /= divisor;
        self.times += 1;
    }

    /// Whether it has too many digits, or would have when rounded.
    fn overflows(&self, limit: u64, divisor: u64) -> bool {
        self.whole >= limit || (self.whole == limit - 1 && self.rest >= divisor / 2)
    }

    /// Whether it still reads 9.9 or less with one digit behind the point.
    fn is_below_ten(&self, divisor: u64) -> bool {
        // From 0.95 of the divisor on, 9.95 would be rounded to 10.0.
        let cut = (divisor * 95).div_ceil(100);
        self.whole < 9 || (self.whole == 9 && self.rest < cut)
    }
}

fn prefix(times: u32, form: &Humanize<'_>) -> &'static str {
    const BINARY: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    const THOUSANDS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    const IEC: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let table = match (form.iec, form.thousands) {
        (true, _) => &IEC,
        (_, true) => &THOUSANDS,
        _ => &BINARY,
    };
    match times.checked_sub(1) {
        Some(step) => table[step as usize],
        None if form.bytes => "B",
        None => "",
    }
}

/// A media size as `diskinfo -v` prints it in parentheses: five bytes, binary, with "B" and without
/// a blank. The original's number is signed; sizes beyond 2^63 - 1 are written as that.
pub fn diskinfo_size(bytes: u64) -> String {
    let form = Humanize {
        width_bytes: 5,
        suffix: "",
        scale: Scale::Auto,
        decimal: true,
        no_space: true,
        bytes: true,
        thousands: false,
        iec: false,
    };
    humanize_number(i64::try_from(bytes).unwrap_or(i64::MAX), &form).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(width_bytes: usize, scale: Scale) -> Humanize<'static> {
        Humanize {
            width_bytes,
            suffix: "",
            scale,
            decimal: false,
            no_space: false,
            bytes: false,
            thousands: false,
            iec: false,
        }
    }

    fn fixed(form: Humanize<'static>, times: u32) -> Humanize<'static> {
        Humanize {
            scale: Scale::Fixed(times),
            ..form
        }
    }

    fn hold(cases: &[(Humanize<'_>, i64, &str)]) {
        for (form, number, text) in cases {
            let printed = humanize_number(*number, form);
            assert_eq!(printed.as_deref(), Some(*text), "{number}");
        }
    }

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
            (1 << 20, "1.0M"),
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

    #[test]
    fn freebsds_own_cases_for_a_buffer_of_four_bytes_hold() {
        let auto = form(4, Scale::Auto);
        let thousands = Humanize {
            thousands: true,
            ..auto
        };
        hold(&[
            (thousands, 0, "0 "),
            (thousands, 500, "1 k"),
            (thousands, 500_000, "1 M"),
            (thousands, 499_999, "0 M"),
            (thousands, 1_499_999, "1 M"),
            (thousands, 1_500_000, "2 M"),
            (auto, 1, "1 "),
            (auto, 511, "0 K"),
            (auto, 512, "1 K"),
            (auto, 1536, "2 K"),
            (auto, 512 << 50, "1 E"),
            (fixed(thousands, 2), 1500, "0 M"),
            (fixed(thousands, 6), 1_500_000_000_000_000_000, "2 E"),
            (fixed(thousands, 0), 1500, "150"),
            (fixed(auto, 0), 10, "10 "),
        ]);
    }

    #[test]
    fn freebsds_own_cases_for_a_buffer_of_six_bytes_hold() {
        let binary = form(6, Scale::Auto);
        let decimal = Humanize {
            decimal: true,
            ..binary
        };
        let thousands = Humanize {
            thousands: true,
            ..decimal
        };
        hold(&[
            (binary, i64::MAX, "8 E"),
            (binary, -i64::MAX, "-8 E"),
            (fixed(binary, 6), -(92 << 50), "0 E"),
            (fixed(binary, 5), -(92 << 50), "-92 P"),
            (fixed(binary, 0), 92 << 50, "10358"),
            (thousands, 995_000, "995 k"),
            (thousands, 1_949_000, "1.9 M"),
            (thousands, 1_950_000, "2.0 M"),
            (thousands, 9_949_000, "9.9 M"),
            (thousands, 9_950_000, "10 M"),
            (thousands, -1_949_000, "-1.9 "),
            (thousands, i64::MAX, "9.2 E"),
            (decimal, 1000 << 10, "1.0 M"),
            (decimal, 1996 << 10, "1.9 M"),
            (decimal, 1997 << 10, "2.0 M"),
            (decimal, 2099 << 10, "2.0 M"),
            (decimal, 2100 << 10, "2.1 M"),
            (decimal, 10_188 << 10, "9.9 M"),
            (decimal, 10_189 << 10, "10 M"),
            (decimal, i64::MAX - (100 << 50), "7.9 E"),
            (fixed(thousands, 2), 949_000, "0.9 M"),
            (fixed(thousands, 2), 950_000, "1.0 M"),
            (fixed(decimal, 2), 512 << 10, "0.5 M"),
        ]);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        assert_eq!(
            humanize_number(1, &form(3, Scale::Auto)),
            None,
            "no room for the prefix"
        );
        assert_eq!(humanize_number(1, &form(4, Scale::Fixed(7))), None);
        let both = Humanize {
            thousands: true,
            iec: true,
            ..form(9, Scale::Auto)
        };
        assert_eq!(humanize_number(1, &both), None);
        let wide = Humanize {
            iec: true,
            suffix: "B",
            ..form(usize::MAX, Scale::Auto)
        };
        assert_eq!(
            humanize_number(i64::MIN, &wide).unwrap(),
            "-9223372036854775808 B"
        );
        let narrow = Humanize {
            width_bytes: 9,
            ..wide
        };
        assert_eq!(humanize_number(1 << 20, &narrow).unwrap(), "1024 KiB");
    }
}
