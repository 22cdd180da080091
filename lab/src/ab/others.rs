//! Several results of `ugeom ab`: where their sides are not the same.

use super::Side;
use ugeom_harness::compare::Loaded;

/// What A or B was something else in, of several results of `ugeom ab`: each has a cell A and a
/// cell B, whatever was measured in them.
pub fn other_sides(results: &[Loaded]) -> Vec<String> {
    let Some((base, others)) = results.split_first() else {
        return Vec::new();
    };
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
    let side = |one: &Loaded, key: &str| {
        let side = one.document.subject.get(key)?;
        serde_json::from_value::<Side>(side.clone()).ok()
    };
    let mut reasons = Vec::new();
    for (key, name) in [("a", "A"), ("b", "B")] {
        let (Some(old), Some(new)) = (side(base, key), side(other, key)) else {
            continue;
        };
        if old != new {
            reasons.push(format!(
                "{name} is the {old} in {}, and the {new} in {}",
                base.name, other.name
            ));
        }
    }
    reasons
}
