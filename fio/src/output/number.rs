//! Numbers of few digits with a prefix, as fio prints them: `12.8k`, `50.1MiB/s`.

use ugeom_job::settings::Job;

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

/// How the numbers of a job are printed: `significant_figures`, `kb_base` and `unit_base`.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    digits: usize,
    /// Powers of 1000 come first.
    decimal: bool,
    /// Rates are in bits.
    bits: bool,
}

impl Numbers {
    pub fn of(job: &Job) -> Self {
        Self {
            digits: job.figures,
            decimal: job.decimal_units,
            bits: job.rates_in_bits,
        }
    }

    /// A number of requests: `12.8k`.
    pub fn count(self, number: u64) -> String {
        short(number, self.digits, false, "")
    }

    /// A number of bytes: `31.9MiB` and `33.4MB`, or the other way round.
    pub fn size(self, bytes: u64) -> [String; 2] {
        self.both(bytes, "B")
    }

    /// A rate: `31.9MiB/s` and `33.4MB/s`.
    pub fn rate(self, bytes_per_second: u64) -> [String; 2] {
        match self.bits {
            true => self.both(bytes_per_second.saturating_mul(8), "bit/s"),
            false => self.both(bytes_per_second, "B/s"),
        }
    }

    fn both(self, number: u64, unit: &str) -> [String; 2] {
        [!self.decimal, self.decimal].map(|binary| short(number, self.digits, binary, unit))
    }

    /// The unit of sampled rates in KiB/s, and their divisor. As in fio, `unit_base` has no effect
    /// on them, and `kb_base` changes the unit but not the values (`show_ddir_status` in stat.c).
    pub fn sampled(self, mean_kib: f64) -> (&'static str, f64) {
        let thousand = if self.decimal { 1000.0 } else { 1024.0 };
        match mean_kib > thousand * thousand {
            true => ("MiB", thousand),
            false if self.decimal => ("kB", 1.0),
            false => ("KiB", 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_job::error::Origin;
    use ugeom_job::options::{Setting, apply};

    fn numbers(options: &[(&str, &str)]) -> Numbers {
        let mut job = Job::new("test", Origin::Default);
        for (name, value) in options {
            let setting = Setting::new(name, Some((*value).to_owned()), Origin::Default);
            apply(&mut job, &setting).expect("an option");
        }
        Numbers::of(&job)
    }

    #[test]
    fn numbers_are_as_fio_printed_them() {
        // From outputs of fio 3.33.
        let plain = numbers(&[]);
        assert_eq!(plain.count(12_830), "12.8k");
        assert_eq!(plain.rate(52_533_333), ["50.1MiB/s", "52.5MB/s"]);
        assert_eq!(plain.count(2000), "2000");
        assert_eq!(plain.size(4096)[0], "4096B");
        assert_eq!(plain.size(64 << 20)[0], "64.0MiB");
        assert_eq!(short(16_104_123, 6, false, ""), "16104k");
        assert_eq!(short(1452, 6, false, ""), "1452");
        assert_eq!(plain.count(256_000), "256k");
    }

    #[test]
    fn a_fraction_that_rounds_up_to_one_is_carried() {
        assert_eq!(numbers(&[]).rate(14_659_584)[0], "14.0MiB/s");
    }

    #[test]
    fn options_change_digits_and_units() {
        let bits = numbers(&[("unit_base", "1"), ("significant_figures", "6")]);
        assert_eq!(bits.rate(52_533_333), ["410417Kibit/s", "420267kbit/s"]);
        let decimal = numbers(&[("kb_base", "1000")]);
        assert_eq!(decimal.rate(52_533_333), ["52.5MB/s", "50.1MiB/s"]);
        assert_eq!(decimal.sampled(500.0), ("kB", 1.0));
        assert_eq!(bits.sampled(2e6), ("MiB", 1024.0));
    }
}
