//! The nearest of some known names to a word that is none of them, for "did you mean".

/// Words longer than this are not compared: nobody mistypes a name of that length.
const COMPARED_CHARS_MAX: usize = 32;

/// The candidate with the smallest distance to `word`, if it is near enough to be what was meant:
/// at most one change in three characters, at least one. The first of equals wins. Case is
/// ignored.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = lowered(word)?;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(other) = lowered(candidate) else {
            continue;
        };
        let longest = word.len().max(other.len());
        let near = distance(&word, &other);
        let is_near = near <= (longest / 3).max(1) && near < longest;
        if is_near && best.is_none_or(|(least, _)| near < least) {
            best = Some((near, candidate));
        }
    }
    best.map(|(_, name)| name)
}

fn lowered(word: &str) -> Option<Vec<char>> {
    let is_short = word.chars().nth(COMPARED_CHARS_MAX).is_none();
    is_short.then(|| word.chars().flat_map(char::to_lowercase).collect())
}

/// Damerau-Levenshtein distance in its restricted form (optimal string alignment): insertions,
/// deletions, substitutions and exchanges of neighbours, no piece changed twice. F. Damerau, "A
/// technique for computer detection and correction of spelling errors", CACM 7(3), 1964.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitution = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitution.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        distance(&a, &b)
    }

    #[test]
    fn the_distance_counts_changes_and_exchanges() {
        assert_eq!(apart("", ""), 0);
        assert_eq!(apart("", "abc"), 3);
        assert_eq!(apart("kitten", "sitting"), 3);
        assert_eq!(apart("gtp", "gpt"), 1);
        // The restricted form: the unrestricted one gives 2.
        assert_eq!(apart("ca", "abc"), 3);
    }

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
