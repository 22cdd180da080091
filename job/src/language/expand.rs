//! Variables in values: `${VAR}` of the environment, and fio's `$pagesize`, `$mb_memory`, `$ncpus`.

use crate::calculate::calculate;

/// Where variables come from.
pub trait Environment {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// The value of a keyword: `pagesize`, `mb_memory` or `ncpus`.
    fn keyword(&self, name: &str) -> Option<String>;
}

/// The longest value after expansion, bytes: what is inserted cannot make a line grow for ever.
const EXPANDED_BYTES_MAX: usize = 64 << 10;

/// Replaces the variables in a line. As with fio, a value that has keywords and signs of arithmetic
/// is calculated (`size=4*$mb_memory`), and a variable that is not set is replaced by nothing: its
/// name goes to `unset`.
///
/// # Errors
/// A variable that is not closed; arithmetic that has no result.
pub(super) fn expand(
    text: &str,
    environment: &dyn Environment,
    unset: &mut Vec<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut keywords = false;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(braced) = rest.strip_prefix('{') {
            let Some(end) = braced.find('}') else {
                return Err("`${` is not closed by `}`".to_owned());
            };
            let name = &braced[..end];
            match environment.variable(name) {
                Some(value) => out.push_str(&value),
                None => unset.push(name.to_owned()),
            }
            rest = &braced[end + 1..];
        } else {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            match environment.keyword(&rest[..end]) {
                Some(value) => {
                    out.push_str(&value);
                    rest = &rest[end..];
                    keywords = true;
                }
                None => out.push('$'),
            }
        }
        if out.len() > EXPANDED_BYTES_MAX {
            return Err(format!(
                "the value is longer than {EXPANDED_BYTES_MAX} bytes"
            ));
        }
    }
    out.push_str(rest);
    match out.split_once('=') {
        Some((name, value)) if keywords && value.contains(['+', '-', '*', '/']) => {
            match calculate(value) {
                Some(Ok(number)) => Ok(format!("{name}={number}")),
                Some(Err(error)) => Err(format!("{}: {error}", out.trim())),
                None => Ok(out),
            }
        }
        _ => Ok(out),
    }
}
