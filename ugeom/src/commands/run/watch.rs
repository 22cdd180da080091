//! What is shown while jobs run, and what keeps them from writing where they must not.

use crate::output;
use crate::safety;
use anyhow::Result;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ugeom_classes::result_file;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_fio::{Meaning, Progress, Report, Watcher, output as text};

/// How often the line is drawn.
const DRAWN_EACH: Duration = Duration::from_millis(500);

/// The line of progress on stderr, and the rules of writing.
pub struct Terminal {
    drawn: bool,
    width: usize,
    last: Instant,
    status_each: Option<Duration>,
    status_last: Instant,
    destroy: bool,
    read_only: bool,
    /// Layouts are told on stdout, where fio tells them.
    tells: bool,
    interrupted: &'static AtomicBool,
    drawn_each: Duration,
    newline_each: Option<Duration>,
    newline_last: Instant,
    /// The seeds of the jobs, when they are asked for.
    seeds: Option<String>,
}

impl Terminal {
    /// Draws at a terminal, or where it is asked for.
    pub fn new(report: &Report, tells: bool) -> Result<Self> {
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
            status_each: report.status_interval_ns.map(Duration::from_nanos),
            status_last: now,
            destroy: report.destroy,
            read_only: report.read_only,
            tells,
            interrupted: ugeom_machine::interrupt::catch()?,
            drawn_each: report
                .eta_interval_ns
                .map_or(DRAWN_EACH, Duration::from_nanos),
            newline_each: report.eta_newline_ns.map(Duration::from_nanos),
            newline_last: now,
            seeds: report.debug_random.then(String::new),
        })
    }

    /// The lines of `--debug=random`, as fio has them; nothing without it.
    pub fn take_seeds(&mut self) -> String {
        self.seeds.take().unwrap_or_default()
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
        let due = |each: Duration| self.status_last.elapsed() >= each;
        if self.status_each.is_some_and(due) {
            self.status_last = Instant::now();
            let _ = writeln!(io::stderr(), "{}", text::progress_line(progress));
        }
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
        self.interrupted.load(Relaxed)
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
    // `/dev/null` and the like carry nothing.
    if destroy || about.file_type().is_char_device() {
        return Ok(());
    }
    // What is shorter than a sector is no provider, but may be an image.
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
