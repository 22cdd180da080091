//! The options of `nop` and gnop's checks of them (`g_nop_create`).

use super::{Faults, Window, errors};
use crate::md::SECTORSIZE_BYTES_MAX;
use crate::registry::OptionDoc;
use crate::spec::{Options, SpecError};
use ugeom_stack::{Errno, ProviderView};

/// The options for the registry.
pub(super) const DOCS: &[OptionDoc] = &[
    doc("offset", "SIZE", "where in the device below it begins [0]"),
    doc("size", "SIZE", "size of the media [all behind the offset]"),
    doc(
        "sectorsize",
        "SIZE",
        "size of a sector, a multiple of the one below [the same]",
    ),
    doc(
        "stripesize",
        "SIZE",
        "size of a stripe that it claims to have [0]",
    ),
    doc("stripeoffset", "SIZE", "where the first stripe begins [0]"),
    doc("rfail", "PROBABILITY", "reads that fail [0]"),
    doc("wfail", "PROBABILITY", "writes that fail [0]"),
    doc(
        "error",
        "ERRNO",
        "what they fail with, a name or a number [EIO]",
    ),
    doc(
        "count_until_fail",
        "N",
        "reads and writes that pass before all fail",
    ),
    doc(
        "delay",
        "TIME",
        "how long a delay is; alone, all reads and writes wait [1ms]",
    ),
    doc("rdelay", "PROBABILITY", "reads that wait"),
    doc("wdelay", "PROBABILITY", "writes that wait"),
    doc(
        "seed",
        "N",
        "where random decisions begin; the same seed, the same decisions [0]",
    ),
    doc(
        "hook",
        "0|1",
        "ask to see requests come back, and do nothing then [0]",
    ),
];

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

/// What the options say.
pub(super) struct Settings {
    pub window: Window,
    pub stripesize_bytes: u64,
    pub stripeoffset_bytes: u64,
    pub hook: bool,
    pub faults: Option<Faults>,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(mut options: Options<'_>, below: &ProviderView) -> Result<Self, SpecError> {
        let window = window(&mut options, below)?;
        let sector_bytes = u64::from(below.sectorsize_bytes);
        let stripesize_bytes = options.take_size("stripesize")?.unwrap_or(0);
        let stripeoffset_bytes = options.take_size("stripeoffset")?.unwrap_or(0);
        for (key, value) in [
            ("stripesize", stripesize_bytes),
            ("stripeoffset", stripeoffset_bytes),
        ] {
            whole_sectors(&options, key, value, sector_bytes)?;
        }
        if stripeoffset_bytes > 0 && stripeoffset_bytes >= stripesize_bytes {
            let message = "the stripe offset lies beyond the first stripe";
            return Err(options.invalid("stripeoffset", message));
        }
        let hook = options.take_bool("hook")?.unwrap_or(false);
        let faults = faults(&mut options)?;
        let faults = faults.any().then_some(faults);
        options.finish()?;
        Ok(Self {
            window,
            stripesize_bytes,
            stripeoffset_bytes,
            hook,
            faults,
        })
    }
}

fn whole_sectors(
    options: &Options<'_>,
    key: &str,
    value: u64,
    sector_bytes: u64,
) -> Result<(), SpecError> {
    if value.is_multiple_of(sector_bytes) {
        return Ok(());
    }
    let message = format!("{value} bytes are no whole number of {sector_bytes}-byte sectors");
    Err(options.invalid(key, message))
}

fn window(options: &mut Options<'_>, below: &ProviderView) -> Result<Window, SpecError> {
    let (media_bytes, sector_bytes) = (below.mediasize_bytes, u64::from(below.sectorsize_bytes));
    let offset_bytes = options
        .take_size_in_sectors_of(sector_bytes, "offset")?
        .unwrap_or(0);
    let size = options.take_size_in_sectors_of(sector_bytes, "size")?;
    let sectorsize_bytes = options.take_size("sectorsize")?.unwrap_or(sector_bytes);
    let name = &below.name;
    whole_sectors(options, "offset", offset_bytes, sector_bytes)?;
    if offset_bytes >= media_bytes {
        let message =
            format!("{name} ends at {media_bytes}, nothing is left behind {offset_bytes}");
        return Err(options.invalid("offset", message));
    }
    let room_bytes = media_bytes - offset_bytes;
    if let Some(size_bytes) = size {
        whole_sectors(options, "size", size_bytes, sector_bytes)?;
        let problem = match size_bytes {
            0 => Some("a device needs at least one sector".to_owned()),
            more if more > room_bytes => Some(format!(
                "{name} has {room_bytes} bytes behind offset {offset_bytes}"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(options.invalid("size", problem));
        }
    }
    if sectorsize_bytes == 0
        || !sectorsize_bytes.is_multiple_of(sector_bytes)
        || sectorsize_bytes > SECTORSIZE_BYTES_MAX
    {
        let message = format!("a sector here is a multiple of {sector_bytes} bytes, at most 1m");
        return Err(options.invalid("sectorsize", message));
    }
    let window = Window {
        offset_bytes,
        explicit_bytes: size.unwrap_or(0),
        sectorsize_bytes: sectorsize_bytes as u32,
    };
    if window.size_bytes(media_bytes) == 0 {
        let message = format!("the media is smaller than one sector of {sectorsize_bytes} bytes");
        return Err(options.invalid("sectorsize", message));
    }
    Ok(window)
}

fn faults(options: &mut Options<'_>) -> Result<Faults, SpecError> {
    let delay_ns = options.take_duration_ns("delay")?;
    let read_delay = options.take_probability("rdelay")?;
    let write_delay = options.take_probability("wdelay")?;
    let always = delay_ns.is_some() && read_delay.is_none() && write_delay.is_none();
    let otherwise = f64::from(u8::from(always));
    let usual = Faults::default();
    let faults = Faults {
        read_fail: options.take_probability("rfail")?.unwrap_or(0.0),
        write_fail: options.take_probability("wfail")?.unwrap_or(0.0),
        error: error(options)?.unwrap_or(usual.error),
        read_delay: read_delay.unwrap_or(otherwise),
        write_delay: write_delay.unwrap_or(otherwise),
        delay_ns: delay_ns.unwrap_or(usual.delay_ns),
        count_until_fail: options.take_u64("count_until_fail")?,
        seed: options.take_u64("seed")?.unwrap_or(0),
    };
    let certain = faults.read_fail >= 1.0 || faults.write_fail >= 1.0;
    if faults.error == Errno::NOMEM && (certain || faults.count_until_fail.is_some()) {
        let message = "requests that fail with ENOMEM are tried again, and these would never end";
        return Err(options.invalid("error", message));
    }
    Ok(faults)
}

fn error(options: &mut Options<'_>) -> Result<Option<Errno>, SpecError> {
    let Some(text) = options.take_str("error") else {
        return Ok(None);
    };
    errors::parse(text).map(Some).ok_or_else(|| {
        let error = options.invalid("error", "this is no error");
        error.with_help(format!("write a number or one of: {}", errors::names()))
    })
}
