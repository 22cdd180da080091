//! The nearest of some known names to a word that is none of them, for "did you mean".

use strsim::osa_distance;

/// Words longer than this are not compared: no name is that long.
const COMPARED_CHARS_MAX: usize = 32;

/// The candidate with the smallest distance to `word`, if it is near enough to be meant:
/// at most one change in three characters, at least one; the exchange of two neighbours is one
/// change (optimal string alignment). The first of equals wins. Case is ignored.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = lowered(word)?;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(other) = lowered(candidate) else { continue };
        let longest = word.chars().count().max(other.chars().count());
        let near = osa_distance(&word, &other);
        let is_near = near <= (longest / 3).max(1) && near < longest;
        if is_near && best.is_none_or(|(least, _)| near < least) {
            best = Some((near, candidate));
        }
    }
    best.map(|(_, name)| name)
}

fn lowered(word: &str) -> Option<String> {
    let is_short = word.chars().nth(COMPARED_CHARS_MAX).is_none();
    is_short.then(|| word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_advised() {
        let names = ["md", "zero", "nop", "mbr", "sectorsize"];
        assert_eq!(nearest("mdd", names), Some("md"));
        assert_eq!(nearest("ZERO", names), Some("zero"));
        assert_eq!(nearest("setcorsise", names), Some("sectorsize"));
        assert_eq!(nearest("stripe", names), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest(&"m".repeat(100_000), names), None);
    }
}
