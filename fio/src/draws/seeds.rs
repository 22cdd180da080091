//! The seeds of a job's random numbers.

use super::Draws;
use ugeom_job::settings::{Job, RandomGenerator, Verify};

/// The seed of offsets with `randrepeat=1`, as fio up to 3.33 has it.
const OFFSETS_SEED: u64 = 0xb189_9bed;

/// Spreads a seed over 64 bits.
const MULTIPLIER: u64 = 0x9e37_0001;

/// How many seeds there are.
const COUNT: usize = 21;

/// The purpose of a sequence of random numbers. Its number is that of its seed, the same as in
/// fio's table of seeds.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Sizes of reads, writes and trims are this one and the two after it.
    Sizes = 0,
    /// Blocks with a verify header.
    Verified = 3,
    /// Reads and writes of a mixed job.
    Mix = 4,
    /// `file_service_type=random` and those after a law.
    Files = 5,
    /// Offsets of random requests.
    Offsets = 6,
    /// Sizes of files for `filesize=LOW-HIGH`.
    FileSizes = 7,
    /// The choice of writes to trim again, for `trim_percentage`.
    Trims = 8,
    /// Content of writes, with its repeated and compressible shares.
    Content = 9,
    /// Random or sequential, for `percentage_random`.
    Sequential = 10,
    /// The delay for `startdelay=LOW-HIGH`.
    StartDelay = 13,
    /// Arrival times for `rate_process=poisson`.
    Poisson = 15,
    /// The zone of a request for `random_distribution=zoned`.
    Zones = 16,
    /// The choice of requests with a priority, for `cmdprio_percentage`.
    Priorities = 19,
}

/// The seeds of one copy of a job.
///
/// With `randseed`, these are the seeds of fio 3.34 and later, which seeds offsets with it, too.
/// Without it, they are those of 3.33, whose offsets have a fixed seed. With `randrepeat=0` and no
/// `randseed`, all are random. `allrandrepeat` seeds all like those offsets.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    seeds: [u64; COUNT],
    /// The number of the copy among all, from 1.
    number: u64,
    long: bool,
    /// The numbers are the same in each pass and each run, and offsets that follow a law are seeded
    /// by the name of the file alone. As by fio 3.34, `randseed` unsets `randrepeat`.
    repeats: bool,
    /// Writes have the sizes of reads; trims have those of writes.
    alike: [bool; 2],
}

impl Seeds {
    /// The seeds of the copy with this number, from 0.
    pub fn of(job: &Job, number: u32) -> Self {
        let number = u64::from(number) + 1;
        let chosen = job.was_set("randseed");
        let mut seeds = [0; COUNT];
        if chosen || job.randrepeat {
            let mut seed = job.randseed;
            (0..4).for_each(|_| seed = seed.wrapping_mul(MULTIPLIER));
            for (index, slot) in seeds.iter_mut().enumerate() {
                *slot = seed.wrapping_mul(number).wrapping_add(index as u64);
                seed = seed.wrapping_mul(MULTIPLIER);
            }
        } else {
            seeds.fill_with(|| fastrand::u64(..));
        }
        if job.allrandrepeat {
            let first = OFFSETS_SEED.wrapping_mul(number);
            let each = seeds.iter_mut().zip(0..);
            each.for_each(|(seed, index)| *seed = first.wrapping_add(index));
        }
        let repeats = !chosen && job.randrepeat;
        if repeats {
            seeds[Purpose::Offsets as usize] = OFFSETS_SEED.wrapping_mul(number);
        }
        Self {
            seeds,
            number,
            long: job.generator == RandomGenerator::Tausworthe64,
            repeats,
            alike: [job.verify != Verify::No, job.rw.trim_then_write],
        }
    }

    /// All seeds, in fio's order.
    pub fn all(&self) -> &[u64] {
        &self.seeds
    }

    /// The seed of a sequence.
    pub fn seed(&self, purpose: Purpose) -> u64 {
        self.seeds[purpose as usize]
    }

    /// Whether each pass has the numbers of the first.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// Numbers as long as the job wants them.
    pub fn draws(&self, purpose: Purpose) -> Draws {
        Draws::new(self.seed(purpose), self.long)
    }

    /// Numbers of 32 bits, even if the job wants others.
    pub fn short(&self, purpose: Purpose) -> Draws {
        Draws::short(self.seed(purpose))
    }

    /// The numbers that sizes are drawn with, of reads, writes and trims: writes that are verified
    /// have the sizes of reads, and trims those of the writes that follow them.
    pub fn sizes(&self) -> [Draws; 3] {
        let first = Purpose::Sizes as usize;
        let [verified, trims_first] = self.alike;
        let read = self.seeds[first];
        let write = if verified {
            read
        } else {
            self.seeds[first + 1]
        };
        let trim = if trims_first {
            write
        } else {
            self.seeds[first + 2]
        };
        [read, write, trim].map(|seed| Draws::new(seed, self.long))
    }

    /// The seed of offsets in a file that follow a law.
    pub fn of_file(&self, name: &str) -> u64 {
        let named = u64::from(jenkins(name.as_bytes())).wrapping_mul(self.number);
        match self.repeats {
            true => named,
            false => named.wrapping_mul(self.seed(Purpose::Offsets)),
        }
    }
}

/// B. Jenkins' hash lookup3 (2006, public domain) of bytes, as far as fio has it: with its own
/// first state, and of each 12 bytes before the last ones three alone.
fn jenkins(bytes: &[u8]) -> u32 {
    const FIRST: u32 = 0x61c8_8647;
    let first = FIRST.wrapping_add(bytes.len() as u32);
    let mut state = [first; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        for (word, byte) in state.iter_mut().zip([0, 4, 8]) {
            *word = word.wrapping_add(u32::from(rest[byte]));
        }
        mix(&mut state);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return state[2];
    }
    for (index, byte) in rest.iter().enumerate() {
        let word = &mut state[index / 4];
        *word = word.wrapping_add(u32::from(*byte) << (8 * (index % 4)));
    }
    finish(&mut state);
    state[2]
}

fn mix(state: &mut [u32; 3]) {
    for (step, turn) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        let (to, from, next) = (step % 3, (step + 2) % 3, (step + 1) % 3);
        state[to] = state[to].wrapping_sub(state[from]) ^ state[from].rotate_left(turn);
        state[from] = state[from].wrapping_add(state[next]);
    }
}

fn finish(state: &mut [u32; 3]) {
    for (step, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (to, from) = ((step + 2) % 3, (step + 1) % 3);
        state[to] = (state[to] ^ state[from]).wrapping_sub(state[from].rotate_left(turn));
    }
}
