//! The mechanics: when a drive that is free at one moment finishes a request. No clock, no locks.
//!
//! The shape of the model is that of C. Ruemmler and J. Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994: a fixed overhead, a seek that grows with the root of the
//! distance, the exact angle of the platter, a transfer at the rate of the media, and a buffer
//! that the drive fills ahead of the reader. All times are nanoseconds on one axis.

/// The parameters of a drive. A field that is 0 costs no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The size of the media, bytes.
    pub size_bytes: u64,
    /// From one completion to the next of requests that need no mechanics, ns: command, interrupt
    /// and the caller's turn.
    pub overhead_ns: u64,
    /// The media rate, bytes a second.
    pub rate_bytes_per_second: u64,
    /// A seek from the first track to the last, ns.
    pub seek_ns: u64,
    /// A seek to the next track, ns.
    pub seek_track_ns: u64,
    /// Speed of the spindle: a sector passes the heads once a revolution.
    pub revolutions_per_minute: u64,
    /// How far the drive reads ahead, and how much it takes before it has written it, bytes.
    pub buffer_bytes: u64,
    /// Among how many requests it chooses the nearest.
    pub queue: usize,
}

/// The mechanical work of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads so many bytes at an offset.
    Read {
        /// Byte offset on the disk.
        offset_bytes: u64,
        /// Length of the read, bytes.
        length_bytes: u64,
    },
    /// Writes so many bytes at an offset.
    Write {
        /// Byte offset on the disk.
        offset_bytes: u64,
        /// Length of the write, bytes.
        length_bytes: u64,
    },
    /// A command that moves no data: only the overhead.
    Command,
}

impl Work {
    const fn range(self) -> Option<(bool, u64, u64)> {
        match self {
            Self::Read {
                offset_bytes,
                length_bytes,
            } => Some((false, offset_bytes, length_bytes)),
            Self::Write {
                offset_bytes,
                length_bytes,
            } => Some((true, offset_bytes, length_bytes)),
            Self::Command => None,
        }
    }
}

const NS_PER_SECOND: u128 = 1_000_000_000;
const NS_PER_MINUTE: u64 = 60_000_000_000;

/// The drive between two requests.
#[derive(Clone, Debug)]
pub struct Drive {
    parameters: Parameters,
    /// Where the heads are, bytes.
    head_bytes: u64,
    /// Whether the last transfer was a write; nothing before the first one.
    last_was_write: Option<bool>,
    /// When the media had moved the last byte of it.
    media_free_ns: u64,
}

impl Drive {
    /// A drive with its heads at the first track, as nothing had happened yet.
    pub const fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            head_bytes: 0,
            last_was_write: None,
            media_free_ns: 0,
        }
    }

    /// Its parameters.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// When a request that the drive begins at `start_ns` is finished.
    ///
    /// - without data: start + overhead
    /// - what follows the last transfer, in the same direction: the longer of start + overhead and
    ///   the end of the media's work, which goes on without a pause as far as the buffer lets it
    /// - anything else: start + overhead + seek + rotation + transfer
    pub fn run(&mut self, work: Work, start_ns: u64) -> u64 {
        let ready_ns = start_ns.saturating_add(self.parameters.overhead_ns);
        let Some((write, offset_bytes, length_bytes)) = work.range() else {
            return ready_ns;
        };
        let transfer_ns = self.transfer_ns(length_bytes);
        let finished_ns = if self.follows(write, offset_bytes) {
            let ahead_ns = self.transfer_ns(self.parameters.buffer_bytes);
            let begun_ns = self.media_free_ns.max(start_ns.saturating_sub(ahead_ns));
            self.media_free_ns = begun_ns.saturating_add(transfer_ns);
            ready_ns.max(self.media_free_ns)
        } else {
            let reach_ns = self.reach_ns(offset_bytes, ready_ns);
            self.media_free_ns = ready_ns
                .saturating_add(reach_ns)
                .saturating_add(transfer_ns);
            self.media_free_ns
        };
        self.head_bytes = offset_bytes.saturating_add(length_bytes);
        self.last_was_write = Some(write);
        finished_ns
    }

    /// How long the mechanics would need to reach a request that the drive began at `start_ns`:
    /// what a drive that chooses compares.
    pub(crate) fn distance_ns(&self, work: Work, start_ns: u64) -> u64 {
        match work.range() {
            Some((write, offset_bytes, _)) if !self.follows(write, offset_bytes) => {
                let ready_ns = start_ns.saturating_add(self.parameters.overhead_ns);
                self.reach_ns(offset_bytes, ready_ns)
            }
            _ => 0,
        }
    }

    fn follows(&self, write: bool, offset_bytes: u64) -> bool {
        self.last_was_write == Some(write) && offset_bytes == self.head_bytes
    }

    /// Seek and rotation to an offset, begun at `from_ns`.
    fn reach_ns(&self, offset_bytes: u64, from_ns: u64) -> u64 {
        let seek_ns = self.seek_ns(offset_bytes);
        seek_ns.saturating_add(self.rotation_ns(offset_bytes, from_ns.saturating_add(seek_ns)))
    }

    /// How long `bytes` need to pass under the heads, rounded up.
    fn transfer_ns(&self, bytes: u64) -> u64 {
        let rate = u128::from(self.parameters.rate_bytes_per_second);
        if rate == 0 {
            return 0;
        }
        let ns = (u128::from(bytes) * NS_PER_SECOND).div_ceil(rate);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The bytes of one track, which pass in a revolution. Without rotation, one.
    fn track_bytes(&self) -> u64 {
        let Parameters {
            revolutions_per_minute,
            rate_bytes_per_second,
            ..
        } = self.parameters;
        if revolutions_per_minute == 0 {
            return 1;
        }
        let bytes = u128::from(rate_bytes_per_second) * 60 / u128::from(revolutions_per_minute);
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }

    /// A seek over d of D tracks takes `track + (full - track) * sqrt((d - 1) / (D - 1))`.
    fn seek_ns(&self, offset_bytes: u64) -> u64 {
        let Parameters {
            size_bytes,
            seek_ns,
            seek_track_ns,
            ..
        } = self.parameters;
        let track_bytes = self.track_bytes();
        let tracks = (offset_bytes / track_bytes).abs_diff(self.head_bytes / track_bytes);
        if tracks == 0 || seek_ns == 0 {
            return 0;
        }
        let all = (size_bytes / track_bytes).max(2) - 1;
        let part = ((tracks - 1) as f64 / all as f64).min(1.0).sqrt();
        let more_ns = seek_ns.saturating_sub(seek_track_ns) as f64 * part;
        seek_track_ns.min(seek_ns).saturating_add(more_ns as u64)
    }

    /// How long the platter turns from `at_ns` on until the offset is under the heads. The angle
    /// of an offset is its place in its track; at time 0 all tracks are at their beginning.
    fn rotation_ns(&self, offset_bytes: u64, at_ns: u64) -> u64 {
        let Some(period_ns) = NS_PER_MINUTE.checked_div(self.parameters.revolutions_per_minute)
        else {
            return 0;
        };
        let track_bytes = self.track_bytes();
        let place = u128::from(offset_bytes % track_bytes) * u128::from(period_ns);
        let angle_ns = (place / u128::from(track_bytes)) as u64;
        let Some(now_ns) = at_ns.checked_rem(period_ns) else { return 0 };
        if angle_ns >= now_ns {
            angle_ns - now_ns
        } else {
            period_ns - now_ns + angle_ns
        }
    }
}
