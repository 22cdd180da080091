//! A bar on stderr for work that takes more than two seconds at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Work that is done sooner needs no bar.
const QUIET: Duration = Duration::from_secs(2);
/// How often the bar is drawn, in Hz.
const DRAWS_HZ: u8 = 10;

/// The progress of a transfer of bytes.
pub struct Progress {
    total_bytes: Option<u64>,
    started: Instant,
    watched: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work on so many bytes, where that is known.
    pub fn new(total_bytes: Option<u64>) -> Self {
        Self {
            total_bytes,
            started: Instant::now(),
            watched: io::stderr().is_terminal() && !crate::output::is_quiet(),
            bar: None,
        }
    }

    /// So many bytes are done.
    pub fn at(&mut self, done_bytes: u64) {
        if !self.watched {
            return;
        }
        if self.bar.is_none() && self.started.elapsed() >= QUIET {
            self.bar = Some(bar(self.total_bytes, self.started.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done_bytes);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total_bytes: Option<u64>, elapsed: Duration) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
    let bar = ProgressBar::with_draw_target(total_bytes, target).with_elapsed(elapsed);
    let template = match total_bytes {
        Some(_) => {
            "{wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
        }
        None => "{binary_bytes}, {binary_bytes_per_sec}",
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
