//! Twelve bugs, planted one at a time in a small journal. Each is found within 1,000 states and
//! shrunk to at most three lost writes; the journal without a bug survives.

mod journal;

use journal::{Bug, Journal};
use ugeom_crash::{CampaignSettings, Disk, Outcome, Points, Recording, answer, campaign};

/// Transactions of a run.
const TRANSACTIONS: u64 = 12;

fn outcome(bug: Option<Bug>, states: u64) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let recording = Recording::start(&log, journal::SIZE_BYTES).expect("a recording");
    let disk = recording.disk();
    let mut journal = Journal::create(disk, bug).expect("a journal");
    recording.begin();
    for _ in 0..TRANSACTIONS {
        journal
            .commit(|key| recording.promise(key))
            .expect("commits");
    }
    recording.finish().expect("a log");
    let settings = CampaignSettings {
        points: Points::Count(states),
        seed: 1,
        tear_bytes: 512,
        ordered: true,
        ..CampaignSettings::default()
    };
    let check = answer(move |disk: &Disk| journal::recover(disk, bug));
    campaign(&log, &settings, &check).expect("a campaign")
}

/// States of a run without a bug: `UGEOM_CRASH_STATES` asks for more.
fn states() -> u64 {
    let asked = std::env::var("UGEOM_CRASH_STATES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1000)
}

#[test]
fn a_sound_journal_survives_every_crash() {
    let outcome = outcome(None, states());
    assert!(outcome.states > states() / 4, "{} states", outcome.states);
    assert_eq!(outcome.failed, 0, "{:#?}", outcome.failures.first());
}

#[test]
fn each_planted_bug_is_found_and_shrunk() {
    for bug in Bug::ALL {
        let outcome = outcome(Some(bug), 1000);
        assert!(outcome.states <= 1000);
        let smallest = outcome.smallest;
        let smallest = smallest.unwrap_or_else(|| panic!("{bug:?} is not found"));
        assert!(smallest.damage <= 3, "{bug:?}: {}", smallest.state);
    }
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let bug = Some(Bug::NoFlushBeforeCommit);
    assert_eq!(outcome(bug, 300), outcome(bug, 300));
}
