//! The options of `disk`, and drives that somebody has measured.

use super::drive::Parameters;
use crate::build::BuildError;
use crate::md::sector_size;
use crate::registry::OptionDoc;
use crate::spec::Options;
use ugeom_machine::region::MAX_LEN_BYTES;

/// The options for the registry.
pub(super) const DOCS: &[OptionDoc] = &[
    doc(
        "size",
        "SIZE",
        "size of the media, a multiple of the sector size, up to 64t [4g]",
    ),
    doc(
        "sectorsize",
        "SIZE",
        "size of a sector, a power of two from 512 to 1m [512]",
    ),
    doc(
        "preset",
        "NAME",
        "a measured drive, whose values hold where no other is given [ata2004]",
    ),
    doc(
        "overhead",
        "TIME",
        "time of a transaction without mechanics",
    ),
    doc("rate", "SIZE/s", "what passes under the heads"),
    doc("seek", "TIME", "seek over the whole media; 0 for none"),
    doc("track", "TIME", "seek to the next track [a tenth of seek]"),
    doc(
        "rpm",
        "N",
        "revolutions a minute; 0 for no rotational delay",
    ),
    doc("buffer", "SIZE", "how far it reads ahead and writes behind"),
    doc(
        "queue",
        "1..32",
        "among how many requests it chooses the nearest",
    ),
    doc(
        "data",
        "0|1",
        "keep what is written; with 0 it reads as zeroes [1]",
    ),
];

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

/// The size that is not asked for, bytes.
const SIZE_BYTES: u64 = 4 << 30;
/// The longest queue of a drive (native command queueing, Serial ATA II, 2003).
const QUEUE_MAX: u64 = 32;
/// Faster does not turn: an hour of a revolution's nanoseconds must not round to nothing.
const REVOLUTIONS_MAX: u64 = 1_000_000;

/// The drive of M. Dillon's measurement of 26 September 2004: 14,577 transactions a second at most
/// (131,072 of 512 bytes in 8.996 s, and `iostat` beside it), 57,123,364 bytes a second from
/// blocks of 16 KiB on. He read in order, so nothing is known of seeks, and none are modelled.
const ATA_2004: Parameters = Parameters {
    size_bytes: SIZE_BYTES,
    overhead_ns: 1_000_000_000 / 14_577,
    rate_bytes_per_second: 57_123_364,
    seek_ns: 0,
    seek_track_ns: 0,
    revolutions_per_minute: 0,
    buffer_bytes: 2 << 20,
    queue: 1,
};

const PRESETS: &[(&str, Parameters)] = &[("ata2004", ATA_2004)];

/// What the options say.
pub(super) struct Settings {
    pub parameters: Parameters,
    pub sectorsize_bytes: u32,
    pub data: bool,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(mut options: Options<'_>) -> Result<Self, BuildError> {
        let sectorsize_bytes = sector_size(&mut options)?;
        let mut parameters = options.take_choice(PRESETS, "preset")?.unwrap_or(ATA_2004);
        let size = options.take_size_in_sectors_of(sectorsize_bytes, "size")?;
        parameters.size_bytes = size.unwrap_or(parameters.size_bytes);
        let overhead = options.take_duration_ns("overhead")?;
        parameters.overhead_ns = overhead.unwrap_or(parameters.overhead_ns);
        let rate = options.take_rate_bytes_per_second("rate")?;
        parameters.rate_bytes_per_second = rate.unwrap_or(parameters.rate_bytes_per_second);
        if let Some(seek_ns) = options.take_duration_ns("seek")? {
            parameters.seek_ns = seek_ns;
            parameters.seek_track_ns = seek_ns / 10;
        }
        let track = options.take_duration_ns("track")?;
        parameters.seek_track_ns = track.unwrap_or(parameters.seek_track_ns);
        let turns = options.take_u64_in(0..=REVOLUTIONS_MAX, "rpm")?;
        parameters.revolutions_per_minute = turns.unwrap_or(parameters.revolutions_per_minute);
        let buffer = options.take_size("buffer")?;
        parameters.buffer_bytes = buffer.unwrap_or(parameters.buffer_bytes);
        let queue = options.take_u64_in(1..=QUEUE_MAX, "queue")?;
        parameters.queue = queue.map_or(parameters.queue, |queue| queue as usize);
        let data = options.take_bool("data")?.unwrap_or(true);
        check(&options, &parameters, sectorsize_bytes)?;
        options.finish()?;
        Ok(Self {
            parameters,
            sectorsize_bytes: sectorsize_bytes as u32,
            data,
        })
    }
}

fn check(
    options: &Options<'_>,
    parameters: &Parameters,
    sectorsize_bytes: u64,
) -> Result<(), BuildError> {
    let size_bytes = parameters.size_bytes;
    let wrong = if size_bytes == 0 || size_bytes > MAX_LEN_BYTES {
        Some(("size", "a disk has at least one sector and at most 64t"))
    } else if !size_bytes.is_multiple_of(sectorsize_bytes) {
        Some(("size", "the size is no whole number of sectors"))
    } else if parameters.rate_bytes_per_second == 0 {
        Some(("rate", "at this rate nothing ever finishes"))
    } else if parameters.seek_track_ns > parameters.seek_ns {
        Some(("track", "the next track is nearer than the last one"))
    } else {
        None
    };
    match wrong {
        Some((key, why)) => Err(options.invalid(key, why).into()),
        None => Ok(()),
    }
}
