//! A campaign: all states of a plan, checked in parallel, and the smallest that fails.

mod shrink;

use crate::check::Check;
use crate::error::CrashError;
use crate::lane::{Lane, Summary};
use crate::plan::{Derivation, Points};
use crate::promise::{Judgement, Promised};
use crate::state::{CrashState, NamedState, Tear};
use crate::tracker::Change;
use serde::{Deserialize, Serialize};
use shrink::Shrink;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use ugeom_format::crash_log::Entry;
use ugeom_machine::mutex::Mutex;

/// How many failing states a report lists.
const LISTED_MAX: usize = 100;
/// How many records before the cut, and volatile writes, a time line shows.
const TIMELINE_MAX: usize = 200;
/// Default number of checks of the search for the smallest failing state.
const SHRINK_CHECKS: u64 = 400;

/// How a campaign works.
#[derive(Clone)]
pub struct CampaignSettings {
    /// The crash states to try: all of the plan, or about so many.
    pub points: Points,
    /// Seed of the sample.
    pub seed: u64,
    /// The granularity of torn writes, bytes.
    pub tear_bytes: u64,
    /// The size of the disk's cache: a write that is followed by more than that is on the media.
    pub cache_bytes: u64,
    /// Promises must survive the cut; otherwise atomicity and order alone are judged.
    pub durable: bool,
    /// Promises must survive in the order in which they were made.
    pub ordered: bool,
    /// How many lanes check at a time, at least 1.
    pub lanes: usize,
    /// How many checks the search for the smallest failing state may take.
    pub shrink_checks: u64,
    /// Set by the caller to end early.
    pub stop: Arc<AtomicBool>,
}

impl Default for CampaignSettings {
    /// 1000 states of seed 0, torn at 4096 bytes, a cache of 64 MiB, one lane.
    fn default() -> Self {
        Self {
            points: Points::Count(1000),
            seed: 0,
            tear_bytes: 4096,
            cache_bytes: 64 << 20,
            durable: true,
            ordered: false,
            lanes: 1,
            shrink_checks: SHRINK_CHECKS,
            stop: Arc::default(),
        }
    }
}

/// A state that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedState {
    /// Its number in the plan, from 0.
    pub number: u64,
    /// The crash state as text, which `ugeom crash` reads again.
    pub state: String,
    /// The verdict about this state.
    #[serde(flatten)]
    pub judgement: Judgement,
}

/// A record on the time line of the smallest failing state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// Number of the record in the log.
    pub record: u64,
    /// `write`, `zero`, `delete`, `barrier`, `durable`, `promise` or `begin`.
    pub what: String,
    /// Byte offset on the disk, where the record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_bytes: Option<u64>,
    /// Length in bytes, where the record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_bytes: Option<u64>,
    /// The fate of a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
    /// Of a torn write how; of a promise the key.
    pub note: String,
}

/// The fate of a change in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// A barrier covers it.
    Durable,
    /// No barrier covers it, and it is on the media.
    Kept,
    /// It is on the media in part.
    Torn,
    /// It is not on the media.
    Lost,
}

impl Fate {
    /// All fates, in the order in which the page lists them.
    pub const ALL: [Self; 4] = [Self::Durable, Self::Kept, Self::Torn, Self::Lost];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Kept => "kept",
            Self::Torn => "torn",
            Self::Lost => "lost",
        }
    }
}

/// The smallest failing state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smallest {
    /// The crash state as text, which `ugeom crash` reads again.
    pub state: String,
    /// The verdict about it.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// How many writes are lost or torn in it.
    pub damage: usize,
    /// How many checks it took to find it.
    pub checks: u64,
    /// The last records before its cut, oldest first.
    pub timeline: Vec<TimelineRecord>,
}

/// The result of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Records in the log.
    pub records: u64,
    /// Changes of the media after the set-up.
    pub writes: u64,
    /// Barriers after the set-up.
    pub barriers: u64,
    /// The number of promises in the run.
    pub promises: u64,
    /// States that were checked.
    pub states: u64,
    /// How many of them fail.
    pub failed: u64,
    /// How many fail by each verdict, by its name.
    #[serde(default)]
    pub verdicts: BTreeMap<String, u64>,
    /// The first of them.
    pub failures: Vec<FailedState>,
    /// The smallest, found from the smallest of all that fail.
    pub smallest: Option<Smallest>,
    /// The campaign was ended before all states were checked.
    pub ended_early: bool,
}

/// The findings of the lanes so far.
#[derive(Default)]
struct Findings {
    states: u64,
    failed: u64,
    verdicts: BTreeMap<String, u64>,
    /// The first that fail, by their number.
    listed: BTreeMap<u64, (CrashState, Judgement)>,
    /// The smallest that fails.
    least: Option<(usize, CrashState, Judgement)>,
    error: Option<CrashError>,
}

impl Findings {
    fn add(&mut self, number: u64, state: CrashState, judgement: Option<Judgement>) {
        self.states += 1;
        let Some(judgement) = judgement else { return };
        self.failed += 1;
        let name = judgement.verdict.name().to_owned();
        *self.verdicts.entry(name).or_default() += 1;
        let damage = state.damage();
        let smaller =
            |(least, other, _): &(usize, CrashState, Judgement)| (damage, &state) < (*least, other);
        if self.least.as_ref().is_none_or(smaller) {
            self.least = Some((damage, state.clone(), judgement.clone()));
        }
        self.listed.insert(number, (state, judgement));
        if self.listed.len() > LISTED_MAX {
            self.listed.pop_last();
        }
    }
}

/// State shared by all lanes.
struct Campaign<'a, C> {
    log: &'a Path,
    from_mark: bool,
    settings: &'a CampaignSettings,
    check: &'a C,
    promised: &'a Promised,
    found: Mutex<Findings>,
}

/// Checks the states of a log.
///
/// # Errors
/// The log is damaged or holds nothing to lose; the check fails on the device as the run left it;
/// a lane could not be made, or a check not be asked.
pub fn campaign<C: Check>(
    log: &Path,
    settings: &CampaignSettings,
    check: &C,
) -> Result<Outcome, CrashError> {
    let summary = Summary::read(log)?;
    let promised = Promised::new(&summary.promises, settings.durable, settings.ordered);
    let folder = std::env::temp_dir();
    let new_lane = || Lane::new(log, &folder, settings.cache_bytes, settings.tear_bytes);
    let mut sound = Ask::new(new_lane()?, 0, check, &promised)?;
    let end = CrashState {
        cut: summary.records.saturating_sub(1),
        ..CrashState::default()
    };
    if let Some(judgement) = sound.judge(&end)? {
        return Err(CrashError::Unsound(judgement.detail));
    }
    let work = Campaign {
        log,
        from_mark: summary.begun,
        settings,
        check,
        promised: &promised,
        found: Mutex::default(),
    };
    drop(sound);
    work.run()?;
    let mut found = work.found.into_inner();
    if let Some(error) = found.error.take() {
        return Err(error);
    }
    let smallest = match found.least.take() {
        Some((_, state, judgement)) => {
            let ask = Ask::new(new_lane()?, 0, check, &promised)?;
            Some(smallest(ask, state, judgement, &summary, settings)?)
        }
        None => None,
    };
    let listed = found.listed.into_iter();
    let failures = listed.map(|(number, (state, judgement))| FailedState {
        number,
        state: state.to_string(),
        judgement,
    });
    Ok(Outcome {
        records: summary.records,
        writes: summary.writes,
        barriers: summary.barriers,
        promises: summary.promises.len() as u64,
        states: found.states,
        failed: found.failed,
        verdicts: found.verdicts,
        failures: failures.collect(),
        smallest,
        ended_early: settings.stop.load(Ordering::Relaxed),
    })
}

/// The result of checking one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The state, with the lost writes by their numbers.
    pub state: CrashState,
    /// The broken promise, if any.
    pub judgement: Option<Judgement>,
    /// The last records before its cut, oldest first.
    pub timeline: Vec<TimelineRecord>,
}

/// Checks one state of a log.
///
/// # Errors
/// As [`campaign`]; the state names writes that were not volatile at its cut.
pub fn replay<C: Check>(
    log: &Path,
    settings: &CampaignSettings,
    check: &C,
    named: &NamedState,
) -> Result<Replayed, CrashError> {
    let mut state = named.state.clone();
    let summary = Summary::read(log)?;
    let promised = Promised::new(&summary.promises, settings.durable, settings.ordered);
    let folder = std::env::temp_dir();
    let lane = Lane::new(log, &folder, settings.cache_bytes, settings.tear_bytes)?;
    let mut ask = Ask::new(lane, 0, check, &promised)?;
    ask.lane.build(&state)?;
    let volatile = numbers(ask.lane.volatile());
    if named.all_lost {
        state.lost.extend(&volatile);
    }
    let named = state.lost.iter().chain(state.torn.keys());
    let problem = if state.cut >= summary.records {
        Some(format!("the log has {} records", summary.records))
    } else {
        let wrong = named
            .copied()
            .find(|number| volatile.binary_search(number).is_err());
        wrong.map(|number| format!("record {number} is no volatile write at the cut"))
    };
    if let Some(problem) = problem {
        return Err(CrashError::State {
            text: state.to_string(),
            problem,
        });
    }
    let judgement = ask.judge(&state)?;
    let timeline = timeline(&ask, &state, &summary)?;
    Ok(Replayed {
        state,
        judgement,
        timeline,
    })
}

impl<C: Check> Campaign<'_, C> {
    /// Checks all states, or until it is stopped.
    fn run(&self) -> Result<(), CrashError> {
        let lanes = self.settings.lanes.max(1);
        let (sender, receiver) = sync_channel::<(u64, CrashState)>(2 * lanes);
        let receiver = Mutex::new(receiver);
        let settings = self.settings;
        let derivation = Derivation {
            points: settings.points,
            seed: settings.seed,
            tear_bytes: settings.tear_bytes,
            cache_bytes: settings.cache_bytes,
            from_mark: self.from_mark,
        };
        std::thread::scope(|scope| {
            for number in 0..lanes {
                let receiver = &receiver;
                scope.spawn(move || {
                    if let Err(error) = self.lane(number, receiver) {
                        self.found.lock().error.get_or_insert(error);
                    }
                    if self.found.lock().error.is_some() {
                        // The other lanes and the plan see that no lane takes states any more.
                        settings.stop.store(true, Ordering::Relaxed);
                        let receiver = receiver.lock();
                        while receiver.recv().is_ok() {}
                    }
                });
            }
            let mut number = 0;
            let derived = derivation.each(self.log, |state| {
                let stop = settings.stop.load(Ordering::Relaxed);
                if stop || sender.send((number, state)).is_err() {
                    return false;
                }
                number += 1;
                true
            });
            drop(sender);
            derived
        })
    }

    fn lane(
        &self,
        number: usize,
        states: &Mutex<Receiver<(u64, CrashState)>>,
    ) -> Result<(), CrashError> {
        let folder = std::env::temp_dir();
        let settings = self.settings;
        let lane = Lane::new(self.log, &folder, settings.cache_bytes, settings.tear_bytes)?;
        let mut ask = Ask::new(lane, number, self.check, self.promised)?;
        loop {
            let next = states.lock().recv();
            let Ok((number, state)) = next else { return Ok(()) };
            let judgement = ask.judge(&state)?;
            if settings.stop.load(Ordering::Relaxed) {
                // The check was ended, too: its answer says nothing.
                continue;
            }
            self.found.lock().add(number, state, judgement);
        }
    }
}

/// A lane with its check.
pub(crate) struct Ask<'a, C: Check> {
    pub lane: Lane,
    check: &'a C,
    promised: &'a Promised,
    held: C::Lane,
}

impl<'a, C: Check> Ask<'a, C> {
    fn new(
        lane: Lane,
        number: usize,
        check: &'a C,
        promised: &'a Promised,
    ) -> Result<Self, CrashError> {
        let held = check.lane(number, lane.disk())?;
        Ok(Self {
            lane,
            check,
            promised,
            held,
        })
    }

    /// Builds a state, and returns its defects.
    pub fn judge(&mut self, state: &CrashState) -> Result<Option<Judgement>, CrashError> {
        self.lane.build(state)?;
        let answer = self.check.check(&mut self.held, self.lane.disk())?;
        Ok(self.promised.judge(state.cut, &answer))
    }
}

fn smallest<C: Check>(
    ask: Ask<'_, C>,
    state: CrashState,
    judgement: Judgement,
    summary: &Summary,
    settings: &CampaignSettings,
) -> Result<Smallest, CrashError> {
    let mut shrink = Shrink::new(ask, state, judgement, settings);
    shrink.run()?;
    let (mut ask, state, judgement, checks) = shrink.into_parts();
    ask.lane.build(&state)?;
    Ok(Smallest {
        timeline: timeline(&ask, &state, summary)?,
        damage: state.damage(),
        state: state.to_string(),
        judgement,
        checks,
    })
}

/// The time line of the state that was built last.
fn timeline<C: Check>(
    ask: &Ask<'_, C>,
    state: &CrashState,
    summary: &Summary,
) -> Result<Vec<TimelineRecord>, CrashError> {
    let volatile: Vec<u64> = ask.lane.volatile().map(|change| change.number).collect();
    let first = volatile.first().copied().unwrap_or(state.cut);
    let start = first
        .min(state.cut)
        .max(state.cut.saturating_sub(TIMELINE_MAX as u64))
        .saturating_sub(8);
    let mut log = crate::log::LogReader::open(&summary.path)?;
    let mut found = Vec::new();
    while let Some(entry) = log.next()? {
        if entry.number > state.cut {
            break;
        }
        if entry.number < start {
            continue;
        }
        let what = match entry.record.entry {
            Entry::Write { fua: false, .. } => "write",
            Entry::Write { fua: true, .. } => "write with FUA",
            Entry::Zero { .. } => "zero",
            Entry::Delete { .. } => "delete",
            Entry::Barrier { .. } => "barrier",
            Entry::Durable { .. } => "durable",
            Entry::Promise => "promise",
            Entry::Begin => "begin",
        };
        let note = match entry.record.entry {
            Entry::Promise => String::from_utf8_lossy(&log.data(&entry)?).into_owned(),
            Entry::Durable { write } => format!("record {write}"),
            _ => torn_how(state, entry.number),
        };
        let change = entry.record.range();
        found.push(TimelineRecord {
            record: entry.number,
            what: what.to_owned(),
            offset_bytes: change.map(|(offset, _)| offset),
            length_bytes: change.map(|(_, length)| length),
            fate: change.map(|_| fate(state, &volatile, entry.number)),
            note,
        });
    }
    Ok(found)
}

fn fate(state: &CrashState, volatile: &[u64], number: u64) -> Fate {
    if state.lost.contains(&number) {
        Fate::Lost
    } else if state.torn.contains_key(&number) {
        Fate::Torn
    } else if volatile.binary_search(&number).is_ok() {
        Fate::Kept
    } else {
        Fate::Durable
    }
}

fn torn_how(state: &CrashState, number: u64) -> String {
    match state.torn.get(&number) {
        Some(Tear::First(count)) => format!("first {count} pieces"),
        Some(Tear::Last(count)) => format!("last {count} pieces"),
        Some(Tear::Mixed(_)) => "some pieces".to_owned(),
        None => String::new(),
    }
}

/// The numbers of the volatile changes of the last state.
pub(crate) fn numbers<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<u64> {
    changes.map(|change| change.number).collect()
}
