//! The display while jobs run, and the protection of targets.

use crate::output;
use crate::safety;
use anyhow::{Context as _, Result};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ugeom_classes::result_file;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_fio::{Meaning, Outcome, Progress, Watcher, output as text};
use ugeom_job::Report;

use super::results::Results;
use super::trigger::Trigger;
use super::written;

/// How often the line is drawn.
const DRAWN_EACH: Duration = Duration::from_millis(500);

/// The line of progress on stderr, and the rules of writing.
pub struct Terminal {
    drawn: bool,
    width: usize,
    last: Instant,
    /// When reports come while jobs run, and in which formats.
    report: Report,
    report_last: Instant,
    results: Results,
    destroy: bool,
    read_only: bool,
    /// Layouts are told on stdout, where fio tells them.
    tells: bool,
    interrupted: &'static AtomicBool,
    trigger: Trigger,
    drawn_each: Duration,
    newline_each: Option<Duration>,
    newline_last: Instant,
    /// The seeds of the jobs, when they are asked for.
    seeds: Option<String>,
    begun: Instant,
    /// The lines of `--bandwidth-log`: reads, writes, trims.
    bandwidths: Option<[String; 3]>,
}

impl Terminal {
    /// Draws at a terminal, or where it is asked for.
    pub fn new(report: &Report, tells: bool, results: Results) -> Result<Self> {
        let now = Instant::now();
        ugeom_machine::interrupt::catch_hangup()?;
        Ok(Self {
            drawn: match report.eta.as_deref() {
                Some("always") => true,
                Some("never") => false,
                _ => io::stderr().is_terminal(),
            },
            width: 0,
            last: now,
            report: report.clone(),
            report_last: now,
            results,
            destroy: report.destroy,
            read_only: report.read_only,
            tells,
            interrupted: ugeom_machine::interrupt::catch()?,
            trigger: Trigger::new(report),
            drawn_each: report
                .eta_interval_ns
                .map_or(DRAWN_EACH, Duration::from_nanos),
            newline_each: report.eta_newline_ns.map(Duration::from_nanos),
            newline_last: now,
            seeds: report.debug_random.then(String::new),
            begun: now,
            bandwidths: report.bandwidth_log.then(Default::default),
        })
    }

    /// The lines of `--debug=random`, as fio has them; nothing without it.
    pub fn take_seeds(&mut self) -> String {
        self.seeds.take().unwrap_or_default()
    }

    /// Writes the logs of `--bandwidth-log`, named as by fio.
    pub fn write_bandwidths(&mut self) -> Result<()> {
        let logs = self.bandwidths.take().into_iter().flatten();
        for (kind, log) in ["read", "write", "trim"].iter().zip(logs) {
            let path = format!("agg-{kind}_bw.log");
            result_file::refuse_carrying(Path::new(&path), |_| false)
                .and_then(|()| std::fs::write(&path, log))
                .with_context(|| format!("{path}: writing"))?;
        }
        Ok(())
    }

    /// The result, behind the reports while jobs ran.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self, result: &str) -> Result<()> {
        self.results.finish(result)
    }

    /// A signal has ended the jobs.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Runs the command of `--trigger`, if a trigger has ended the jobs.
    pub fn run_trigger(&self) {
        self.trigger.run();
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.width > 0 {
            let blank = " ".repeat(self.width);
            let _ = write!(io::stderr(), "\r{blank}\r");
            self.width = 0;
        }
    }
}

impl Watcher for Terminal {
    fn note(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn laying_out(&mut self, job: &str, files: usize, bytes: u64) {
        if self.tells {
            let s = if files == 1 { "" } else { "s" };
            let mib = bytes >> 20;
            // A closed pipe ends the program when the result is printed.
            let _ = output::print(&format!(
                "{job}: Laying out IO file{s} ({files} file{s} / {mib}MiB)\n"
            ));
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.trigger.look();
        if let Some(logs) = self.bandwidths.as_mut().filter(|_| progress.is_new) {
            let at_ms = self.begun.elapsed().as_millis();
            for (kind, (log, (bytes, _))) in logs.iter_mut().zip(progress.rates).enumerate() {
                let kib = (bytes / 1024.0) as u64;
                log.push_str(&format!("{at_ms}, {kib}, {kind}, 0, 0\n"));
            }
        }
        if self.drawn && self.last.elapsed() >= self.drawn_each {
            self.last = Instant::now();
            let line = text::progress_line(progress);
            let blanks = " ".repeat(self.width.saturating_sub(line.len()));
            let _ = write!(io::stderr(), "\r{line}{blanks}");
            self.width = line.len();
            let over = |each| self.newline_last.elapsed() >= each;
            if self.newline_each.is_some_and(over) {
                self.newline_last = Instant::now();
                let _ = writeln!(io::stderr());
                self.width = 0;
            }
        }
    }

    fn wants_reports(&self) -> bool {
        self.report.status_interval_ns.is_some()
    }

    fn is_report_due(&mut self) -> bool {
        let each = self.report.status_interval_ns.map(Duration::from_nanos);
        let is_due = each.is_some_and(|each| self.report_last.elapsed() >= each);
        if is_due {
            self.report_last = Instant::now();
        }
        is_due
    }

    fn report(&mut self, outcome: Outcome) {
        // The final report fails for the same reason; its error is printed then.
        let Ok(text) = written(&outcome.grouped(), &self.report) else {
            return;
        };
        if self.report.output.is_none() {
            self.clear();
        }
        self.results.report(&text);
    }

    fn seeded(&mut self, job: &str, number: u32, seeds: &[u64]) {
        let Some(text) = &mut self.seeds else { return };
        for (index, seed) in seeds.iter().enumerate() {
            text.push_str(&format!(
                "random   {job}.{number}: rand_seeds[{index}]={seed}\n"
            ));
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupted() || self.trigger.has_fired()
    }

    fn may_write(&mut self, target: &Meaning) -> Result<(), String> {
        if self.read_only {
            // A trace is read after the jobs were checked.
            return Err("--readonly: the job writes or trims".to_owned());
        }
        may_write(target, self.destroy)
    }
}

/// Whether a target may be written: why not, if it is mounted or attached to a loop device, or,
/// unless `destroy`, carries something.
pub fn may_write(target: &Meaning, destroy: bool) -> Result<(), String> {
    match target {
        Meaning::Nothing => Ok(()),
        // One that is in use is refused when the job opens it.
        Meaning::Stack(_) if destroy => Ok(()),
        Meaning::Stack(text) => refuse_content(text),
        Meaning::Paths(paths) => {
            let mut existing = paths.iter().filter(|path| path.exists());
            existing.try_for_each(|path| path_may_be_written(path, destroy))
        }
    }
}

fn path_may_be_written(path: &Path, destroy: bool) -> Result<(), String> {
    let said = |error: anyhow::Error| error.to_string();
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    safety::refuse_in_use(path).map_err(said)?;
    // `/dev/null` and the like carry nothing. A job on a folder fails alone, when it looks at it.
    if destroy || about.file_type().is_char_device() || about.is_dir() {
        return Ok(());
    }
    // A file shorter than a sector is no provider, but may be an image.
    if about.is_file() && about.len() < 512 {
        let name = path.display();
        let carries = |error| format!("{name}: {error}");
        return result_file::refuse_carrying(path, |_| false).map_err(carries);
    }
    safety::refuse_content_of_path(path).map_err(said)
}

fn refuse_content(text: &str) -> Result<(), String> {
    let target = open_target(text, &TargetOptions::default()).map_err(|error| error.to_string())?;
    safety::refuse_content(&target).map_err(|error| error.to_string())
}
