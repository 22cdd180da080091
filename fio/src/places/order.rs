//! The file of the next request: `file_service_type` and `openfiles`.

use super::drawn_files::DrawnFiles;
use crate::draws::Seeds;
use ugeom_job::settings::{FileOrder, Job};

/// The order of files.
pub struct Order {
    /// Files that are drawn; the other ones come in turn.
    drawn: Option<DrawnFiles>,
    /// The file whose turn it is gets all requests.
    sequential: bool,
    files: usize,
    /// Files in use at a time, and those in use now.
    window: usize,
    open: Vec<usize>,
    /// The next file that has not been in use yet.
    unopened: usize,
    /// The file that comes first. Others follow it, the first one after the last.
    first: usize,
    last: usize,
    /// The place in `open` of the file whose turn it is, and how many requests it still gets.
    turn: usize,
    left: u32,
    run: u32,
}

impl Order {
    /// The order of the `files` files of a job.
    pub fn new(job: &Job, files: usize, seeds: &Seeds) -> Self {
        let window = match job.openfiles {
            0 => files,
            some => (some as usize).min(files),
        };
        let drawn = (files > 1)
            .then(|| DrawnFiles::new(&job.file_order, files, window, seeds))
            .flatten();
        Self {
            // The first of them is drawn, too.
            left: if drawn.is_some() { 0 } else { job.file_run },
            drawn,
            sequential: job.file_order == FileOrder::Sequential,
            files,
            window,
            open: (0..window).collect(),
            unopened: window,
            first: 0,
            last: files.saturating_sub(1),
            turn: 0,
            run: job.file_run,
        }
    }

    /// All files can be worked on again; those that are drawn, with the numbers of `seeds` where
    /// they are there.
    pub fn restart(&mut self, seeds: Option<&Seeds>) {
        if let Some(drawn) = &mut self.drawn {
            drawn.restart(seeds);
            self.left = 0;
            return;
        }
        // The turns go on behind the last one.
        self.first = (self.last + 1) % self.files.max(1);
        self.open.clear();
        self.open.extend(0..self.window);
        self.unopened = self.window;
        (self.turn, self.left) = (0, self.run);
    }

    /// The file of the next request; `None` when all have been worked through.
    #[inline]
    pub fn next(&mut self) -> Option<usize> {
        if self.files == 1 {
            return self.open.first().copied();
        }
        if let Some(drawn) = &mut self.drawn {
            if self.left == 0 || drawn.current().is_none() {
                drawn.draw();
                self.left = self.run;
            }
            self.left -= 1;
            return drawn.current();
        }
        if self.left == 0 {
            self.choose();
        }
        if self.turn >= self.open.len() {
            self.turn = 0;
        }
        self.left -= 1;
        let turn = *self.open.get(self.turn)?;
        self.last = (self.first + turn) % self.files;
        Some(self.last)
    }

    fn choose(&mut self) {
        self.left = self.run;
        if self.sequential {
            return;
        }
        let next = self.turn + 1;
        let has_next = next < self.open.len() || self.opens_next();
        self.turn = if has_next { next } else { 0 };
    }

    /// How many files that are not open yet are passed over before the next request, since
    /// `openfiles` are: fio takes back a request for each.
    pub fn passed_over(&self) -> usize {
        let in_turn = self.drawn.is_none() && !self.sequential && self.left == 0;
        let comes_round = self.turn + 1 >= self.open.len() && self.open.len() == self.window;
        match in_turn && comes_round {
            true => self.files - self.unopened,
            false => 0,
        }
    }

    /// Whether some files have more requests than others, so that none of them is ever done.
    pub fn is_uneven(&self) -> bool {
        self.drawn.as_ref().is_some_and(DrawnFiles::is_uneven)
    }

    /// The file that the last request was for has no place left: another one takes its place.
    pub fn worked_through(&mut self) {
        if self.files == 1 {
            self.open.clear();
            return;
        }
        if let Some(drawn) = &mut self.drawn {
            return drawn.worked_through();
        }
        self.left = self.run;
        if self.turn >= self.open.len() {
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
