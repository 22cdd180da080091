//! `ugeom ab`: which candidate is faster? How it is measured and judged is in `ugeom_ab`; here
//! are its flags, and the classification of texts.

use super::compare::{RulesArgs, limit};
use super::files::{self, Output, Written};
use super::jobs::jobs;
use super::lab::flags::{command_line, launch, saved_to};
use super::lab::measuring::{ended_early, measured};
use super::lab::{budget_ns, duration_ns};
use crate::failure::{self, Usage};
use crate::opening::{self, SetArgs};
use crate::output;
use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use ugeom_ab::{self, AbOptions, Candidate, Document, Load, Printed, Scan, Shell, Side, Subject};
use ugeom_classes::spec::Settings as Setting;
use ugeom_classes::{TargetError, TargetText, registry};
use ugeom_harness::processes::{BUDGET_NS, PROCESSES_MAX};
use ugeom_harness::{Machine, Settings};
use ugeom_report::{Saved, to_html};

const LONG_ABOUT: &str = "\
Measures targets, job files or commands in the same rounds, in random order, and prints how much \
faster or slower each is than the first one, with a confidence interval.

A target is read (--size, --random, --depth). A command is run by a shell; its result is the \
elapsed time, or with --printed the last number that it prints. A job file runs unchanged (ugeom \
run); its result is the time of one request, so jobs with a runtime= are compared by IOPS.

A file that ends in .fio or .job is a job file. Anything that is neither a device class nor an \
existing file is a command if its first word is a program; so is an executable file. ugeom prints \
the classification; override it with --target, --job or --command.

Targets and job files are measured in fresh processes of this program, and each process is one \
observation; a command is a fresh process itself. Ctrl-C ends it early and keeps what was measured.

Exit codes: 0 done, or PASS; 1 a candidate failed; 2 wrong usage; 3 FAIL and 4 UNDECIDED of \
--fail-if-slower; 130 interrupted.";

const EXAMPLES: &str = "\
Examples:
  ugeom ab md:64m 'md:64m | nop'                 # what does a layer cost?
  ugeom ab --set-b dispatch=queued md:64m md:64m  # direct or queued dispatch?
  ugeom ab --random --depth 32 old.img new.img   # random reads, queue depth 32
  ugeom ab before.fio after.fio                  # two job files, unchanged
  ugeom ab 'sort a.txt' 'sort --parallel=1 a.txt'
  ugeom ab --scan jobs=1,2,4 'sort --parallel={jobs} a.txt'
  ugeom ab --scan sched=none,mq-deadline --prepare \\
      'echo {sched} > /sys/block/sda/queue/scheduler' reads.fio
  ugeom ab --fail-if-slower 5% ./bench-old ./bench-new   # for CI
  ugeom ab --printed per-second './iops-old' './iops-new'";

/// Which is faster? Measure targets, job files or commands in the same rounds
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Ab {
    /// Targets, job files, or commands in quotes; the first one is the base
    #[arg(value_name = "CANDIDATE", required = true, value_parser = crate::opening::word())]
    candidates: Vec<String>,

    /// Number of rounds in each process, without a time limit [default: what the budget allows]
    #[arg(short = 'r', long, visible_alias = "runs", value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rounds: Option<u64>,

    /// Time limit; at least six rounds or processes are run [default: 15s]
    #[arg(long, alias = "for", value_name = "TIME", value_parser = budget_ns,
          conflicts_with = "rounds")]
    budget: Option<u64>,

    /// Measure targets and job files in N fresh processes [default: 12 in 15 s]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PROCESSES_MAX)))]
    processes: Option<u32>,

    /// Length of a run of a target [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    run: Option<u64>,

    /// Every candidate is a command
    #[arg(long, group = "kind")]
    command: bool,

    /// Every candidate is a target
    #[arg(long, group = "kind")]
    target: bool,

    /// Every candidate is a job file
    #[arg(long, group = "kind")]
    job: bool,

    /// Let job files write to targets with a partition table or a file system
    #[arg(long)]
    destroy: bool,

    /// Name of a candidate, in order; may be repeated
    #[arg(
        short = 'n',
        long = "name",
        visible_alias = "command-name",
        value_name = "NAME"
    )]
    names: Vec<String>,

    /// One candidate for each value, which replaces {NAME} in all texts: depth=1,4,16 or n=1..64:8;
    /// may be repeated
    #[arg(long = "scan", value_name = "NAME=VALUES", value_parser = Scan::parse)]
    scans: Vec<Scan>,

    /// The same as --scan NAME=VALUES
    #[arg(short = 'L', long, value_names = ["NAME", "VALUES"], num_args = 2)]
    parameter_list: Vec<String>,

    #[command(flatten)]
    around: AroundArgs,

    /// The result of a command is the last number that it prints, in this unit
    #[arg(long, value_name = "UNIT")]
    printed: Option<PrintedArg>,

    /// Size of a read from a target [default: 4k]
    #[arg(long, value_name = "SIZE", value_parser = opening::size)]
    size: Option<u64>,

    /// Read targets at random offsets
    #[arg(long)]
    random: bool,

    /// Queue depth of the reads from a target [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: Option<u32>,

    #[command(flatten)]
    set: SetArgs,

    /// As --set, for the last candidate only, to compare two settings of one target
    #[arg(long, value_name = "KEY=VALUE", value_parser = opening::setting)]
    set_b: Vec<(String, Setting)>,

    #[command(flatten)]
    rules: RulesArgs,

    /// For CI: fail if a candidate is more than this slower than the base. Prints PASS, FAIL (exit
    /// code 3) or UNDECIDED (4); FAIL is wrong in at most 2.5 of 100 runs
    #[arg(long, value_name = "PERCENT", value_parser = limit)]
    fail_if_slower: Option<f64>,

    /// Seed of the random order of runs [default: from the clock; it is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    results: ResultArgs,
}

/// Commands, and the set-up and clean-up around them.
#[derive(Args)]
struct AroundArgs {
    /// Warm-up runs of each command before the measurement [default: 1]
    #[arg(short = 'w', long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    warmup: Option<u64>,

    /// Run for each candidate before all measurements; given once, or once for each candidate
    #[arg(short = 's', long, value_name = "CMD")]
    setup: Vec<String>,

    /// Run before each measured run, such as dropping caches; given once, or once for each
    /// candidate
    #[arg(short = 'p', long, value_name = "CMD")]
    prepare: Vec<String>,

    /// Run after each measured run; given once, or once for each candidate
    #[arg(short = 'C', long, value_name = "CMD")]
    conclude: Vec<String>,

    /// Run for each candidate after all measurements; given once, or once for each
    #[arg(short = 'c', long, value_name = "CMD")]
    cleanup: Vec<String>,

    /// The shell for commands, with its arguments; none starts programs directly. The shell's own
    /// time is measured and subtracted [default: /bin/sh]
    #[arg(short = 'S', long, value_name = "SHELL", value_parser = Shell::parse)]
    shell: Option<Shell>,

    /// The same as --shell none
    #[arg(short = 'N', conflicts_with = "shell")]
    no_shell: bool,

    /// Commands may end with any exit code
    #[arg(short = 'i', long)]
    ignore_failure: bool,
}

/// The files that results are written to.
#[derive(Args)]
struct ResultArgs {
    /// Save all samples and figures as JSON, of which `ugeom report` prints the whole page; `-`
    /// prints them instead of the answer
    #[arg(long, visible_alias = "export-json", value_name = "FILE",
          value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// Save all samples as one table (experiment, case, metric, round, value, unit, process); `-`
    /// prints it instead of the answer
    #[arg(long, visible_alias = "export-csv", value_name = "FILE",
          value_hint = ValueHint::FilePath)]
    csv: Option<PathBuf>,

    /// Write the whole page as Markdown; `-` prints it instead of the answer
    #[arg(long, visible_alias = "export-markdown", value_name = "FILE",
          value_hint = ValueHint::FilePath)]
    markdown: Option<PathBuf>,

    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Overwrite files that ugeom did not write
    #[arg(long)]
    force: bool,

    /// Print the whole page, not only the answer
    #[arg(long)]
    all: bool,
}

/// The unit of the numbers that commands print.
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
    /// A rate per second
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
        let jobs = jobs(&options, &|text| output::remark(&output::printable(text)))?;
        let results = &self.results;
        files::check_all(&results.outputs(), results.force)?;
        let launch = launch()?;
        let document =
            measured(|control| ugeom_ab::run(&options, &jobs, &launch, &Machine, control))?;
        results.show(&document)?;
        ended_early(&document)?;
        failure::gate(ugeom_ab::answer(&document).outcome)
    }

    fn options(&self) -> Result<AbOptions> {
        let candidates = self.candidates()?;
        let has = |is: fn(&Side) -> bool| candidates.iter().any(|one| is(&one.side));
        let all = |is: fn(&Side) -> bool| candidates.iter().all(|one| is(&one.side));
        let is_command = |side: &Side| matches!(side, Side::Command(_));
        let is_target = |side: &Side| matches!(side, Side::Target(_));
        let usage = |problem: &str| Err(Usage(problem.to_owned()).into());
        if self.printed.is_some() && !all(is_command) {
            return usage("--printed applies to commands only");
        }
        if has(|side| matches!(side, Side::Job(_))) && has(is_command) {
            return usage(
                "a job file is measured by the request, a command by the run: they cannot be \
                 compared",
            );
        }
        let is_set = self.set.texts().next().is_some();
        let last = candidates.last().is_some_and(|one| is_target(&one.side));
        if (is_set && !all(is_target)) || (!self.set_b.is_empty() && !last) {
            return usage("--set and --set-b apply to targets only, not to commands and job files");
        }
        if self.fail_if_slower.is_some() && candidates.len() < 2 {
            return usage("--fail-if-slower compares with a base: name two candidates");
        }
        if let Some(problem) = self.without_effect(&candidates) {
            return Err(Usage(problem).into());
        }
        let load = self.load()?;
        let rules = self.rules.options();
        let shell = match (&self.around.shell, self.around.no_shell) {
            (_, true) => Shell::None,
            (shell, _) => shell.clone().unwrap_or_default(),
        };
        Ok(AbOptions {
            subject: Subject {
                load,
                printed: self.printed.map(Printed::from),
                confidence: rules.confidence,
                same_within: rules.same_within,
                set: self.set.texts().map(str::to_owned).collect(),
                shell,
                warmup: self.around.warmup.unwrap_or(1),
                ignore_failure: self.around.ignore_failure,
                fail_if_slower: self.fail_if_slower,
                ..Subject::of(candidates)
            },
            rounds: self.rounds,
            processes: self.processes,
            budget_ns: self.budget.unwrap_or(BUDGET_NS),
            run_ns: self.run.unwrap_or(Settings::default().run_ns),
            seed: self.seed,
            destroy: self.destroy,
        })
    }

    /// How targets are read.
    fn load(&self) -> Result<Load> {
        let usual = Load::default();
        let load = Load {
            size_bytes: self.size.unwrap_or(usual.size_bytes),
            random: self.random,
            depth: self.depth.unwrap_or(usual.depth),
        };
        let buffers_bytes = load.size_bytes.saturating_mul(load.depth.into());
        let size = 1..=SIZE_BYTES_MAX;
        if !size.contains(&load.size_bytes) || buffers_bytes > BUFFERS_BYTES_MAX {
            let problem = format!(
                "{} reads of {} bytes in flight: a read has 1 byte to 1 GiB, all together 4 GiB",
                load.depth, load.size_bytes
            );
            return Err(Usage(problem).into());
        }
        Ok(load)
    }

    /// Options that no candidate is of the kind for.
    fn without_effect(&self, candidates: &[Candidate]) -> Option<String> {
        let has = |is: fn(&Side) -> bool| candidates.iter().any(|one| is(&one.side));
        let target = has(|side| matches!(side, Side::Target(_)));
        let job = has(|side| matches!(side, Side::Job(_)));
        let command = has(|side| matches!(side, Side::Command(_)));
        let around = &self.around;
        let hooks = [
            &around.setup,
            &around.prepare,
            &around.conclude,
            &around.cleanup,
        ];
        let hooks = hooks.into_iter().any(|texts| !texts.is_empty());
        let given = [
            ("--size", self.size.is_some(), target, "targets"),
            ("--random", self.random, target, "targets"),
            ("--depth", self.depth.is_some(), target, "targets"),
            ("--run", self.run.is_some(), target, "targets"),
            (
                "--processes",
                self.processes.is_some(),
                target || job,
                "targets and job files",
            ),
            ("--destroy", self.destroy, job, "job files"),
            ("--warmup", around.warmup.is_some(), command, "commands"),
            (
                "--ignore-failure",
                around.ignore_failure,
                command,
                "commands",
            ),
            ("-N", around.no_shell, command, "commands"),
            (
                "--shell",
                around.shell.is_some(),
                command || hooks,
                "commands",
            ),
        ];
        let wrong = given
            .iter()
            .find(|(_, given, applies, _)| *given && !applies)?;
        let there_are = match (target, job) {
            (true, _) => "targets",
            (_, true) => "job files",
            _ => "commands",
        };
        let (flag, what) = (wrong.0, wrong.3);
        Some(format!(
            "{flag} applies to {what} only; the candidates are {there_are}"
        ))
    }

    /// The candidates with their names, parameters and commands around them.
    fn candidates(&self) -> Result<Vec<Candidate>> {
        let count = self.candidates.len();
        let mut candidates = Vec::new();
        for (at, text) in self.candidates.iter().enumerate() {
            let around = &self.around;
            candidates.push(Candidate {
                name: self.names.get(at).cloned().unwrap_or_default(),
                setup: one_of("--setup", &around.setup, at, count)?,
                prepare: one_of("--prepare", &around.prepare, at, count)?,
                conclude: one_of("--conclude", &around.conclude, at, count)?,
                cleanup: one_of("--cleanup", &around.cleanup, at, count)?,
                ..Candidate::of(Side::Command(text.clone()))
            });
        }
        if self.names.len() > count {
            let problem = format!("{} names for {count} candidates", self.names.len());
            return Err(Usage(problem).into());
        }
        if let Some(last) = candidates.last_mut() {
            last.set = self.set_b.iter().map(|(text, _)| text.clone()).collect();
        }
        let mut scans = self.scans.clone();
        for pair in self.parameter_list.chunks_exact(2) {
            scans.push(Scan::of(&pair[0], &pair[1]).map_err(Usage)?);
        }
        let mut candidates = ugeom_ab::scanned(candidates, &scans).map_err(Usage)?;
        let named = Subject::of(candidates.clone());
        // The class of a text may depend on its parameters.
        for (one, named) in candidates.iter_mut().zip(&named.candidates) {
            one.side = self.side(&named.name, one.side.text())?;
        }
        Ok(candidates)
    }

    /// The class of a text; a guess that the user may not have meant is reported.
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
            let names = registry::names();
            let first = text.split([':', '|', ' ']).next();
            if first.is_some_and(|first| names.contains(&first)) {
                // The error points at the layer that is wrong.
                TargetText::parse(text).map_err(TargetError::from)?;
            }
            let text = output::printable(text);
            let problem = format!(
                "{name} is `{text}`: not a file, a device class or a program; override with \
                 --target, --job or --command"
            );
            return Err(Usage(problem).into());
        };
        let taken_for = match side {
            Side::Target(_) => return Ok(side),
            Side::Job(_) => ("a job file", "--job"),
            Side::Command(_) => ("a command", "--command"),
        };
        let ((what, flag), text) = (taken_for, output::printable(text));
        output::remark(&format!("{name} is classified as {what}: {text} ({flag})"));
        Ok(side)
    }
}

/// The command for a candidate: the same for all, or one for each.
fn one_of(flag: &str, texts: &[String], at: usize, count: usize) -> Result<Option<String>> {
    match texts.len() {
        0 => Ok(None),
        1 => Ok(Some(texts[0].clone())),
        many if many == count => Ok(Some(texts[at].clone())),
        many => Err(Usage(format!(
            "{flag} is given {many} times for {count} candidates: give it once, or once for each"
        ))
        .into()),
    }
}

impl ResultArgs {
    fn outputs(&self) -> [Output<'_>; 4] {
        [
            Output::json(self.json.as_ref()),
            Output::new("--csv", self.csv.as_ref(), Written::Csv),
            Output::new("--markdown", self.markdown.as_ref(), Written::Markdown),
            Output::report(self.report.as_ref()),
        ]
    }

    /// Prints the answer, and saves the result where the flags say.
    fn show(&self, document: &Document) -> Result<()> {
        let mut page = ugeom_ab::page(document);
        page.again = command_line();
        page.saved = saved_to(self.json.as_ref());
        let answer = || Ok(output::page_or_screen(&page, self.all));
        let html = || Ok(to_html(&[Saved::new(document.to_json()?, page.clone())?]));
        let [json, csv, markdown, report] = self.outputs();
        files::deliver(
            answer,
            &[
                (json, &|| Ok(document.to_json()?)),
                (csv, &|| Ok(ugeom_harness::tidy::table(document).to_csv())),
                (markdown, &|| Ok(page.to_markdown())),
                (report, &html),
            ],
        )
    }
}
