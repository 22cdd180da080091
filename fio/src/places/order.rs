//! Which file the next request goes to: `file_service_type` and `openfiles`.

use crate::settings::{Distribution, FileOrder, Job};
use crate::spread::Spread;

/// The order of files.
pub struct Order {
    kind: FileOrder,
    spread: Spread,
    files: usize,
    /// Files in use at a time, and those in use now.
    window: usize,
    open: Vec<usize>,
    /// The next file that has not been in use yet.
    unopened: usize,
    /// The place in `open` of the file whose turn it is, and how many requests it still gets.
    turn: usize,
    left: u32,
    run: u32,
}

impl Order {
    /// The order of the `files` files of a job.
    pub fn new(job: &Job, files: usize) -> Self {
        let window = match job.openfiles {
            0 => files,
            some => (some as usize).min(files),
        };
        let distribution = match &job.file_order {
            FileOrder::Zipf(theta, center) => Distribution::Zipf(*theta, *center),
            FileOrder::Pareto(power, center) => Distribution::Pareto(*power, *center),
            FileOrder::Normal(deviation, center) => Distribution::Normal(*deviation, *center),
            FileOrder::RoundRobin | FileOrder::Sequential | FileOrder::Random => {
                Distribution::Uniform
            }
        };
        Self {
            kind: job.file_order,
            spread: Spread::new(&distribution, window.max(1) as u64),
            files,
            window,
            open: (0..window).collect(),
            unopened: window,
            turn: 0,
            left: job.file_run,
            run: job.file_run,
        }
    }

    /// All files can be worked on again.
    pub fn restart(&mut self) {
        self.open.clear();
        self.open.extend(0..self.window);
        self.unopened = self.window;
        (self.turn, self.left) = (0, self.run);
    }

    /// The file of the next request; `None` when all have been worked through.
    #[inline]
    pub fn next(&mut self, rng: &mut fastrand::Rng) -> Option<usize> {
        if self.files == 1 {
            return self.open.first().copied();
        }
        if self.left == 0 {
            self.choose(rng);
        }
        if self.turn >= self.open.len() {
            self.turn = 0;
        }
        self.left -= 1;
        self.open.get(self.turn).copied()
    }

    fn choose(&mut self, rng: &mut fastrand::Rng) {
        self.left = self.run;
        let next = self.turn + 1;
        let in_turn = self.kind == FileOrder::RoundRobin;
        let has_next = next < self.open.len() || (in_turn && self.opens_next());
        let open = self.open.len().max(1);
        self.turn = match self.kind {
            FileOrder::RoundRobin if has_next => next,
            FileOrder::RoundRobin => 0,
            FileOrder::Sequential => self.turn,
            _ => self.spread.draw(rng, open as u64) as usize,
        };
    }

    /// Whether some files have more requests than others, so that none of them is ever done.
    pub fn is_uneven(&self) -> bool {
        matches!(
            self.kind,
            FileOrder::Zipf(..) | FileOrder::Pareto(..) | FileOrder::Normal(..)
        ) && self.files > 1
    }

    /// The file that the last request was for has no place left: another one takes its place.
    pub fn worked_through(&mut self) {
        if self.files == 1 {
            self.open.clear();
            return;
        }
        self.left = self.run;
        if self.turn >= self.open.len() {
            return;
        }
        let in_order = matches!(self.kind, FileOrder::RoundRobin | FileOrder::Sequential);
        if !in_order && self.unopened < self.files {
            self.open[self.turn] = self.unopened;
            self.unopened += 1;
            return;
        }
        self.open.remove(self.turn);
        // As by fio, those in use behind it have their turn before another one.
        if self.turn >= self.open.len() {
            self.opens_next();
        }
    }

    /// Takes another file into use, behind the others, if there is room and one left.
    fn opens_next(&mut self) -> bool {
        let opens = self.open.len() < self.window && self.unopened < self.files;
        if opens {
            self.open.push(self.unopened);
            self.unopened += 1;
        }
        opens
    }
}
