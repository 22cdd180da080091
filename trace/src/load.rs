//! The effect of a trace on a load: runs of a command with and without one, in turns.
//!
//! The cost of events cannot tell: on a device whose requests wait for other threads a trace also
//! changes on which processor these wake, and may even make requests faster.

use crate::overhead::{CASES, OverheadError, typical};
use crate::session::{Scope, Session};
use crate::source::Choice;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_format::text::from_bytes;
use ugeom_measure::{Blocks, Interval};
use ugeom_report::{Cell, Page, Table};

/// Pairs of runs, behind one run that does not count.
pub const ROUNDS: usize = 6;
/// How often events are read, and the command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(2);
const CONFIDENCE: f64 = 0.95;

/// The effect of a trace on a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The program and its version.
    pub program: String,
    /// Names of the devices that were traced.
    pub targets: Vec<String>,
    /// Program and arguments that were run with and without a trace.
    pub command: Vec<String>,
    /// Where the events came from.
    pub source: String,
    /// Pairs of runs, one with a trace and one without.
    pub rounds: usize,
    /// A run without a trace, s.
    pub without_s: Interval,
    /// A run with a trace, s.
    pub with_s: Interval,
    /// The second divided by the first, as a geometric mean within rounds.
    pub ratio: Interval,
    /// Events of all traced runs.
    pub events: u64,
    /// Events that were lost in them.
    pub lost: u64,
}

/// Runs a command with and without a trace, the order changing with each round.
///
/// # Errors
/// When the command cannot be run or fails, or no source works.
pub fn measure(
    command: &[OsString],
    targets: &[String],
    (scope, choices): (&Scope, &[Choice]),
    rounds: usize,
    cancelled: &AtomicBool,
) -> Result<Effect, OverheadError> {
    run(command, None)?;
    let mut table = Blocks::new(CASES);
    let (mut events, mut lost, mut source) = (0, 0, "");
    for round in 0..rounds {
        let mut values = [0.0, 0.0, 1.0];
        for turn in 0..2 {
            if cancelled.load(Ordering::Relaxed) {
                return Err(OverheadError::Interrupted(round));
            }
            let traced = (round + turn) % 2 == 1;
            if !traced {
                values[0] = run(command, None)?;
                continue;
            }
            let session = Session::start(scope.clone(), choices);
            let mut session = session.map_err(OverheadError::Source)?;
            values[1] = run(command, Some(&mut session))?;
            source = session.source();
            let ended = session.finish(&mut |_| {})?;
            events += ended.quality.events;
            lost += ended.lost;
        }
        let pushed = table.push_round(values.to_vec());
        pushed.map_err(|error| io::Error::other(error.to_string()))?;
    }
    let wrong = |error: ugeom_measure::Error| io::Error::other(error.to_string());
    Ok(Effect {
        program: concat!("ugeom ", env!("CARGO_PKG_VERSION")).to_owned(),
        targets: targets.to_vec(),
        command: command
            .iter()
            .map(|word| from_bytes(word.as_bytes()))
            .collect(),
        source: source.to_owned(),
        rounds,
        without_s: typical(&table, 0).map_err(wrong)?,
        with_s: typical(&table, 1).map_err(wrong)?,
        ratio: table
            .typical_ratio(0, 1, CONFIDENCE)
            .map_err(wrong)?
            .interval,
        events,
        lost,
    })
}

/// Runs the command to its end while events are read: how long it took, s.
fn run(command: &[OsString], session: Option<&mut Session>) -> io::Result<f64> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("no command"))?;
    let started = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .spawn();
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", program.display()));
    let mut child = child.map_err(named)?;
    let ended = wait(&mut child, session);
    if ended.is_err() {
        // It may have ended meanwhile.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended.map_err(named)?;
    Ok(started.elapsed().as_secs_f64())
}

fn wait(child: &mut Child, mut session: Option<&mut Session>) -> io::Result<()> {
    loop {
        if let Some(status) = child.try_wait()? {
            let failed = || io::Error::other(format!("it failed: {status}"));
            return status.success().then_some(()).ok_or_else(failed);
        }
        // Both kinds of runs are asked as often.
        std::thread::sleep(POLL);
        if let Some(session) = session.as_deref_mut() {
            session.poll(&mut |_| {})?;
        }
    }
}

impl Effect {
    /// The effect as a page, for every form of output.
    pub fn page(&self) -> Page {
        let (targets, command) = (self.targets.join(" "), self.command.join(" "));
        let mut page = Page::new(
            "overhead",
            &format!("ugeom trace {targets} --overhead -- {command}"),
        );
        page.question = format!("What does a trace of {targets} do to `{command}`?");
        let Interval {
            estimate,
            low,
            high,
            ..
        } = self.ratio;
        let range = format!("{estimate:.3} x ({low:.3} to {high:.3})");
        page.answer = match self.ratio.contains(1.0) {
            true => format!("No significant effect: a run with a trace takes {range} the time."),
            false => format!("A run with a trace takes {range} the time of one without."),
        };
        page.fact("source", self.source.clone());
        page.fact(
            "measured",
            format!(
                "{} runs each, in turns; {} events, {} lost",
                self.rounds, self.events, self.lost
            ),
        );
        let mut table = Table::headed("", "run", "time (s)");
        for (what, interval) in [("without", &self.without_s), ("with a trace", &self.with_s)] {
            table.row([Cell::text(what), Cell::interval(interval, 4)]);
        }
        page.push(table);
        page
    }
}
