//! The options of `disk`, and drives that were measured.

use super::drive::Parameters;
use crate::set_field;
use crate::spec::OptionDefault::{Depends, Value};
use crate::spec::values::{choice, duration_ns, number_in, sector_size, size, size_in_sectors_of};
use crate::spec::{LayerArguments, OptionDefault, OptionTable, SpecError, option};
use ugeom_machine::region::MAX_LEN_BYTES;
use ugeom_measure::units::{rate_bytes_per_second, truth};

/// The default of a value that the preset gives.
const OF_THE_PRESET: OptionDefault = Depends("the preset's");

/// The options of the class. The sector size is read before the size, which may be given in
/// sectors, and the preset before the values that it has.
#[rustfmt::skip]
pub(super) const OPTIONS: OptionTable<Settings> = OptionTable(&[
    option("sectorsize", "SIZE", Value("512"), "size of a sector, a power of two from 512 to 1m",
        set_field!(sector_bytes = sector_size)),
    option("preset", "NAME", Value("ata2004"),
        "a measured drive, for the values that are not given",
        set_field!(it, text => parameters = choice(PRESETS, text)?)),
    option("size", "SIZE", Value("4g"),
        "size of the media, a multiple of the sector size, at most 64t",
        set_field!(it, text => parameters.size_bytes = size_in_sectors_of(it.sector_bytes, text)?)),
    option("overhead", "TIME", OF_THE_PRESET,
        "time of a request without seek, rotation and transfer",
        set_field!(parameters.overhead_ns = duration_ns)),
    option("rate", "SIZE/s", OF_THE_PRESET, "media transfer rate",
        set_field!(parameters.rate_bytes_per_second = rate_bytes_per_second)),
    option("seek", "TIME", OF_THE_PRESET, "time of a seek over the whole media; 0 for none",
        |it, text| {
            it.parameters.seek_ns = duration_ns(text)?;
            it.parameters.seek_track_ns = it.parameters.seek_ns / 10;
            Ok(())
        }),
    option("track", "TIME", Depends("a tenth of seek"), "time of a seek to the next track",
        set_field!(parameters.seek_track_ns = duration_ns)),
    option("rpm", "N", OF_THE_PRESET, "revolutions a minute; 0 for no rotational delay",
        set_field!(it, text =>
            parameters.revolutions_per_minute = number_in(0..=REVOLUTIONS_MAX, text)?)),
    option("buffer", "SIZE", OF_THE_PRESET, "memory of the drive for read-ahead and write-behind",
        set_field!(parameters.buffer_bytes = size)),
    option("queue", "1..32", OF_THE_PRESET,
        "queue depth of the drive, which serves the nearest request first",
        set_field!(it, text => parameters.queue = number_in(1..=QUEUE_MAX, text)? as usize)),
    option("data", "0|1", Value("1"), "keep written data; 0: all reads return zeroes",
        set_field!(data = truth)),
]);

/// The longest queue of a drive (native command queueing, Serial ATA II, 2003).
const QUEUE_MAX: u64 = 32;
/// Faster does not turn: an hour of a revolution's nanoseconds must not round to nothing.
const REVOLUTIONS_MAX: u64 = 1_000_000;

/// The drive of M. Dillon's measurement of 26 September 2004: 14,577 transactions a second at most
/// (131,072 of 512 bytes in 8.996 s, and `iostat` beside it), 57,123,364 bytes a second from
/// blocks of 16 KiB on. He read in order, so nothing is known of seeks, and none are modelled.
const ATA_2004: Parameters = Parameters {
    size_bytes: 4 << 30,
    overhead_ns: 1_000_000_000 / 14_577,
    rate_bytes_per_second: 57_123_364,
    seek_ns: 0,
    seek_track_ns: 0,
    revolutions_per_minute: 0,
    buffer_bytes: 2 << 20,
    queue: 1,
};

const PRESETS: &[(&str, Parameters)] = &[("ata2004", ATA_2004)];

/// The values of the options.
pub(super) struct Settings {
    pub parameters: Parameters,
    pub sector_bytes: u64,
    pub data: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            parameters: ATA_2004,
            sector_bytes: 0,
            data: true,
        }
    }
}

impl Settings {
    /// Reads and checks them.
    pub fn read(arguments: &LayerArguments<'_>) -> Result<Self, SpecError> {
        let settings = arguments.read(&OPTIONS, Self::default())?;
        check(arguments, &settings)?;
        Ok(settings)
    }
}

fn check(arguments: &LayerArguments<'_>, settings: &Settings) -> Result<(), SpecError> {
    let parameters = &settings.parameters;
    let size_bytes = parameters.size_bytes;
    let wrong = if size_bytes == 0 || size_bytes > MAX_LEN_BYTES {
        Some(("size", "a disk has at least one sector and at most 64t"))
    } else if !size_bytes.is_multiple_of(settings.sector_bytes) {
        Some(("size", "the size is no whole number of sectors"))
    } else if parameters.rate_bytes_per_second == 0 {
        Some(("rate", "at this rate no request ever completes"))
    } else if parameters.seek_track_ns > parameters.seek_ns {
        Some((
            "track",
            "a seek to the next track is longer than one over the whole media",
        ))
    } else {
        None
    };
    match wrong {
        Some((key, why)) => Err(arguments.invalid(key, why)),
        None => Ok(()),
    }
}
