//! Judges a state by the promises of the workload.
//!
//! A promise is a key. Keys with the same text before their last `/` are one transaction: a state
//! has all of them or none.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The verdicts about a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The check itself says that it is wrong.
    Check,
    /// A key that was acknowledged before the cut is not there.
    Durability,
    /// A transaction is there in part.
    Atomicity,
    /// A key is there although one that was acknowledged before it is not.
    Order,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Durability => "durability",
            Self::Atomicity => "atomicity",
            Self::Order => "order",
        }
    }
}

/// A verdict, with its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The broken promise.
    pub verdict: Verdict,
    /// The defect, in words for the page.
    pub detail: String,
}

/// All promises of a log.
pub(crate) struct Promised {
    /// Keys with the record in which they were acknowledged first, in that order.
    keys: Vec<(u64, String)>,
    groups: BTreeMap<String, BTreeSet<String>>,
    durable: bool,
    ordered: bool,
}

impl Promised {
    /// From the records of a log.
    pub fn new(records: &[(u64, String)], durable: bool, ordered: bool) -> Self {
        let mut seen = BTreeSet::new();
        let first = records.iter().filter(|(_, key)| seen.insert(key.clone()));
        let keys: Vec<(u64, String)> = first.cloned().collect();
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (_, key) in &keys {
            if let Some((group, _)) = key.rsplit_once('/') {
                let members = groups.entry(group.to_owned()).or_default();
                members.insert(key.clone());
            }
        }
        Self {
            keys,
            groups,
            durable,
            ordered,
        }
    }

    /// Judges a state: the first thing that is wrong with it.
    pub fn judge(&self, cut: u64, answer: &Result<Vec<String>, String>) -> Option<Judgement> {
        let found = match answer {
            Err(detail) => {
                return Some(Judgement {
                    verdict: Verdict::Check,
                    detail: detail.clone(),
                });
            }
            Ok(found) => found,
        };
        if self.keys.is_empty() {
            return None;
        }
        let found: HashMap<&str, ()> = found.iter().map(|key| (key.as_str(), ())).collect();
        let has = |key: &str| found.contains_key(key);
        let judged = |verdict, detail| Some(Judgement { verdict, detail });
        let due = self.keys.iter();
        let due = due.take_while(|(record, _)| self.durable && *record <= cut);
        for (record, key) in due {
            if !has(key) {
                let none = if found.is_empty() {
                    "; the check reported no key (`found KEY` lines on descriptor 3)"
                } else {
                    ""
                };
                let detail =
                    format!("`{key}`, acknowledged in record {record}, is not found{none}");
                return judged(Verdict::Durability, detail);
            }
        }
        for (group, members) in &self.groups {
            let there = members.iter().filter(|key| has(key)).count();
            let missing = members.iter().find(|key| !has(key));
            if let Some(missing) = missing.filter(|_| there > 0) {
                let all = members.len();
                let detail = format!(
                    "of transaction `{group}` {there} of {all} keys are found, `{missing}` is not"
                );
                return judged(Verdict::Atomicity, detail);
            }
        }
        if self.ordered {
            let first_gone = self.keys.iter().position(|(_, key)| !has(key));
            let gap = first_gone.and_then(|gone| {
                let later = self.keys[gone..].iter().find(|(_, key)| has(key));
                later.map(|(_, later)| (&self.keys[gone].1, later))
            });
            if let Some((gone, later)) = gap {
                let detail =
                    format!("`{later}` is found, and `{gone}`, acknowledged before it, is not");
                return judged(Verdict::Order, detail);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promised(durable: bool, ordered: bool) -> Promised {
        let records = [(5, "a/1"), (6, "a/2"), (9, "b"), (12, "c")];
        let records = records.map(|(record, key)| (record, key.to_owned()));
        Promised::new(&records, durable, ordered)
    }

    fn verdict(cut: u64, found: &[&str], ordered: bool) -> Option<Verdict> {
        let found = found.iter().map(|key| (*key).to_owned()).collect();
        let judgement = promised(true, ordered).judge(cut, &Ok(found));
        judgement.map(|judgement| judgement.verdict)
    }

    #[test]
    fn what_was_acknowledged_before_the_cut_must_be_there() {
        assert_eq!(verdict(4, &[], false), None);
        assert_eq!(verdict(5, &["a/1", "a/2"], false), None);
        assert_eq!(
            verdict(9, &["a/1", "a/2"], false),
            Some(Verdict::Durability)
        );
        assert_eq!(verdict(8, &["a/1", "a/2", "other"], false), None);
    }

    #[test]
    fn a_check_that_reports_no_key_is_told_how() {
        let none = promised(true, false).judge(5, &Ok(Vec::new()));
        let told =
            |judged: Option<Judgement>| judged.is_some_and(|it| it.detail.contains("found KEY"));
        assert!(told(none));
        assert!(!told(
            promised(true, false).judge(5, &Ok(vec!["b".to_owned()]))
        ));
    }

    #[test]
    fn a_transaction_is_there_or_not() {
        assert_eq!(verdict(4, &["a/1"], false), Some(Verdict::Atomicity));
        assert_eq!(verdict(4, &["a/2", "a/1"], false), None);
    }

    #[test]
    fn order_is_judged_where_it_is_asked_for() {
        assert_eq!(verdict(4, &["c"], false), None);
        assert_eq!(verdict(4, &["c"], true), Some(Verdict::Order));
        assert_eq!(verdict(4, &["a/1", "a/2", "b"], true), None);
    }

    #[test]
    fn without_durability_transactions_and_order_are_judged() {
        let verdict = |found: &[&str]| {
            let found = found.iter().map(|key| (*key).to_owned()).collect();
            let judgement = promised(false, true).judge(99, &Ok(found));
            judgement.map(|judgement| judgement.verdict)
        };
        assert_eq!(verdict(&[]), None);
        assert_eq!(verdict(&["a/1", "a/2"]), None);
        assert_eq!(verdict(&["a/1"]), Some(Verdict::Atomicity));
        assert_eq!(verdict(&["b"]), Some(Verdict::Order));
    }

    #[test]
    fn what_the_check_says_goes_first() {
        let judgement = promised(true, false).judge(99, &Err("broken".to_owned()));
        let judgement = judgement.expect("it fails");
        assert_eq!(
            (judgement.verdict, judgement.detail.as_str()),
            (Verdict::Check, "broken")
        );
    }
}
