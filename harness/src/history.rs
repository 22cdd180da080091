//! Results over commits or days: a file that is only appended to, and the changes in its series.
//!
//! The file `history.log` of a folder has a line for each entry: the CRC-32C of the entry as eight
//! hexadecimal digits, a blank, and the entry as JSON. A line is written by one call and synced
//! before the command ends. A crash while it is written leaves an incomplete last line, which
//! readers leave out and the next entry replaces; a line that is damaged elsewhere is an error that
//! names it. Writers wait for each other by a lock on the file.

use crate::HarnessError;
use crate::foreign::{Series, merge};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use ugeom_machine::result_file::refuse_disk;
use ugeom_machine::temporary::sync_folder_of;
use ugeom_measure::change::Better;
use ugeom_measure::gate::Outcome;
use ugeom_measure::shift::{Alarm, BASELINE_MIN, ChangePoint, Confirmed, alarm, scan};
use ugeom_measure::summary::median;

/// The file in the folder of a history.
pub const FILE: &str = "history.log";

/// Larger files are no histories.
const BYTES_MAX: u64 = 1 << 30;

/// The digits of a checksum, and the blank behind them.
const HEAD_BYTES: usize = 9;

/// The results of one commit, or of one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitResults {
    /// The measured state: a commit, a version, a day.
    pub commit: String,
    /// When, seconds since 1970.
    pub time_unix_s: u64,
    /// The values of each benchmark and metric.
    pub series: Vec<Series>,
}

/// A history as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// An entry for each commit, oldest first.
    pub entries: Vec<CommitResults>,
    /// Whether an incomplete last line was left out.
    pub torn: bool,
}

impl CommitResults {
    fn line(&self) -> Result<String, HarnessError> {
        let json = serde_json::to_string(self);
        let json = json.map_err(|error| HarnessError::Document(error.to_string()))?;
        Ok(format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes())))
    }
}

/// Reads the lines of a history; `name` stands in errors.
///
/// # Errors
/// [`HarnessError::Compare`] with the line that is damaged, and why.
pub fn parse(name: &str, text: &[u8]) -> Result<History, HarnessError> {
    let mut history = whole_lines(name, text)?.0;
    history.entries = by_commit(history.entries);
    Ok(history)
}

/// One entry for each commit, with the values of all entries of that commit, at the place of the
/// first: a commit that was added twice is one observation.
fn by_commit(entries: Vec<CommitResults>) -> Vec<CommitResults> {
    let mut merged: Vec<CommitResults> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        match places.get(&entry.commit) {
            Some(place) => {
                let series = &mut merged[*place].series;
                for one in entry.series {
                    merge(series, one);
                }
            }
            None => {
                places.insert(entry.commit.clone(), merged.len());
                merged.push(entry);
            }
        }
    }
    merged
}

/// The history, and the length of its whole lines, bytes.
fn whole_lines(name: &str, text: &[u8]) -> Result<(History, usize), HarnessError> {
    let mut history = History::default();
    let mut at = 0;
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        let entry = entry(line);
        let last = at + line.len() == text.len();
        match entry {
            Ok(entry) => history.entries.push(entry),
            // Only the last line can be one that a crash cut off: it has no end.
            Err(_) if last && !line.ends_with(b"\n") => {
                history.torn = true;
                return Ok((history, at));
            }
            Err(problem) => {
                let line = number + 1;
                let problem = format!(
                    "{name}: line {line}, at byte {at}: {problem}; restore the file, or delete \
                     its line {line} (sed -i {line}d)"
                );
                return Err(HarnessError::Compare(problem));
            }
        }
        at += line.len();
    }
    Ok((history, at))
}

fn entry(line: &[u8]) -> Result<CommitResults, String> {
    let Some(line) = line.strip_suffix(b"\n") else {
        return Err("it has no end".to_owned());
    };
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let (sum, json) = text
        .split_at_checked(HEAD_BYTES)
        .ok_or("expected eight digits of a checksum, and an entry")?;
    let stated = u32::from_str_radix(sum.trim_end(), 16)
        .map_err(|_| format!("`{}` is no checksum", sum.trim_end()))?;
    let found = crc32c::crc32c(json.as_bytes());
    if stated != found {
        return Err(format!("checksum {stated:08x}, its bytes give {found:08x}"));
    }
    serde_json::from_str(json).map_err(|error| format!("no entry: {error}"))
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Reads the history of a folder.
///
/// # Errors
/// [`HarnessError::Os`] when it cannot be read, as [`parse`] when it is damaged.
pub fn read(folder: &Path) -> Result<History, HarnessError> {
    let path = path(folder);
    let name = path.display().to_string();
    let mut file = File::open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => HarnessError::Compare(format!(
            "{0}: no history; `ugeom history add {0} RESULT --commit NAME` begins one",
            folder.display()
        )),
        _ => HarnessError::open(&*name)(error),
    })?;
    parse(&name, &bytes(&mut file, &name)?)
}

fn bytes(file: &mut File, name: &str) -> Result<Vec<u8>, HarnessError> {
    let mut bytes = Vec::new();
    let limited = file.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    limited.map_err(HarnessError::os(name, "reading"))?;
    if bytes.len() as u64 > BYTES_MAX {
        let problem = format!("{name}: larger than {BYTES_MAX} bytes, which no history is");
        return Err(HarnessError::Compare(problem));
    }
    Ok(bytes)
}

/// Adds an entry to the history of a folder, which is made if it is missing. Returns whether the
/// history had results of this commit already.
///
/// # Errors
/// [`HarnessError::Os`] when it cannot be written, as [`parse`] when it is damaged.
pub fn add(folder: &Path, entry: &CommitResults) -> Result<bool, HarnessError> {
    let folder_name = folder.display().to_string();
    std::fs::create_dir_all(folder).map_err(HarnessError::os(folder_name, "making"))?;
    let path = path(folder);
    let name = path.display().to_string();
    let os = |operation| HarnessError::os(name.clone(), operation);
    refuse_disk(&path).map_err(HarnessError::open(&*name))?;
    let mut options = File::options();
    let opened = options.read(true).write(true).create(true).truncate(false);
    let mut file = opened.open(&path).map_err(HarnessError::open(&*name))?;
    file.lock().map_err(os("locking"))?;
    let text = bytes(&mut file, &name)?;
    let (history, whole) = whole_lines(&name, &text)?;
    if history.torn {
        file.set_len(whole as u64)
            .map_err(os("cutting off an incomplete line"))?;
    }
    file.seek(SeekFrom::Start(whole as u64))
        .map_err(os("seeking"))?;
    let line = entry.line()?;
    file.write_all(line.as_bytes()).map_err(os("writing"))?;
    file.sync_all().map_err(os("syncing"))?;
    // The name of a new file is the folder's.
    sync_folder_of(&path).map_err(os("syncing its folder"))?;
    let mut known = history.entries.iter();
    Ok(known.any(|one| one.commit == entry.commit))
}

/// One quantity of one benchmark over the entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// Name of the benchmark case.
    pub case: String,
    /// Name of the metric, as in the document.
    pub metric: String,
    /// The unit of its values.
    pub unit: String,
    /// The direction of better values.
    pub better: Better,
    /// The index of an entry, and the median of its values.
    pub points: Vec<(usize, f64)>,
}

/// The verdict about a track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The values that were checked.
    pub track: Track,
    /// Where it moved; the index is that of a point.
    pub changes: Vec<ChangePoint>,
    /// Whether its end may have moved.
    pub alarm: Option<Alarm>,
    /// The answer for CI.
    pub outcome: Outcome,
}

impl Checked {
    /// Whether the track has enough values to show a move of its end.
    pub fn is_judged(&self) -> bool {
        self.track.points.len() > BASELINE_MIN
    }

    /// The outcome of several tracks: that of those which are judged; UNDECIDED when none is.
    pub fn outcome_of(all: &[Self]) -> Outcome {
        match all.iter().any(Self::is_judged) {
            true => {
                let judged = all.iter().filter(|one| one.is_judged());
                Outcome::of_all(judged.map(|one| one.outcome))
            }
            false => Outcome::Undecided,
        }
    }
}

impl History {
    /// The tracks of all quantities that an entry has.
    pub fn tracks(&self) -> Vec<Track> {
        let mut tracks: Vec<Track> = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            for one in &entry.series {
                let Ok(value) = median(&one.values) else { continue };
                let same = |track: &&mut Track| {
                    (&track.case, &track.metric, &track.unit) == (&one.case, &one.metric, &one.unit)
                };
                match tracks.iter_mut().find(same) {
                    Some(track) => track.points.push((number, value)),
                    None => tracks.push(Track {
                        case: one.case.clone(),
                        metric: one.metric.clone(),
                        unit: one.unit.clone(),
                        better: one.better,
                        points: vec![(number, value)],
                    }),
                }
            }
        }
        tracks
    }
}

impl Track {
    /// Looks at the whole track once, for change points at the rate `alpha` of false alarms, and at
    /// its end. `confirmed` is what measuring both sides of an alarm again gave. A limit is a share
    /// of time that a change for the worse may take.
    pub fn check(self, alpha: f64, confirmed: Option<&Confirmed>, limit: f64) -> Checked {
        let values: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        let changes = scan(&values, alpha, 1);
        let is_worse = |ratio: f64| match self.better {
            Better::Lower => ratio > 1.0,
            Better::Higher => ratio < 1.0,
        };
        let alarm = alarm(&values).filter(|alarm| is_worse(alarm.ratio));
        let outcome = match (&alarm, confirmed) {
            (None, _) if values.len() <= BASELINE_MIN => Outcome::Undecided,
            (None, _) => Outcome::Pass,
            (Some(_), None) => Outcome::Undecided,
            (Some(_), Some(again)) => judged(again, limit),
        };
        Checked {
            track: self,
            changes,
            alarm,
            outcome,
        }
    }
}

/// The result of measuring an alarm again: times of the new state to the old one.
fn judged(again: &Confirmed, limit: f64) -> Outcome {
    let border = 1.0 + limit;
    if !again.confirmed || again.ratio.high < border {
        return Outcome::Pass;
    }
    match again.ratio.low > border {
        true => Outcome::Fail,
        false => Outcome::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry_of(commit: &str, value: f64) -> CommitResults {
        CommitResults {
            commit: commit.to_owned(),
            time_unix_s: 1,
            series: vec![Series {
                case: "read".to_owned(),
                metric: "time".to_owned(),
                unit: "ns".to_owned(),
                better: Better::Lower,
                values: vec![value, value + 1.0, value + 2.0],
            }],
        }
    }

    #[test]
    fn entries_come_back_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new/history");
        assert!(read(&folder).is_err());
        for (commit, value) in [("a1", 5.0), ("b2", 6.0)] {
            add(&folder, &entry_of(commit, value)).unwrap();
        }
        let history = read(&folder).unwrap();
        assert_eq!(history.entries, [entry_of("a1", 5.0), entry_of("b2", 6.0)]);
        let tracks = history.tracks();
        assert_eq!(tracks.len(), 1);
        assert_eq!(tracks[0].points, [(0, 6.0), (1, 7.0)]);
    }

    #[test]
    fn a_commit_that_is_added_twice_is_one_observation() {
        let folder = tempfile::tempdir().unwrap();
        for (commit, value, known) in [("a1", 5.0, false), ("b2", 6.0, false), ("a1", 7.0, true)] {
            assert_eq!(add(folder.path(), &entry_of(commit, value)).unwrap(), known);
        }
        let history = read(folder.path()).unwrap();
        assert_eq!(history.entries.len(), 2);
        // The median of 5, 6, 7, 7, 8, 9.
        assert_eq!(history.tracks()[0].points, [(0, 7.0), (1, 7.0)]);
    }

    #[test]
    fn a_history_too_short_to_judge_is_undecided() {
        let track = |values: usize| Track {
            case: "a".to_owned(),
            metric: "time".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
            points: (0..values)
                .map(|at| (at, 100.0 + (at % 3) as f64))
                .collect(),
        };
        let checked = |values: usize| track(values).check(0.05, None, 0.0);
        assert_eq!(checked(2).outcome, Outcome::Undecided);
        assert_eq!(checked(8).outcome, Outcome::Undecided);
        assert_eq!(checked(9).outcome, Outcome::Pass);
        let outcome = |lengths: &[usize]| {
            let all: Vec<Checked> = lengths.iter().map(|values| checked(*values)).collect();
            Checked::outcome_of(&all)
        };
        assert_eq!(outcome(&[2, 2]), Outcome::Undecided);
        assert_eq!(
            outcome(&[9, 2]),
            Outcome::Pass,
            "a new benchmark does not stop CI"
        );
    }

    #[test]
    fn a_crash_at_any_byte_loses_the_last_entry_at_most() {
        let (first, second) = (entry_of("a1", 5.0), entry_of("b2", 6.0));
        let (one, two) = (first.line().unwrap(), second.line().unwrap());
        let whole = one.clone() + &two;
        for cut in one.len()..whole.len() {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(path(folder.path()), &whole.as_bytes()[..cut]).unwrap();
            let history = read(folder.path()).unwrap();
            assert_eq!(history.entries, std::slice::from_ref(&first), "{cut}");
            assert_eq!(history.torn, cut > one.len());
            add(folder.path(), &second).unwrap();
            let text = std::fs::read_to_string(path(folder.path())).unwrap();
            assert_eq!(text, whole, "{cut}");
        }
    }

    #[test]
    fn a_damaged_line_is_an_error_that_names_it() {
        let good = entry_of("a1", 5.0).line().unwrap();
        let bad = good.replace("a1", "a2");
        for (text, words) in [
            (format!("{good}{bad}{good}"), "h: line 2, at byte "),
            (
                format!("{good}{bad}{good}"),
                "delete its line 2 (sed -i 2d)",
            ),
            (format!("{good}{bad}"), "its bytes give "),
            ("x\n".to_owned(), "expected eight digits"),
            ("zzzzzzzz {}\n".to_owned(), "`zzzzzzzz` is no checksum"),
        ] {
            let error = parse("h", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_check_has_three_outcomes() {
        let track = |last: f64| {
            let mut points: Vec<(usize, f64)> = (0..20)
                .map(|at| (at, 100.0 + (at * 7 % 5) as f64 / 10.0))
                .collect();
            points.extend((20..25).map(|at| (at, last + (at * 7 % 5) as f64 / 10.0)));
            Track {
                case: "a".to_owned(),
                metric: "time".to_owned(),
                unit: "ns".to_owned(),
                better: Better::Lower,
                points,
            }
        };
        let checked = track(100.0).check(0.05, None, 0.0);
        assert_eq!((checked.outcome, checked.changes.len()), (Outcome::Pass, 0));
        let checked = track(95.0).check(0.05, None, 0.0);
        assert_eq!(checked.outcome, Outcome::Pass, "faster is no alarm");
        assert_eq!(checked.changes[0].at, 20);
        let checked = track(105.0).check(0.05, None, 0.0);
        assert_eq!(checked.outcome, Outcome::Undecided);
        assert_eq!(checked.alarm.unwrap().at, 20);
        let old: Vec<f64> = (0..12).map(|at| 100.0 + f64::from(at) / 10.0).collect();
        let new: Vec<f64> = old.iter().map(|value| value * 1.05).collect();
        let again = ugeom_measure::shift::confirm(&old, &new).unwrap();
        let outcome = |limit| track(105.0).check(0.05, Some(&again), limit).outcome;
        assert_eq!(outcome(0.0), Outcome::Fail);
        assert_eq!(outcome(0.05), Outcome::Undecided);
        assert_eq!(outcome(0.10), Outcome::Pass);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_history_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = parse("h", &bytes);
        }
    }
}
