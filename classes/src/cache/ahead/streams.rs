//! Sequential streams among the reads, and the next blocks of each. No I/O and no clock: the same
//! reads always have the same answers.
//!
//! ```text
//!   read:   ... 7 8 | 9 10 11 12 | 13 14 15 16 17 18 19 20 |
//!               ^next ^trigger     the window that is asked for when 9 is used
//! ```
//!
//! Two misses in a row make a stream. Its windows double; the next one is asked for when the first
//! block of the last is used, so that a reader that keeps up never waits.

/// Streams that are told apart.
const STREAMS: usize = 16;
/// The first window, blocks.
const FIRST_BLOCKS: u64 = 4;

/// Blocks to be read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first of them.
    pub first: u64,
    /// Blocks of the window.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The last request that missed began here.
    from: u64,
    /// The block after the last that was read.
    next: u64,
    /// Blocks below this were asked for.
    until: u64,
    /// When this block is used, the next window is asked for.
    trigger: u64,
    /// The length of the last window, blocks; 0 before the first.
    window: u64,
    /// When it was last seen.
    age: u64,
    /// It stands for a stream, or for a read that may begin one.
    known: bool,
}

/// The streams of a cache.
#[derive(Debug)]
pub struct Streams {
    all: [Stream; STREAMS],
    now: u64,
    /// The longest window, blocks.
    most: u64,
    /// The longest window that is worth it at present: a block that was read ahead and not used
    /// takes from it, a used one adds to it.
    limit: u64,
}

impl Streams {
    /// With windows of at most so many blocks.
    pub fn new(most: u64) -> Self {
        Self {
            all: [Stream::default(); STREAMS],
            now: 0,
            most,
            limit: most,
        }
    }

    /// A request has missed the blocks from `first` to `last`.
    pub(crate) fn missed(&mut self, first: u64, last: u64) -> Option<Window> {
        self.now += 1;
        let (now, known) = (self.now, |stream: &&mut Stream| stream.known);
        let mut streams = self.all.iter_mut().filter(known);
        let expected = |stream: &&mut Stream| (stream.from..=stream.until).contains(&first);
        let Some(stream) = streams.find(expected) else {
            self.begin(first, last);
            return None;
        };
        stream.age = now;
        if first < stream.next {
            // The same read again, or another part of it.
            return None;
        }
        (stream.from, stream.next) = (first, stream.next.max(last + 1));
        stream.until = stream.until.max(stream.next);
        // This one would not have missed.
        self.limit = (self.limit + 1).min(self.most);
        if stream.window > 0 && stream.next <= stream.trigger {
            return None;
        }
        Some(Self::extend(stream, self.limit))
    }

    /// A block that was read ahead is used for the first time.
    pub fn used(&mut self, block: u64) -> Option<Window> {
        self.now += 1;
        self.limit = (self.limit + 1).min(self.most);
        let holds = |stream: &&mut Stream| {
            let reach = stream.until.saturating_sub(2 * stream.window);
            stream.known && stream.window > 0 && (reach..stream.until).contains(&block)
        };
        let stream = self.all.iter_mut().find(holds)?;
        stream.age = self.now;
        stream.next = stream.next.max(block + 1);
        (block >= stream.trigger).then(|| Self::extend(stream, self.limit))
    }

    /// So many blocks were read ahead and have gone without being used.
    pub(crate) fn wasted(&mut self, blocks: u64) {
        self.limit = self.limit.saturating_sub(blocks);
        if self.limit == 0 {
            // The stream of this read is unknown, so each must prove itself again.
            self.all.iter_mut().for_each(|stream| stream.known = false);
        }
    }

    fn extend(stream: &mut Stream, limit: u64) -> Window {
        let doubled = if stream.window == 0 {
            FIRST_BLOCKS
        } else {
            2 * stream.window
        };
        stream.window = doubled.clamp(1, limit.max(1));
        let window = Window {
            first: stream.until,
            count: stream.window,
        };
        stream.trigger = window.first;
        stream.until += window.count;
        window
    }

    /// Remembers a read that may be the first of a stream, in place of the oldest.
    fn begin(&mut self, first: u64, last: u64) {
        let age = |stream: &&mut Stream| (stream.known, stream.age);
        if let Some(oldest) = self.all.iter_mut().min_by_key(age) {
            *oldest = Stream {
                from: first,
                next: last + 1,
                until: last + 1,
                age: self.now,
                known: true,
                ..Stream::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u64, count: u64) -> Option<Window> {
        Some(Window { first, count })
    }

    #[test]
    fn windows_double_up_to_the_most_and_are_asked_for_one_ahead() {
        let mut streams = Streams::new(16);
        assert_eq!(streams.missed(100, 100), None, "one read is no stream");
        assert_eq!(streams.missed(101, 101), window(102, 4));
        assert_eq!(streams.used(102), window(106, 8));
        for block in 103..106 {
            assert_eq!(streams.used(block), None, "{block}");
        }
        assert_eq!(streams.used(106), window(114, 16));
        assert_eq!(streams.used(107), None);
        assert_eq!(streams.used(114), window(130, 16));
    }

    #[test]
    fn parts_of_one_read_are_no_stream() {
        let mut streams = Streams::new(64);
        assert_eq!(streams.missed(10, 40), None);
        assert_eq!(streams.missed(10, 40), None, "asked again after a wait");
        assert_eq!(streams.missed(26, 40), None, "what is left of it");
        assert_eq!(streams.missed(41, 41), window(42, 4), "the next one");
    }

    #[test]
    fn what_is_wasted_makes_windows_shorter_and_then_ends_them() {
        let mut streams = Streams::new(16);
        streams.missed(0, 0);
        assert_eq!(streams.missed(1, 1), window(2, 4));
        streams.wasted(10);
        assert_eq!(streams.used(2), window(6, 7), "16 - 10 + 1 is the limit");
        streams.wasted(100);
        assert_eq!(streams.used(6), None, "it has to show itself again");
        assert_eq!(streams.missed(20, 20), None);
        assert_eq!(streams.missed(21, 21), window(22, 2), "and begins small");
    }
}
