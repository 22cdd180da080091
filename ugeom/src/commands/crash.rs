//! `ugeom crash`: every power cut of a program's run, tried.

use crate::failure::{Interrupted, Reported, Usage};
use crate::opening;
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ugeom_crash::command::{CommandCheck, FileSystem, View, record};
use ugeom_crash::report::{CrashResult, KIND};
use ugeom_crash::{
    CampaignSettings, CrashError, Fate, Judgement, NamedState, Outcome, Points, Replayed, Smallest,
    TimelineRecord, campaign, replay,
};
use ugeom_machine::interrupt;
use ugeom_machine::temporary::PrivateFolder;
use ugeom_measure::units::duration_exact;
use ugeom_report::text::{counted, in_a_shell};

/// Time limit of one command, ns, unless the user sets another limit.
const TIMEOUT_NS: u64 = 60_000_000_000;
/// How many logs of one seed are kept beside each other.
const LOGS_MAX: u32 = 100;

const LONG_ABOUT: &str = "\
Records one run of a program on a disk with a volatile cache, derives the states that a power cut \
could have left, and checks each of them.

Commands get the disk as a file ($dev), as an NBD URI ($uri) and, as root with --fs, as a mounted \
file system ($mnt). --setup prepares the disk; power cuts begin with --run. --check gets a copy of \
each state and fails with any code but 0.

Promises: the run writes `ack KEY` lines to descriptor 3 (or to the pipe $ack) as soon as a key is \
durable; the check writes `found KEY` lines to descriptor 3 (or to the file $found). ugeom judges: \
every key that was acknowledged before the cut is found (durability); keys with the same text \
before their last `/` are all found or none (atomicity); with --ordered no key is found without \
those acknowledged before it (order). --no-durability is for programs that promise consistency only.

The smallest failing state is searched for: fewest lost writes, then the earliest cut. The log is \
kept, and a command is printed that builds and checks exactly that state again. The same log and \
seed give the same states. docs/crash.md has worked examples.";

const EXAMPLES: &str = "\
Examples:
  ugeom crash --size 64m --fs ext4 --setup 'sqlite3 $mnt/db < schema.sql' \\
      --run './insert $mnt/db >&3' --check './verify $mnt/db >&3'
  ugeom crash --size 10m --points 10000 \\
      --run './mydb write $dev' --check './mydb check $dev'
  ugeom crash --log crash.log --state 'cut=120,lost=97' \\
      --check './mydb check $dev'

Exit codes: 0 all states survive, 1 a state fails or the work failed, 2 wrong usage.";

/// How many records before the cut are printed, so that a result fits on a screen.
const LAST_RECORDS: usize = 12;
/// How many records that are lost or torn are printed before those.
const DAMAGED_RECORDS: usize = 6;

/// Try every power cut of a program's run on a disk with a volatile cache
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Crash {
    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = opening::size)]
    size: u64,

    /// Shell command that prepares the disk; what it writes survives
    #[arg(long, value_name = "CMD", requires = "run")]
    setup: Option<String>,

    /// Shell command that is recorded; without it --log names a recorded run
    #[arg(long, value_name = "CMD")]
    run: Option<String>,

    /// Shell command that checks a state
    #[arg(long, value_name = "CMD")]
    check: String,

    /// Make this file system on the disk, and mount it as $mnt (root): ext4, xfs or btrfs
    #[arg(long, value_name = "NAME", value_parser = str::parse::<FileSystem>)]
    fs: Option<FileSystem>,

    /// Mount options
    #[arg(long, value_name = "OPTIONS", requires = "fs", default_value = "")]
    mount_options: String,

    /// Also check the file system of each state (e2fsck -n, xfs_repair -n, btrfs check)
    #[arg(long, requires = "fs")]
    fsck: bool,

    /// Maximum number of states, spread over all barriers, none twice; all: every subset of up to
    /// six volatile writes
    #[arg(long, value_name = "N|all", default_value = "1000", value_parser = points)]
    points: Points,

    /// Seed of the sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Granularity of torn writes: 512, 4096 or 16384 bytes
    #[arg(long, value_name = "SIZE", default_value = "4096", value_parser = tear)]
    tear: u64,

    /// Size of the volatile cache: older writes are on the media
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = opening::size)]
    cache: u64,

    /// Keys must survive in the order of their acknowledgements
    #[arg(long)]
    ordered: bool,

    /// Allow the loss of acknowledged keys; check only atomicity, and with --ordered order
    #[arg(long)]
    no_durability: bool,

    /// The log: written by --run, read without it [default: kept as crash-SEED.log on failure]
    #[arg(long, value_name = "PATH")]
    log: Option<PathBuf>,

    /// Check only this state of the log, as a report names it; lost=all: all volatile writes
    #[arg(long, value_name = "STATE", requires = "log", conflicts_with = "run")]
    state: Option<NamedState>,

    /// States checked in parallel [default: twice the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Time limit of one command
    #[arg(long, value_name = "TIME", default_value = "60s")]
    #[arg(value_parser = crate::commands::lab::duration_ns)]
    timeout: u64,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn points(text: &str) -> Result<Points, String> {
    if text == "all" {
        return Ok(Points::All);
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    count
        .map(Points::Count)
        .ok_or_else(|| "write a number from 1 on, or all".to_owned())
}

fn tear(text: &str) -> Result<u64, String> {
    let bytes = opening::size(text)?;
    if [512, 4096, 16384].contains(&bytes) {
        return Ok(bytes);
    }
    Err("writes tear at 512, 4096 or 16384 bytes".to_owned())
}

/// The answer to one state as JSON.
#[derive(Serialize)]
struct OneState<'a> {
    state: String,
    failed: bool,
    #[serde(flatten)]
    judgement: Option<&'a Judgement>,
    timeline: &'a [TimelineRecord],
}

impl Crash {
    pub fn run(&self) -> Result<()> {
        if self.run.is_none() && self.log.is_none() {
            let message = "nothing to record: give --run COMMAND, or --log PATH of an earlier run";
            return Err(Usage(message.to_owned()).into());
        }
        if self.size == 0 || !self.size.is_multiple_of(512) {
            return Err(Usage("--size is a whole number of sectors of 512 bytes".into()).into());
        }
        if self.fs.is_some() && !rustix::process::geteuid().is_root() {
            return Err(Usage("--fs mounts a file system and needs root".into()).into());
        }
        let interrupted = Arc::new(AtomicBool::new(false));
        let tried = self.view(&interrupted).and_then(|view| self.tried(&view));
        if interrupted.load(Ordering::Relaxed) {
            // A command that the signal ended failed for no other reason.
            return Err(Interrupted("interrupted before all states were checked".into()).into());
        }
        tried
    }

    fn tried(&self, view: &View) -> Result<()> {
        let folder = PrivateFolder::create()?;
        let log = match &self.log {
            Some(log) => log.clone(),
            None => folder.path().join("log"),
        };
        if let Some(run) = &self.run {
            record(&log, self.size, self.setup.as_deref(), run, view)?;
        }
        let check = CommandCheck::new(&self.check, view);
        let settings = self.settings(view);
        if let Some(state) = &self.state {
            return self.tell_state(&replay(&log, &settings, &check, state)?);
        }
        let outcome = campaign(&log, &settings, &check);
        let outcome = outcome.map_err(|error| match (error, &self.run, &self.log) {
            // A log that is removed with its folder is not named to the user.
            (CrashError::NothingWritten(_), Some(run), None) => {
                anyhow!("`{run}` wrote nothing to the device, so there is nothing to lose")
            }
            (error, ..) => error.into(),
        })?;
        if outcome.ended_early {
            return Ok(());
        }
        let kept = match (&self.log, &outcome.smallest) {
            (Some(log), _) => Some(log.clone()),
            (None, Some(_)) => Some(self.keep(&log)?),
            (None, None) => None,
        };
        self.tell(outcome, kept)
    }

    /// How commands see the disk; Ctrl-C ends them.
    fn view(&self, interrupted: &Arc<AtomicBool>) -> Result<View> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = [Arc::clone(&stop), Arc::clone(interrupted)];
        let signals = interrupt::end_signals().context("listening for signals")?;
        let listening = std::thread::Builder::new().spawn(move || {
            // Any byte, or the end of the pipe, means the end.
            let _ = File::from(signals).read(&mut [0; 1]);
            for told in told {
                told.store(true, Ordering::Relaxed);
            }
        });
        listening.context("starting a thread that listens for signals")?;
        Ok(View {
            file_system: self.fs,
            mount_options: self.mount_options.clone(),
            fsck: self.fsck,
            timeout: Duration::from_nanos(self.timeout),
            stop,
        })
    }

    fn settings(&self, view: &View) -> CampaignSettings {
        CampaignSettings {
            points: self.points,
            seed: self.seed,
            tear_bytes: self.tear,
            cache_bytes: self.cache,
            durable: !self.no_durability,
            ordered: self.ordered,
            lanes: self
                .jobs
                .map_or_else(|| 2 * super::serve::cores(), usize::from),
            stop: Arc::clone(&view.stop),
            ..CampaignSettings::default()
        }
    }

    /// Keeps the log of a run that failed, beside those that earlier runs have kept: their
    /// commands build states of their own logs. A log that is there already is kept once.
    fn keep(&self, log: &Path) -> Result<PathBuf> {
        for number in 1..=LOGS_MAX {
            let kept = PathBuf::from(match number {
                1 => format!("crash-{}.log", self.seed),
                number => format!("crash-{}.{number}.log", self.seed),
            });
            let keeping = || format!("keeping the log as {}", kept.display());
            match File::create_new(&kept) {
                Ok(mut new) => {
                    let copied = File::open(log).and_then(|mut log| io::copy(&mut log, &mut new));
                    if copied.is_err() {
                        // Part of a log is no log.
                        let _ = std::fs::remove_file(&kept);
                    }
                    return copied.with_context(keeping).map(|_| kept.clone());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(keeping),
            }
            if same(log, &kept).with_context(keeping)? {
                return Ok(kept);
            }
        }
        bail!(
            "there are {LOGS_MAX} logs of seed {} here already; --log names another one",
            self.seed
        )
    }

    fn replay_command(&self, log: &Path, smallest: &Smallest) -> String {
        let log = log.display().to_string();
        let mut words = vec!["ugeom crash --log".to_owned(), in_a_shell(&log)];
        words.extend(["--state".to_owned(), in_a_shell(&smallest.state)]);
        words.extend(["--check".to_owned(), in_a_shell(&self.check)]);
        if let Some(file_system) = self.fs {
            words.extend(["--fs".to_owned(), file_system.name().to_owned()]);
        }
        if !self.mount_options.is_empty() {
            words.extend([
                "--mount-options".to_owned(),
                in_a_shell(&self.mount_options),
            ]);
        }
        let flags = [
            (self.fsck, "--fsck"),
            (self.ordered, "--ordered"),
            (self.no_durability, "--no-durability"),
        ];
        words.extend(
            flags
                .into_iter()
                .filter(|(set, _)| *set)
                .map(|(_, flag)| flag.to_owned()),
        );
        if self.timeout != TIMEOUT_NS {
            words.extend(["--timeout".to_owned(), duration_exact(self.timeout)]);
        }
        for (name, value, usual) in [
            ("--tear", self.tear, 4096),
            ("--cache", self.cache, 64 << 20),
        ] {
            if value != usual {
                words.extend([name.to_owned(), value.to_string()]);
            }
        }
        words.join(" ")
    }

    fn tell(&self, outcome: Outcome, log: Option<PathBuf>) -> Result<()> {
        let smallest = outcome.smallest.as_ref().zip(log.as_deref());
        let result = CrashResult {
            kind: KIND.to_owned(),
            command: command_line(),
            seed: self.seed,
            replay: smallest.map(|(it, log)| self.replay_command(log, it)),
            log,
            outcome,
        };
        if self.json {
            output::print_json(&result)?;
        } else {
            output::print(&text(&result.outcome, result.replay.as_deref()))?;
        }
        if result.outcome.failed > 0 {
            return Err(Reported.into());
        }
        Ok(())
    }

    fn tell_state(&self, replayed: &Replayed) -> Result<()> {
        let Replayed {
            state,
            judgement,
            timeline,
        } = replayed;
        let judgement = judgement.as_ref();
        if self.json {
            output::print_json(&OneState {
                state: state.to_string(),
                failed: judgement.is_some(),
                judgement,
                timeline,
            })?;
        } else {
            let verdict = judgement.map_or("survives".to_owned(), verdict_text);
            let lines = timeline_text(timeline);
            output::print(&format!("{state}: {verdict}\n{lines}"))?;
        }
        if judgement.is_some() {
            return Err(Reported.into());
        }
        Ok(())
    }
}

/// How this program was called.
fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| in_a_shell(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once("ugeom".to_owned()).chain(words).collect();
    words.join(" ")
}

fn verdict_text(judgement: &Judgement) -> String {
    let detail = output::printable(&judgement.detail);
    format!("fails ({}): {detail}", judgement.verdict.name())
}

/// The last records before the cut, and before them those that are lost or torn.
fn timeline_text(timeline: &[TimelineRecord]) -> String {
    let mut text = "last records before the power cut:\n".to_owned();
    let last = timeline.len().saturating_sub(LAST_RECORDS);
    let damaged = |record: &TimelineRecord| matches!(record.fate, Some(Fate::Lost | Fate::Torn));
    let (mut left_out, mut damaged_left) = (0, DAMAGED_RECORDS);
    for (at, record) in timeline.iter().enumerate() {
        if at < last && !(damaged(record) && damaged_left > 0) {
            left_out += 1;
            continue;
        }
        if at < last {
            damaged_left -= 1;
        }
        if left_out > 0 {
            text.push_str(&format!("          ({left_out} more records)\n"));
            left_out = 0;
        }
        text.push_str(&record_text(record));
    }
    text
}

/// True when both files have the same bytes.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut others = BufReader::new(other).bytes();
    for byte in BufReader::new(one).bytes() {
        if Some(byte?) != others.next().transpose()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn record_text(record: &TimelineRecord) -> String {
    let range = record.offset_bytes.zip(record.length_bytes);
    let range = range.map_or(String::new(), |(at, length)| format!("{length} at {at}"));
    let fate = record.fate.map_or("", Fate::name);
    let note = output::printable(&record.note);
    let words = [fate, &*note].join(" ");
    let line = format!(
        "{:>8}  {:<14} {range:<22} {}",
        record.record,
        record.what,
        words.trim()
    );
    format!("{}\n", line.trim_end())
}

fn text(outcome: &Outcome, replay: Option<&str>) -> String {
    let Outcome { states, failed, .. } = outcome;
    let run = outcome.run_text();
    let mut text = format!("{failed} of {states} crash states fail ({run})\n");
    if *failed > 0 {
        let verdicts = outcome.verdicts.iter();
        let verdicts: Vec<String> = verdicts.map(|(name, n)| format!("{name} {n}")).collect();
        text.push_str(&format!("by verdict: {}\n", verdicts.join(", ")));
    }
    let Some(smallest) = &outcome.smallest else {
        return text;
    };
    text.push_str(&format!("smallest failing state: {}\n", smallest.state));
    text.push_str(&format!("  {}\n", verdict_text(&smallest.judgement)));
    let writes = counted(smallest.damage as u64, "write");
    text.push_str(&format!("  {writes} lost or torn\n"));
    if let Some(replay) = replay {
        text.push_str(&format!("again: {replay}\n"));
    }
    text.push_str(&timeline_text(&smallest.timeline));
    text
}
