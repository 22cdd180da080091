//! The options of `nop` and gnop's checks of them (`g_nop_create`).

use super::{Faults, Window, errors};
use crate::set_field;
use crate::spec::OptionDefault::{Absent, Depends, Value};
use crate::spec::values::{SECTOR_BYTES_MAX, duration_ns, size, size_in_sectors_of, text};
use crate::spec::{LayerArguments, OptionTable, SpecError, ValueError, option};
use ugeom_measure::units::{probability, truth, whole_number};
use ugeom_stack::{Errno, ProviderView};

/// The options as they are written.
#[derive(Default)]
pub(super) struct Wanted {
    /// Of the provider below: `s` in offset and size counts these.
    below_sector_bytes: u64,
    offset_bytes: u64,
    size_bytes: Option<u64>,
    sector_bytes: Option<u64>,
    stripesize_bytes: u64,
    stripeoffset_bytes: u64,
    physpath: Option<String>,
    hook: bool,
    faults: Faults,
    read_delay: Option<f64>,
    write_delay: Option<f64>,
}

/// The options of the class.
#[rustfmt::skip]
pub(super) const OPTIONS: OptionTable<Wanted> = OptionTable(&[
    option("offset", "SIZE", Value("0"), "offset of the media in the provider below",
        set_field!(it, text => offset_bytes = size_in_sectors_of(it.below_sector_bytes, text)?)),
    option("size", "SIZE", Depends("everything after the offset"), "size of the media",
        set_field!(it, text =>
            size_bytes = Some(size_in_sectors_of(it.below_sector_bytes, text)?))),
    option("sectorsize", "SIZE", Depends("the one below"),
        "size of a sector, a multiple of the one below, at most 1m",
        set_field!(sector_bytes = size)),
    option("stripesize", "SIZE", Value("0"), "size of the stripes that the provider reports",
        set_field!(stripesize_bytes = size)),
    option("stripeoffset", "SIZE", Value("0"), "offset of the first stripe",
        set_field!(stripeoffset_bytes = size)),
    option("physpath", "PATH", Depends("the one below"),
        "physical path that the provider reports; partitions append /p1 or the like",
        set_field!(physpath = text)),
    option("rfail", "PROBABILITY", Value("0"), "share of reads that fail",
        set_field!(faults.read_fail = probability)),
    option("wfail", "PROBABILITY", Value("0"), "share of writes that fail",
        set_field!(faults.write_fail = probability)),
    option("error", "ERRNO", Value("EIO"), "error of failed requests, a name or a number",
        set_field!(faults.error = error)),
    option("count_until_fail", "N", Absent, "reads and writes that pass before all fail",
        set_field!(faults.count_until_fail = whole_number)),
    option("delay", "TIME", Value("1ms"),
        "length of a delay; given alone, all reads and writes are delayed",
        set_field!(faults.delay_ns = duration_ns)),
    option("rdelay", "PROBABILITY", Depends("100% with delay, else 0"),
        "share of reads that are delayed", set_field!(read_delay = probability)),
    option("wdelay", "PROBABILITY", Depends("100% with delay, else 0"),
        "share of writes that are delayed", set_field!(write_delay = probability)),
    option("seed", "N", Value("0"),
        "seed of the random decisions; the same seed gives the same decisions",
        set_field!(faults.seed = whole_number)),
    option("hook", "0|1", Value("0"), "register a completion hook that does nothing",
        set_field!(hook = truth)),
]);

/// The options, checked against the provider below.
pub(super) struct Settings {
    pub window: Window,
    pub stripesize_bytes: u64,
    pub stripeoffset_bytes: u64,
    pub physpath: Option<String>,
    pub hook: bool,
    pub faults: Option<Faults>,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(arguments: &LayerArguments<'_>, below: &ProviderView) -> Result<Self, SpecError> {
        let sector_bytes = u64::from(below.sectorsize_bytes);
        let start = Wanted {
            below_sector_bytes: sector_bytes,
            ..Wanted::default()
        };
        let wanted = arguments.read(&OPTIONS, start)?;
        let window = window(arguments, &wanted, below)?;
        let (stripesize_bytes, stripeoffset_bytes) =
            (wanted.stripesize_bytes, wanted.stripeoffset_bytes);
        for (key, value) in [
            ("stripesize", stripesize_bytes),
            ("stripeoffset", stripeoffset_bytes),
        ] {
            whole_sectors(arguments, key, value, sector_bytes)?;
        }
        if stripeoffset_bytes > 0 && stripeoffset_bytes >= stripesize_bytes {
            let message = "the stripe offset lies beyond the first stripe";
            return Err(arguments.invalid("stripeoffset", message));
        }
        let faults = faults(arguments, &wanted)?;
        Ok(Self {
            window,
            stripesize_bytes,
            stripeoffset_bytes,
            physpath: wanted.physpath,
            hook: wanted.hook,
            faults: faults.any().then_some(faults),
        })
    }
}

fn whole_sectors(
    arguments: &LayerArguments<'_>,
    key: &str,
    value: u64,
    sector_bytes: u64,
) -> Result<(), SpecError> {
    if value.is_multiple_of(sector_bytes) {
        return Ok(());
    }
    let message = format!("{value} bytes are no whole number of {sector_bytes}-byte sectors");
    Err(arguments.invalid(key, message))
}

fn window(
    arguments: &LayerArguments<'_>,
    wanted: &Wanted,
    below: &ProviderView,
) -> Result<Window, SpecError> {
    let (media_bytes, sector_bytes) = (below.mediasize_bytes, wanted.below_sector_bytes);
    let (offset_bytes, size) = (wanted.offset_bytes, wanted.size_bytes);
    let sectorsize_bytes = wanted.sector_bytes.unwrap_or(sector_bytes);
    let name = &below.name;
    whole_sectors(arguments, "offset", offset_bytes, sector_bytes)?;
    if offset_bytes >= media_bytes {
        let message = format!("{name} ends at {media_bytes}, nothing is left after {offset_bytes}");
        return Err(arguments.invalid("offset", message));
    }
    let room_bytes = media_bytes - offset_bytes;
    if let Some(size_bytes) = size {
        whole_sectors(arguments, "size", size_bytes, sector_bytes)?;
        let problem = match size_bytes {
            0 => Some("a device needs at least one sector".to_owned()),
            more if more > room_bytes => Some(format!(
                "{name} has {room_bytes} bytes after offset {offset_bytes}"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(arguments.invalid("size", problem));
        }
    }
    if sectorsize_bytes == 0
        || !sectorsize_bytes.is_multiple_of(sector_bytes)
        || sectorsize_bytes > SECTOR_BYTES_MAX
    {
        let message = format!("a sector here is a multiple of {sector_bytes} bytes, at most 1m");
        return Err(arguments.invalid("sectorsize", message));
    }
    let window = Window {
        offset_bytes,
        explicit_bytes: size.unwrap_or(0),
        sectorsize_bytes: sectorsize_bytes as u32,
    };
    if window.size_bytes(media_bytes) == 0 {
        let message = format!("the media is smaller than one sector of {sectorsize_bytes} bytes");
        return Err(arguments.invalid("sectorsize", message));
    }
    Ok(window)
}

fn faults(arguments: &LayerArguments<'_>, wanted: &Wanted) -> Result<Faults, SpecError> {
    let (read_delay, write_delay) = (wanted.read_delay, wanted.write_delay);
    let always = arguments.is_given("delay") && read_delay.is_none() && write_delay.is_none();
    let otherwise = f64::from(u8::from(always));
    let faults = Faults {
        read_delay: read_delay.unwrap_or(otherwise),
        write_delay: write_delay.unwrap_or(otherwise),
        ..wanted.faults
    };
    let certain = faults.read_fail >= 1.0 || faults.write_fail >= 1.0;
    if faults.error == Errno::NOMEM && (certain || faults.count_until_fail.is_some()) {
        let message = "requests that fail with ENOMEM are tried again, and these would never end";
        return Err(arguments.invalid("error", message));
    }
    Ok(faults)
}

fn error(text: &str) -> Result<Errno, ValueError> {
    errors::parse(text).ok_or_else(|| {
        let error = ValueError::new("this is no error");
        error.with_help(format!("write a number or one of: {}", errors::names()))
    })
}
