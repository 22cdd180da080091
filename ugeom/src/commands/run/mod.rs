//! `ugeom run`: fio's job files and command line.

mod completed;
mod idle;
mod results;
mod trigger;
mod watch;

use super::files;
use crate::failure::{JobsFailed, JobsInterrupted, JobsRefused, Usage};
use crate::output;
use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory, Parser};
use idle::IdleTimes;
use results::Results;
use std::fs;
use std::io::{self, IsTerminal as _};
use ugeom_classes::{path_of, text_of};
use ugeom_fio::{LogError, Outcome, output as text};
use ugeom_job::language::Section;
use ugeom_job::{Arguments, Environment, Job, JobError, Loader, Report, Understood, options};
use watch::Terminal;

pub use completed::with_options;
pub use watch::may_write;

const LONG_ABOUT: &str = "\
Runs fio's jobs, from job files or from the command line, and prints fio's output as text or JSON. \
A job's target (--filename) is a file, a block device, or a stack such as 'md:1g | nop:delay=1ms'.

Options of jobs are fio's. Before the first --name they are defaults for all jobs of the command \
line and of the first job file. Options of the program:

  --cmdhelp[=OPTION]       list the options of jobs, or describe one
  --output=FILE            write the result to FILE
  --output-format=FORMAT   normal, json, json+ or terse; several with commas
  --minimal                the same as --output-format=terse
  --aux-path=FOLDER        write wrong blocks of verify_dump there
  --bandwidth-log          log the bandwidth to agg-{read,write,trim}_bw.log
  --append-terse           print terse lines before the other output
  --idle-prof=WHAT         print how idle the CPUs were: system, percpu
  --terse-version=N        version of terse lines, 2 to 5
  --eta=WHEN               print a progress line: auto, always, never
  --eta-newline=TIME       keep a progress line after each TIME
  --eta-interval=TIME      redraw the progress line each TIME
  --status-interval=TIME   print the results so far each TIME
  --trigger-file=FILE      end all jobs when FILE is there, and remove it
  --trigger-timeout=TIME   end all jobs after TIME
  --trigger=COMMAND        shell command to run then
  --section=NAME           run only the jobs of this name
  --readonly               refuse jobs that write or trim
  --parse-only             parse the jobs and run none
  --showcmd                print the jobs as a command line and run none
  --inflate-log=FILE       print a log of log_store_compressed as text
  --warnings-fatal         refuse settings without effect
  --debug=random           print the seed of each job
  --debug=parse            print the settings as they are parsed
  --enghelp[=ENGINE]       list the engines, or the options of one
  --version                print the version of fio that is the reference
  --destroy                write to targets with a table or a file system

Errors name file and line, and the nearest name of an unknown option. A setting without effect is \
a warning. docs/run.md lists all options and the differences from fio.

Exit codes: 0 all jobs succeeded, 1 invalid jobs or wrong usage, N failed jobs, 128 interrupted.";

const EXAMPLES: &str = "\
Examples:
  ugeom run jobs.fio
  ugeom run jobs.fio --filename=/dev/sdx --runtime=10
  ugeom run --name=a --rw=randread --bs=4k --size=256m --direct=1 \\
      --ioengine=io_uring --iodepth=32
  ugeom run --name=slow --filename='md:64m | nop:delay=1ms' --rw=randrw \\
      --runtime=5 --time_based
  ugeom run --name=w --rw=write --size=64m --verify=crc32c";

/// Run fio's jobs, on files, block devices and stacks
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Run {
    /// Job files (- is standard input), and fio's options: --name=x --rw=randread ...
    #[arg(
        value_name = "JOBFILE|--OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_parser = crate::opening::word()
    )]
    arguments: Vec<String>,

    /// Print more; alone, print the version of fio that is the reference
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

/// The command alone, for its help where clap does not recognise the request.
#[derive(Parser)]
#[command(name = "ugeom run", bin_name = "ugeom run")]
struct Alone {
    #[command(flatten)]
    run: Run,
}

impl Run {
    pub fn run(&self) -> Result<()> {
        self.run_as_fio().map_err(|error| JobsRefused(error).into())
    }

    fn run_as_fio(&self) -> Result<()> {
        let read =
            ugeom_job::parse_arguments(&self.arguments, &mut Files, &Process).map_err(failed)?;
        let report = &read.report;
        if report.help {
            return output::print(&Alone::command().render_long_help().to_string());
        }
        if let Some(name) = &report.describe {
            return output::print(&options::describe(name).map_err(failed)?);
        }
        // fio's -v, which is also the program's.
        if report.version || (self.verbose && self.arguments.is_empty()) {
            return output::print(&format!("{}\n", text::FIO_VERSION));
        }
        if let Some(path) = &report.inflate {
            return inflate_log(path);
        }
        if let Some(engine) = &report.engines {
            return output::print(&options::describe_engine(engine).map_err(failed)?);
        }
        let wanted = &report.sections;
        if !wanted.is_empty() && read.sections.iter().all(Section::is_global) {
            let message = format!("--section={}: there is no such section", wanted.join(", "));
            return Err(Usage(message).into());
        }
        if report.debug_parse {
            output::print(&ugeom_job::parsed(&read.sections))?;
        }
        let Understood { mut jobs, warnings } =
            ugeom_job::understand(&with_a_job(&read)).map_err(failed)?;
        let aux_path = |job: &mut Job| job.aux_path.clone_from(&report.aux_path);
        jobs.iter_mut().for_each(aux_path);
        if report.read_only {
            ugeom_job::keep_files(&mut jobs).map_err(failed)?;
        }
        if jobs.is_empty() {
            return Err(Usage("there is no job: name one with --name=".to_owned()).into());
        }
        let is_run = !(report.parse_only || report.show_command || report.warnings_fatal);
        if !(is_run && goes_into_output(report)) {
            say(&warnings);
        }
        if report.warnings_fatal && !warnings.is_empty() {
            return Err(Usage("--warnings-fatal: see the warnings above".to_owned()).into());
        }
        if report.show_command {
            let line = command_line(&read.sections);
            return match &report.output {
                Some(path) => files::write(&path_of(path), line.as_bytes()),
                None => output::print(&line),
            };
        }
        if report.parse_only {
            return Ok(());
        }
        run_jobs(report, &jobs, warnings)
    }
}

/// Prints a compressed log as text.
fn inflate_log(path: &str) -> Result<()> {
    let name = || output::printable(path);
    let mut file = fs::File::open(path_of(path)).with_context(name)?;
    let mut text = output::stdout();
    match ugeom_fio::inflate_log(&mut file, &mut text) {
        Ok(()) => io::Write::flush(&mut text).map_err(output::stdout_error),
        Err(LogError::Input(error)) => Err(error).with_context(name),
        Err(LogError::Output(error)) => Err(output::stdout_error(error)),
    }
}

/// Whether warnings go into the file of the result, as fio's notes do: its format has a place for
/// them (terse has none), and stderr is not a terminal.
fn goes_into_output(report: &Report) -> bool {
    let has_room = report.formats.is_empty() || report.formats.iter().any(|f| f != "terse");
    report.output.is_some() && has_room && !io::stderr().is_terminal()
}

fn say(warnings: &[String]) {
    for warning in warnings {
        output::warn(&output::printable(warning));
    }
}

/// The sections; where defaults alone are to be parsed, with a job that has them.
fn with_a_job(read: &Arguments) -> Vec<Section> {
    let mut sections = read.sections.clone();
    if let ([first], true) = (&read.sections[..], read.report.parse_only)
        && first.is_global()
    {
        sections.push(Section {
            name: "job".to_owned(),
            settings: Vec::new(),
            ..first.clone()
        });
    }
    sections
}

/// The sections as one command line (`--showcmd`).
fn command_line(sections: &[Section]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%@+".contains(c);
    let quoted = |argument: String| match argument.chars().all(plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    let arguments = sections.iter().flat_map(Section::as_arguments).map(quoted);
    let arguments: Vec<String> = arguments.collect();
    format!("ugeom run {}\n", arguments.join(" "))
}

/// The jobs of one job file; settings without an effect are said.
pub fn job_file(path: &str) -> Result<Vec<Job>> {
    let sections = ugeom_job::language::parse_file(path, &mut Files, &Process).map_err(failed)?;
    let Understood { jobs, warnings } = ugeom_job::understand(&sections).map_err(failed)?;
    if jobs.is_empty() {
        let path = output::printable(path);
        return Err(Usage(format!("{path}: there is no job in it")).into());
    }
    say(&warnings);
    Ok(jobs)
}

fn run_jobs(report: &Report, jobs: &[Job], warnings: Vec<String>) -> Result<()> {
    let normal = report.formats.is_empty() || report.formats.iter().any(|f| f == "normal");
    let to_stdout = report.output.is_none();
    let mut head = String::new();
    if !to_stdout {
        let line = |warning: &String| format!("warning: {}\n", output::printable(warning));
        head.extend(warnings.iter().map(line));
    }
    let mut group = 0;
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.stonewall || job.new_group) {
            group += 1;
        }
        head.push_str(&format!("{}\n", text::title(job, group)));
        if job.numjobs > 1 {
            head.push_str("...\n");
        }
    }
    head.push_str(&format!(
        "ugeom-{}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        text::started(jobs)
    ));
    let mut results = Results::open(report)?;
    if normal {
        results.begin(&head)?;
    }
    let mut terminal = Terminal::new(report, normal && to_stdout, results)?;
    let mut idle = report.idle_of_cores.map(IdleTimes::begin).transpose()?;
    let outcome = ugeom_fio::run(jobs, &mut terminal);
    if outcome.is_err() && goes_into_output(report) {
        // There is no result that has them.
        say(&warnings);
    }
    let mut outcome = outcome.map_err(failed)?;
    outcome.idleness = idle.take().map(IdleTimes::end).transpose()?;
    outcome.warnings = warnings;
    terminal.clear();
    terminal.run_trigger();
    terminal.write_bandwidths()?;
    let failures: Vec<String> = outcome.jobs.iter().filter_map(message).collect();
    for failure in &failures {
        output::complain(&output::printable(failure));
    }
    let mut result = terminal.take_seeds();
    let failed_jobs = failures.len() + usize::from(!outcome.lost.is_empty());
    let outcome = outcome.grouped();
    result.push_str(&written(&outcome, report)?);
    let (interrupted, printed) = (terminal.interrupted(), terminal.finish(&result));
    // Last, where it is not overlooked.
    for lost in &outcome.lost {
        output::complain(&output::printable(&lost.to_string()));
    }
    printed?;
    if failed_jobs > 0 {
        Err(JobsFailed(failed_jobs).into())
    } else if interrupted {
        Err(JobsInterrupted.into())
    } else {
        Ok(())
    }
}

fn message(outcome: &ugeom_fio::JobOutcome) -> Option<String> {
    let trouble = outcome.trouble.as_ref()?;
    Some(format!("{}: {}", outcome.job.name, trouble.message))
}

/// The formats that are wanted, each once and in the order that fio has, whatever was asked for
/// first.
fn written(outcome: &Outcome, report: &Report) -> Result<String> {
    let wants = |format: &str| report.formats.iter().any(|wanted| wanted == format);
    let mut result = String::new();
    if wants("terse") || report.append_terse {
        let version = report.terse_version.unwrap_or(text::TERSE_VERSION);
        result.push_str(&text::terse(outcome, version));
    }
    if wants("json") || wants("json+") {
        result.push_str(&text::json(outcome, wants("json+"))?);
    }
    if wants("normal") || report.formats.is_empty() {
        result.push_str(&text::normal(outcome));
    }
    Ok(result)
}

/// Errors in the user's text are wrong usage, all others are failed work.
fn failed(error: JobError) -> anyhow::Error {
    if error.is_usage() {
        return Usage(output::printable(&error.to_string())).into();
    }
    anyhow::Error::new(error)
}

/// Job files on disk.
struct Files;

/// A job file is text that people write: one that is larger is no job file.
const JOB_FILE_BYTES_MAX: u64 = 4 << 20;

impl Loader for Files {
    fn load(&mut self, name: &str, from: Option<&str>) -> io::Result<(Vec<u8>, String)> {
        use io::Read;
        let beside = from.and_then(|from| Some(path_of(from).parent()?.join(path_of(name))));
        let direct = path_of(name);
        let path = match beside {
            Some(beside) if !direct.exists() => beside,
            _ => direct,
        };
        let mut text = Vec::new();
        let is_stdin = from.is_none() && name == "-";
        let file: Box<dyn Read> = if is_stdin {
            Box::new(io::stdin().lock())
        } else {
            let file = fs::File::open(&path)?;
            if file.metadata()?.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Box::new(file)
        };
        file.take(JOB_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
        if text.len() as u64 > JOB_FILE_BYTES_MAX {
            return Err(io::Error::other("it is larger than 4 MiB"));
        }
        Ok((text, text_of(path)))
    }
}

/// The environment of this process.
struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn keyword(&self, name: &str) -> Option<String> {
        let number = match name {
            "pagesize" => rustix::param::page_size() as u64,
            "ncpus" => ugeom_machine::cpu::online_cores() as u64,
            "mb_memory" => {
                let about = rustix::system::sysinfo();
                (about.totalram as u64 * u64::from(about.mem_unit)) >> 20
            }
            _ => return None,
        };
        Some(number.to_string())
    }
}
