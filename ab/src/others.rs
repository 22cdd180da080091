//! Several results of `ugeom ab`: where their sides are not the same.

use super::Candidate;
use ugeom_harness::compare::Loaded;

/// Differences of A or B between several results of `ugeom ab`, each of which has a case A and a
/// case B.
pub fn other_sides(results: &[Loaded]) -> Vec<String> {
    let Some((base, others)) = results.split_first() else { return Vec::new() };
    others
        .iter()
        .flat_map(|other| sides_apart(base, other))
        .collect()
}

fn sides_apart(base: &Loaded, other: &Loaded) -> Vec<String> {
    let is_ab = |one: &Loaded| one.document.experiment == super::EXPERIMENT;
    if !is_ab(base) || !is_ab(other) {
        return Vec::new();
    }
    let candidates = |one: &Loaded| {
        let found = one.document.subject.get("candidates")?.clone();
        serde_json::from_value::<Vec<Candidate>>(found).ok()
    };
    let mut reasons = Vec::new();
    let (Some(base_sides), Some(other_sides)) = (candidates(base), candidates(other)) else {
        return reasons;
    };
    for old in &base_sides {
        let named = other_sides.iter().find(|new| new.name == old.name);
        if let Some(new) = named.filter(|new| new.side != old.side) {
            reasons.push(format!(
                "{} is the {} in {}, and the {} in {}",
                old.name, old.side, base.name, new.side, other.name
            ));
        }
    }
    reasons
}
