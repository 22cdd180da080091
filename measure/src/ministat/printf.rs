//! Numbers as printf(3) writes them with `%g`, and `%13.8g`.
//!
//! Source: ISO C, 7.21.6.1: with precision P and the exponent X of the rounded number, `%f` with
//! P - 1 - X digits when -4 <= X < P, else `%e` with P - 1; zeros at the end are taken away.

/// `%.{precision}g`, with a precision of at least 1.
///
/// Every NaN that ministat can print is made by an operation of the processor, which on x86 sets
/// its sign; so C prints `-nan`.
pub(super) fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return "-nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent) as usize;
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// A number as `%13.8g` prints it.
pub(super) fn column(value: f64) -> String {
    format!("{:>13}", general(value, 8))
}

/// A number as `%g` prints it.
pub(super) fn plain(value: f64) -> String {
    general(value, 6)
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_does() {
        for (value, precision, text) in [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (100_000.0, 6, "100000"),
            (1_000_000.0, 6, "1e+06"),
            (999_999.5, 6, "1e+06"),
            (0.000_1, 6, "0.0001"),
            (0.000_099_999_95, 6, "0.0001"),
            (0.000_012_345_678, 6, "1.23457e-05"),
            (70.738_41, 6, "70.7384"),
            (238.047_614_3, 8, "238.04761"),
            (-1.5e-300, 8, "-1.5e-300"),
            (1e100, 8, "1e+100"),
            (123_456_789.0, 8, "1.2345679e+08"),
            // Exactly in the middle: to the even digit.
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (1_000_005.0, 6, "1e+06"),
            (1_000_015.0, 6, "1.00002e+06"),
            (0.125, 2, "0.12"),
            (5e-324, 8, "4.9406565e-324"),
            (f64::MAX, 6, "1.79769e+308"),
            (f64::NAN, 6, "-nan"),
            (f64::NEG_INFINITY, 6, "-inf"),
        ] {
            assert_eq!(general(value, precision), text);
        }
        assert_eq!(column(50.0), "           50");
    }
}
