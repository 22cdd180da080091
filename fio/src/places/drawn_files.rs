//! Files that are drawn: `file_service_type=random`, `zipf`, `pareto` and `normal`.

use ugeom_load::places::Below;

use crate::draws::{Draws, Purpose, Seeds};
use crate::spread::{Spread, ZetaSum};
use ugeom_job::settings::{Distribution, FileOrder};

/// How many numbers of a law a file has, as a power of two.
const NUMBERS_SHIFT: u32 = 10;

/// Files that are drawn, one for each run of requests.
pub struct DrawnFiles {
    distribution: Distribution,
    numbers: Numbers,
    states: Vec<FileState>,
    /// Files that may be open at a time, that are, and that are not done.
    window: usize,
    open: usize,
    left: usize,
    current: usize,
}

enum Numbers {
    Alike(Draws),
    Law(Box<Spread>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    Closed,
    Open,
    Done,
}

impl DrawnFiles {
    /// `files` files, of which `window` are open at a time; `None` where they come in turn.
    pub fn new(order: &FileOrder, files: usize, window: usize, seeds: &Seeds) -> Option<Self> {
        let distribution = match *order {
            FileOrder::RoundRobin | FileOrder::Sequential => return None,
            FileOrder::Random => Distribution::Uniform,
            FileOrder::Zipf(theta, center) => Distribution::Zipf(theta, center),
            FileOrder::Pareto(power, center) => Distribution::Pareto(power, center),
            FileOrder::Normal(deviation, center) => Distribution::Normal(deviation, center),
        };
        Some(Self {
            numbers: Numbers::new(&distribution, files, seeds),
            distribution,
            states: vec![FileState::Closed; files],
            window,
            open: 0,
            left: files,
            current: 0,
        })
    }

    /// All files can be drawn again, with the numbers of `seeds` where they are there.
    pub fn restart(&mut self, seeds: Option<&Seeds>) {
        let files = self.states.len();
        self.states.fill(FileState::Closed);
        (self.open, self.left, self.current) = (0, files, 0);
        if let Some(seeds) = seeds {
            self.numbers = Numbers::new(&self.distribution, files, seeds);
        }
    }

    /// The file of the requests until the next draw; `None` when there is none, or it is done.
    #[inline]
    pub fn current(&self) -> Option<usize> {
        let state = self.states.get(self.current)?;
        (*state == FileState::Open).then_some(self.current)
    }

    /// Draws until a file comes that is open, or can be opened.
    pub fn draw(&mut self) {
        while self.left > 0 {
            self.current = self.numbers.draw(self.states.len());
            match self.states[self.current] {
                FileState::Open => return,
                FileState::Closed if self.open < self.window => {
                    self.open += 1;
                    self.states[self.current] = FileState::Open;
                    return;
                }
                FileState::Closed | FileState::Done => {}
            }
        }
    }

    /// Whether some files have more requests than others, so that none of them is ever done.
    pub fn is_uneven(&self) -> bool {
        matches!(self.numbers, Numbers::Law(_))
    }

    /// The current file has no place left: another one takes its place.
    pub fn worked_through(&mut self) {
        if self.current().is_some() {
            self.states[self.current] = FileState::Done;
            self.open -= 1;
            self.left -= 1;
        }
    }
}

impl Numbers {
    fn new(distribution: &Distribution, files: usize, seeds: &Seeds) -> Self {
        let numbers = (files as u64) << NUMBERS_SHIFT;
        let seed = seeds.seed(Purpose::Files);
        match Spread::new(distribution, numbers, seed, false, &mut ZetaSum::default()) {
            None => Self::Alike(seeds.draws(Purpose::Files)),
            Some(spread) => Self::Law(Box::new(spread)),
        }
    }

    fn draw(&mut self, files: usize) -> usize {
        match self {
            Self::Alike(draws) => draws.below(files as u64) as usize,
            Self::Law(spread) => (spread.draw() >> NUMBERS_SHIFT) as usize,
        }
    }
}
