//! A bar on stderr for work that takes more than two seconds at a terminal.

use indicatif::{
    BinaryBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use std::fmt::Write;
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
    /// Done before the start, by an earlier run.
    first_bytes: u64,
    watched: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Work on so many bytes, where that is known.
    pub fn new(total_bytes: Option<u64>) -> Self {
        Self::from(0, total_bytes)
    }

    /// Work of which so many bytes are done already.
    pub fn from(first_bytes: u64, total_bytes: Option<u64>) -> Self {
        Self {
            total_bytes,
            started: Instant::now(),
            first_bytes,
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
            self.bar = Some(bar(self.total_bytes, self.started, self.first_bytes));
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

/// Rate and time left are those of the whole work: the bar appears late, and its own estimate would
/// take what was done before for work of its first moment.
fn bar(total_bytes: Option<u64>, started: Instant, first_bytes: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
    let bar = ProgressBar::with_draw_target(total_bytes, target);
    let template = match total_bytes {
        Some(_) => "{wide_bar} {binary_bytes} of {binary_total_bytes}, {rate}, {rest} left",
        None => "{binary_bytes}, {rate}",
    };
    let Ok(style) = ProgressStyle::with_template(template) else { return bar };
    let style = style
        .with_key("rate", move |state: &ProgressState, out: &mut dyn Write| {
            let done = state.pos().saturating_sub(first_bytes);
            let rate = bytes_per_second(done, started.elapsed());
            // A line of the terminal takes everything.
            let _ = write!(out, "{}/s", BinaryBytes(rate as u64));
        })
        .with_key("rest", move |state: &ProgressState, out: &mut dyn Write| {
            let done = state.pos().saturating_sub(first_bytes);
            let rest = state.len().unwrap_or(0).saturating_sub(state.pos());
            let _ = match time_left(done, rest, started.elapsed()) {
                Some(left) => write!(out, "{:#}", HumanDuration(left)),
                None => write!(out, "unknown time"),
            };
        });
    bar.with_style(style)
}

/// The mean rate of the whole work.
fn bytes_per_second(done: u64, elapsed: Duration) -> f64 {
    done as f64 / elapsed.as_secs_f64()
}

/// How long the rest takes at the mean rate; `None` before anything is done.
fn time_left(done: u64, rest: u64, elapsed: Duration) -> Option<Duration> {
    Duration::try_from_secs_f64(rest as f64 / bytes_per_second(done, elapsed)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_are_those_of_the_whole_work() {
        const MIB: u64 = 1 << 20;
        let elapsed = Duration::from_secs(4);
        assert_eq!(bytes_per_second(200 * MIB, elapsed) as u64, 50 * MIB);
        let left = time_left(200 * MIB, 400 * MIB, elapsed);
        assert_eq!(left, Some(Duration::from_secs(8)));
        assert_eq!(time_left(0, 400 * MIB, elapsed), None);
    }
}
