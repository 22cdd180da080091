//! Arithmetic in values: fio hands a value with `$ncpus` and the like to bc(1), and reads one in
//! parentheses, `(4k*2)`, by itself. Both are whole numbers here.

/// The value of an expression; `None` if it is no arithmetic: a path, a name, a range.
///
/// # Errors
/// A division by zero, a number that is too large, or a sign that stands wrong.
pub fn calculate(text: &str) -> Option<Result<u64, String>> {
    let first = text.trim_start().chars().next()?;
    if !(first.is_ascii_digit() || first == '(') {
        return None;
    }
    let mut sum = Sum { rest: text };
    let result = sum.terms(0).and_then(|number| match sum.next() {
        None => Ok(number),
        Some(_) => Err(format!("`{text}` cannot be calculated")),
    });
    match result {
        // `4096-16384` is a range.
        Ok(number) => u64::try_from(number).ok().map(Ok),
        Err(_) if text.chars().any(|c| c.is_alphabetic()) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The deepest nesting of parentheses.
const DEPTH_MAX: u32 = 32;

/// The unread rest.
struct Sum<'a> {
    rest: &'a str,
}

impl Sum<'_> {
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let found = self.next().filter(|c| wanted.contains(c))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn terms(&mut self, depth: u32) -> Result<i128, String> {
        let mut sum = self.factors(depth)?;
        while let Some(sign) = self.take(&['+', '-']) {
            let term = self.factors(depth)?;
            sum = fits(match sign {
                '+' => sum.checked_add(term),
                _ => sum.checked_sub(term),
            })?;
        }
        Ok(sum)
    }

    fn factors(&mut self, depth: u32) -> Result<i128, String> {
        let mut product = self.power(depth)?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let factor = self.power(depth)?;
            if factor == 0 && sign != '*' {
                return Err("a division by zero".to_owned());
            }
            product = fits(match sign {
                '*' => product.checked_mul(factor),
                '/' => product.checked_div(factor),
                _ => product.checked_rem(factor),
            })?;
        }
        Ok(product)
    }

    fn power(&mut self, depth: u32) -> Result<i128, String> {
        let base = self.number(depth)?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        // From the right: 2^3^2 is 2^9.
        let deeper = deeper(depth)?;
        let exponent = u32::try_from(self.power(deeper)?).ok();
        fits(exponent.and_then(|exponent| base.checked_pow(exponent)))
    }

    /// A number with a unit of size, or a sum in parentheses.
    fn number(&mut self, depth: u32) -> Result<i128, String> {
        if self.take(&['-']).is_some() {
            return fits(self.number(deeper(depth)?)?.checked_neg());
        }
        if self.take(&['(']).is_some() {
            let sum = self.terms(deeper(depth)?)?;
            return match self.take(&[')']) {
                Some(_) => Ok(sum),
                None => Err("a ( is not closed by a )".to_owned()),
            };
        }
        self.next();
        let end = self.rest.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let number = digits.parse::<i128>();
        let number = number.map_err(|_| "a number is missing or too large".to_owned())?;
        let unit = rest.chars().next().map(|c| c.to_ascii_lowercase());
        let Some(power) = unit.and_then(|unit| "kmgt".find(unit)) else {
            return Ok(number);
        };
        self.rest = &rest[1..];
        fits(number.checked_mul(1 << (10 * (power + 1))))
    }
}

fn deeper(depth: u32) -> Result<u32, String> {
    match depth < DEPTH_MAX {
        true => Ok(depth + 1),
        false => Err(format!("more than {DEPTH_MAX} levels of signs")),
    }
}

fn fits(number: Option<i128>) -> Result<i128, String> {
    number.ok_or_else(|| "a number is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_calculated_as_by_bc() {
        for (text, number) in [
            ("10*10*1000*24105", 2_410_500_000),
            ("4096*3+4096", 16384),
            ("4096*(3+2)", 20480),
            ("8192-4096", 4096),
            ("4096/2*8", 16384),
            ("4096%1000*5", 480),
            ("2^12", 4096),
            ("2^3^2", 512),
            ("7 / 2", 3),
            ("2*-3+10", 4),
            ("(4k*2+1)", 8193),
            ("2*2*1k", 4096),
        ] {
            assert_eq!(calculate(text), Some(Ok(number)), "{text}");
        }
    }

    #[test]
    fn names_paths_and_ranges_stay_as_they_are() {
        for text in [
            "",
            "/tmp/2",
            "disk-2",
            "mkt-2",
            "4k-x",
            "2/log.d",
            "4096-16384",
            "-4",
        ] {
            assert_eq!(calculate(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_calculated_is_an_error() {
        let nested = "(".repeat(1000);
        let signs = format!("1{}2", "-".repeat(1000));
        let powers = format!("1{}", "^1".repeat(1000));
        for text in [
            "1/0", "1%(2-2)", "2*", "2**3", "(2", "2)", "2 3", "2^999", "2^-1", &nested, &signs,
            &powers,
        ] {
            assert!(calculate(text).is_some_and(|sum| sum.is_err()), "{text}");
        }
        let large = "9".repeat(60);
        assert!(calculate(&large).is_some_and(|sum| sum.is_err()));
    }
}
