//! The requests of a load.

use super::door::{Kind, Request};
use super::places::{Random, Sequence};
use std::sync::Arc;
use ugeom_format::raidtest::{self, RaidtestKind};
use ugeom_harness::HarnessError;
use ugeom_stack::Opened;

/// A stretch of the provider in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it begins, bytes.
    pub start_bytes: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// The size of a block, and so of a request, bytes.
    pub block_bytes: u32,
    /// How many of 100 requests write, chosen at random; 0 and 100 are no choice.
    pub write_percent: u8,
}

/// Where requests come from.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Block after block, and again from the start. Several workers begin at equal distances.
    Sequential(Range),
    /// Each block as likely as any other.
    Random(Range),
    /// These, in their order. Several workers have consecutive shares of them.
    List(Arc<[raidtest::Request]>),
}

impl Pattern {
    /// Whether any request may write.
    pub fn writes(&self) -> bool {
        match self {
            Self::Sequential(range) | Self::Random(range) => range.write_percent > 0,
            Self::List(list) => list
                .iter()
                .any(|request| request.kind == RaidtestKind::Write),
        }
    }

    /// The longest request, bytes.
    pub(crate) fn longest_bytes(&self) -> u32 {
        match self {
            Self::Sequential(range) | Self::Random(range) => range.block_bytes,
            Self::List(list) => list.iter().map(|one| one.length_bytes).max().unwrap_or(0),
        }
    }

    /// Refuses a pattern that the provider cannot serve.
    pub(super) fn check(&self, name: &str, opened: &Opened) -> Result<(), HarnessError> {
        let wrong = |problem: String| HarnessError::Load {
            job: name.to_owned(),
            problem,
        };
        let Some(view) = opened.view() else {
            return Err(wrong("the provider is destroyed".to_owned()));
        };
        let (provider, media_bytes) = (&view.name, view.mediasize_bytes);
        let sector_bytes = u64::from(view.sectorsize_bytes.max(1));
        let one = |offset_bytes: u64, length_bytes: u64| {
            let end = offset_bytes.checked_add(length_bytes);
            if length_bytes == 0
                || !offset_bytes.is_multiple_of(sector_bytes)
                || !length_bytes.is_multiple_of(sector_bytes)
            {
                return Err(wrong(format!(
                    "{length_bytes} bytes at {offset_bytes} are not whole sectors of {provider}, \
                     which have {sector_bytes} bytes"
                )));
            }
            if end.is_none_or(|end| end > media_bytes) {
                return Err(wrong(format!(
                    "{length_bytes} bytes at {offset_bytes} reach past the end of {provider}, \
                     which has {media_bytes} bytes"
                )));
            }
            Ok(())
        };
        match self {
            Self::Sequential(range) | Self::Random(range) => {
                let block = u64::from(range.block_bytes);
                one(range.start_bytes, block)?;
                one(range.start_bytes, range.blocks.saturating_mul(block))
            }
            Self::List(list) if list.is_empty() => Err(wrong("there are no requests".to_owned())),
            Self::List(list) => list
                .iter()
                .try_for_each(|it| one(it.offset_bytes, u64::from(it.length_bytes))),
        }
    }

    /// The requests of one of `workers`, from the beginning.
    pub(super) fn source(&self, index: usize, workers: usize, seed: u64) -> Source {
        // Neighbouring seeds must not give neighbouring numbers, and no two workers the same.
        let random =
            fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index as u64);
        match self {
            Self::Sequential(range) => {
                let first = u128::from(range.blocks) * index as u128 / workers as u128;
                let places = Sequence::new(range.start_bytes, range.step(), range.blocks);
                Source::Sequential(range.mixed(places.from_step(first as u64), random))
            }
            Self::Random(range) => {
                let mix = fastrand::Rng::with_seed(!seed ^ index as u64);
                let places = Random::new(range.start_bytes, range.step(), range.blocks, random);
                Source::Random(range.mixed(places, mix))
            }
            Self::List(list) => {
                let border =
                    |index: usize| (list.len() as u128 * index as u128 / workers as u128) as usize;
                Source::List(List {
                    list: Arc::clone(list),
                    share: border(index)..border(index + 1),
                    next: border(index),
                })
            }
        }
    }
}

impl Range {
    fn step(&self) -> u64 {
        u64::from(self.block_bytes)
    }

    fn mixed<P>(&self, places: P, random: fastrand::Rng) -> Mixed<P> {
        Mixed::new(places, self.block_bytes, self.write_percent, random)
    }
}

/// The requests of one worker, without an end.
pub(super) enum Source {
    Sequential(Mixed<Sequence>),
    Random(Mixed<Random>),
    List(List),
}

/// Blocks at places, some of which are written.
pub struct Mixed<P> {
    places: P,
    block_bytes: u32,
    write_percent: u8,
    random: fastrand::Rng,
}

impl<P> Mixed<P> {
    /// Blocks of `block_bytes` at these places, of which `write_percent` of 100 are written, chosen
    /// at random; 0 and 100 are no choice.
    pub fn new(places: P, block_bytes: u32, write_percent: u8, random: fastrand::Rng) -> Self {
        Self {
            places,
            block_bytes,
            write_percent,
            random,
        }
    }
}

impl<P: Iterator<Item = u64>> Iterator for Mixed<P> {
    type Item = Request;

    #[inline(always)]
    fn next(&mut self) -> Option<Request> {
        let writes = match self.write_percent {
            0 => false,
            100.. => true,
            percent => self.random.u8(0..100) < percent,
        };
        let kind = if writes { Kind::Write } else { Kind::Read };
        let offset = self.places.next()?;
        Some(Request::of(kind, offset, self.block_bytes))
    }
}

/// A share of a list, over and over.
pub(super) struct List {
    list: Arc<[raidtest::Request]>,
    share: std::ops::Range<usize>,
    next: usize,
}

impl List {
    pub(super) fn len(&self) -> u64 {
        self.share.len() as u64
    }
}

impl Iterator for List {
    type Item = Request;

    #[inline(always)]
    fn next(&mut self) -> Option<Request> {
        if self.next >= self.share.end {
            self.next = self.share.start;
        }
        let request = self.list[self.next];
        self.next += 1;
        let kind = match request.kind {
            RaidtestKind::Read => Kind::Read,
            RaidtestKind::Write => Kind::Write,
        };
        Some(Request::of(
            kind,
            request.offset_bytes,
            request.length_bytes,
        ))
    }
}
