//! `ugeom ab`: is B faster than A? How it is measured and judged is in `ugeom_lab::ab`; here are
//! its flags, and what the two texts are taken for.

use super::compare::RulesArgs;
use super::lab::duration_ns;
use super::lab::measuring::{Saved, check_writable, measured, save};
use super::run::{job_file, may_write};
use crate::failure::{Reported, Usage};
use crate::opening::{self, SetArgs};
use crate::output;
use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use std::collections::BTreeMap;
use std::path::PathBuf;
use ugeom_classes::spec::Settings as Setting;
use ugeom_fio::Meaning;
use ugeom_harness::{Machine, Settings};
use ugeom_lab::ab::{self, BUDGET_NS, Jobs, Load, Options, Printed, Side, Subject};
use ugeom_report::text::WIDTH;

const LONG_ABOUT: &str = "\
Measures two targets, job files or commands, in the same rounds, in random order, and says \
whether B is faster than A, slower, the same within 1 %, or what it would take to know.

A target is read (--size, --random, --depth). A command is run by the shell, and the time that \
passes is its result, or with --printed the last number that it prints. A job file is run as it \
stands (ugeom run), and the time of one request is its result, so that jobs with a runtime= are \
compared by their rate.

A file that ends in .fio or .job is a job file. What is neither a device class nor a file that \
exists is taken for a command if its first word is a program; so is a file that can be executed. \
That is said; --target, --job and --command settle it.

In each round A runs a second time: what both differ by is the noise. Ctrl-C ends it early and \
keeps what was measured.";

const EXAMPLES: &str = "\
Examples:
  ugeom ab md:64m 'md:64m | nop'                 what does a layer cost?
  ugeom ab --set-b dispatch=queued md:64m md:64m  what do threads between the layers cost?
  ugeom ab --random --depth 32 old.img new.img   reads at random, 32 at once
  ugeom ab before.fio after.fio                  two job files, as they stand
  ugeom ab 'sort a.txt' 'sort --parallel=1 a.txt'
  ugeom ab --rounds 30 --json ab.json './bench-old' './bench-new'
  ugeom ab --printed per-second './iops-old' './iops-new'";

/// Is B faster than A? Measure both in the same rounds
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Ab {
    /// The base: a target, a job file, or a command in quotes
    #[arg(value_name = "A")]
    a: String,

    /// What is compared with it
    #[arg(value_name = "B")]
    b: String,

    /// Run so many rounds, however long that takes [default: until it is precise, or the budget]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    rounds: Option<u64>,

    /// How long it may take; ten rounds are run in any case [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = duration_ns, conflicts_with = "rounds")]
    budget: Option<u64>,

    /// The length of a run [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    run: Option<u64>,

    /// Both are commands
    #[arg(long, group = "kind")]
    command: bool,

    /// Both are targets
    #[arg(long, group = "kind")]
    target: bool,

    /// Both are job files
    #[arg(long, group = "kind")]
    job: bool,

    /// Let job files write to what carries a partition table or a file system, or is mounted
    #[arg(long)]
    destroy: bool,

    /// The result of a command is the last number that it prints, in this unit
    #[arg(long, value_name = "UNIT")]
    printed: Option<PrintedArg>,

    /// The size of a read from a target
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = opening::size)]
    size: u64,

    /// Read targets at random places
    #[arg(long)]
    random: bool,

    /// How many reads of a target are under way at once
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: u32,

    #[command(flatten)]
    set: SetArgs,

    /// The same for B alone: two ways in which one target may work are compared
    #[arg(long, value_name = "KEY=VALUE", value_parser = opening::setting)]
    set_b: Vec<(String, Setting)>,

    #[command(flatten)]
    rules: RulesArgs,

    /// The seed of the random order of runs [default: one of the clock, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Save all samples and figures as JSON; `-` prints them instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,
}

/// The unit of what commands print.
#[derive(Clone, Copy, ValueEnum)]
enum PrintedArg {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds
    S,
    /// A rate, so many in a second
    PerSecond,
}

impl From<PrintedArg> for Printed {
    fn from(unit: PrintedArg) -> Self {
        match unit {
            PrintedArg::Ns => Self::Ns,
            PrintedArg::Us => Self::Us,
            PrintedArg::Ms => Self::Ms,
            PrintedArg::S => Self::S,
            PrintedArg::PerSecond => Self::PerSecond,
        }
    }
}

/// Larger reads are none that a disk does at once.
const SIZE_BYTES_MAX: u64 = 1 << 30;

/// All buffers together may take this much memory.
const BUFFERS_BYTES_MAX: u64 = 1 << 32;

impl Ab {
    pub fn run(&self) -> Result<()> {
        let options = self.options()?;
        let jobs = self.jobs(&options.subject)?;
        check_writable(self.json.as_deref())?;
        let document = measured(|control| ab::run(&options, &jobs, &Machine, control))?;
        if save(self.json.as_deref(), &document)? == Saved::Quietly {
            output::print(&ab::page(&document).to_text(WIDTH))?;
        }
        let failures = document
            .processes
            .iter()
            .filter_map(|one| one.failure.as_ref());
        let mut failed = false;
        for failure in failures {
            let error = output::printable(&failure.error);
            output::complain(&format!("{} failed: {error}", failure.cell));
            failed = true;
        }
        if failed { Err(Reported.into()) } else { Ok(()) }
    }

    fn options(&self) -> Result<Options> {
        let (a, b) = (self.side("A", &self.a)?, self.side("B", &self.b)?);
        let is_command = |side: &Side| matches!(side, Side::Command(_));
        let has = |is: fn(&Side) -> bool| is(&a) || is(&b);
        if self.printed.is_some() && !(is_command(&a) && is_command(&b)) {
            let problem = "--printed is for commands: nothing else prints";
            return Err(Usage(problem.to_owned()).into());
        }
        if has(|side| matches!(side, Side::Job(_))) && has(is_command) {
            let problem = "a job file is measured by the request, a command by the run: they \
                           cannot be compared";
            return Err(Usage(problem.to_owned()).into());
        }
        let is_set = self.set.texts().next().is_some();
        let is_target = |side: &Side| matches!(side, Side::Target(_));
        if (is_set && !is_target(&a)) || ((is_set || !self.set_b.is_empty()) && !is_target(&b)) {
            let problem = "--set and --set-b say how the stack of a target works; commands and \
                           job files say that themselves";
            return Err(Usage(problem.to_owned()).into());
        }
        let buffers_bytes = self.size.saturating_mul(self.depth.into());
        if self.size == 0 || self.size > SIZE_BYTES_MAX || buffers_bytes > BUFFERS_BYTES_MAX {
            let problem = format!(
                "{} reads of {} bytes at once: a read has 1 byte to 1 GiB, all together 4 GiB",
                self.depth, self.size
            );
            return Err(Usage(problem).into());
        }
        let rules = self.rules.options();
        Ok(Options {
            subject: Subject {
                a,
                b,
                load: Load {
                    size_bytes: self.size,
                    random: self.random,
                    depth: self.depth,
                },
                printed: self.printed.map(Printed::from),
                confidence: rules.confidence,
                same_within: rules.same_within,
                set: self.set.texts().map(str::to_owned).collect(),
                set_b: self.set_b.iter().map(|(text, _)| text.clone()).collect(),
            },
            rounds: self.rounds,
            budget_ns: self.budget.unwrap_or(BUDGET_NS),
            run_ns: self.run.unwrap_or(Settings::default().run_ns),
            seed: self.seed,
        })
    }

    /// What a text is; a guess that the user may not have meant is told.
    fn side(&self, name: &str, text: &str) -> Result<Side> {
        if self.command {
            return Ok(Side::Command(text.to_owned()));
        }
        if self.target {
            return Ok(Side::Target(text.to_owned()));
        }
        if self.job {
            return Ok(Side::Job(text.to_owned()));
        }
        let Some(side) = Side::guess(text) else {
            let text = output::printable(text);
            let problem = format!(
                "{name} is `{text}`: no file or device class, and no program; --target, --job \
                 or --command says what is meant"
            );
            return Err(Usage(problem).into());
        };
        let taken_for = match side {
            Side::Target(_) => return Ok(side),
            Side::Job(_) => ("a job file", "--job"),
            Side::Command(_) => ("a command", "--command"),
        };
        let ((what, flag), text) = (taken_for, output::printable(text));
        output::remark(&format!("{name} is taken for {what}: {text} ({flag})"));
        Ok(side)
    }

    /// The job files among the sides.
    fn jobs(&self, subject: &Subject) -> Result<Jobs<'static>> {
        let mut files = BTreeMap::new();
        for side in [&subject.a, &subject.b] {
            if let Side::Job(path) = side
                && !files.contains_key(path)
            {
                files.insert(path.clone(), job_file(path)?);
            }
        }
        let allowed: &dyn Fn(&Meaning) -> Result<(), String> = if self.destroy {
            &|_| Ok(())
        } else {
            &may_write
        };
        Ok(Jobs {
            files,
            may_write: allowed,
            note: &|text| output::remark(&output::printable(text)),
        })
    }
}
