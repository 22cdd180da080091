//! The options of `crash`.

use super::faults::{Fault, FaultPlan, Region, Trigger};
use crate::registry::OptionDoc;
use crate::spec::units::probability;
use crate::spec::{Options, SpecError};
use ugeom_stack::ProviderView;

/// The options for the registry.
pub(super) const DOCS: &[OptionDoc] = &[
    doc(
        "log",
        "PATH",
        "log of all writes and barriers, with data (docs/formats/crash_log.md)",
    ),
    doc("seed", "N", "seed of all random decisions [0]"),
    doc("cache", "SIZE", "size of the volatile cache [16m]"),
    doc(
        "tear",
        "512|4096|16384",
        "granularity of torn writes [4096]",
    ),
    doc("from", "SIZE", "start of the range that faults hit [0]"),
    doc(
        "to",
        "SIZE",
        "end of the range that faults hit [the end of the media]",
    ),
    doc(
        "cut",
        "WHEN",
        "the power goes: a rate (0.1%) or request numbers (op17+op40)",
    ),
    doc(
        "lost",
        "WHEN",
        "writes that are acknowledged and never done",
    ),
    doc("misdirected", "WHEN", "writes that go to another place"),
    doc("duplicated", "WHEN", "writes that go to another place, too"),
    doc(
        "stale",
        "WHEN",
        "reads that show what was there before the last write",
    ),
    doc(
        "rot",
        "WHEN",
        "reads that find a changed bit; it stays changed",
    ),
    doc(
        "latent",
        "WHEN",
        "reads that fail until the sector is written again",
    ),
    doc("eio", "WHEN", "reads and writes that fail once"),
    doc(
        "flushfail",
        "WHEN",
        "FLUSHes that fail once; what they should cover is lost at a cut",
    ),
    doc("enospc", "WHEN", "writes that fail with ENOSPC"),
    doc("spike", "WHEN", "requests that take longer, by delay"),
    doc("delay", "TIME", "length of a latency spike [100ms]"),
];

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

/// The size of the volatile cache when nothing is said, bytes.
const CACHE_BYTES: u64 = 16 << 20;
/// The largest that can be asked for, bytes: it is memory.
const CACHE_BYTES_MAX: u64 = 16 << 30;
/// The granularity of torn writes when nothing is said, bytes.
const TEAR_BYTES: u64 = 4096;
/// The length of a latency spike when nothing is said, ns.
const DELAY_NS: u64 = 100_000_000;
/// How many request numbers one option takes.
const OPERATIONS_MAX: usize = 4096;

/// What the options say.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub faults: FaultPlan,
    pub cache_bytes: u64,
    pub tear_bytes: u64,
    pub delay_ns: u64,
    pub sector_bytes: u64,
    pub media_bytes: u64,
    /// An option other than the log was given.
    pub given: bool,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(mut options: Options<'_>, below: &ProviderView) -> Result<Self, SpecError> {
        let media_bytes = below.mediasize_bytes;
        let sector_bytes = u64::from(below.sectorsize_bytes);
        let seed = options.take_u64("seed")?;
        let cache = options.take_size("cache")?;
        let tear = options.take_size("tear")?;
        let from = options.take_size_in_sectors_of(sector_bytes, "from")?;
        let to = options.take_size_in_sectors_of(sector_bytes, "to")?;
        let delay_ns = options.take_duration_ns("delay")?;
        let mut triggers = Vec::new();
        for (fault, name) in Fault::ALL {
            if let Some(trigger) = trigger(&mut options, name)? {
                triggers.push((fault, trigger));
            }
        }
        let region = Region {
            start_bytes: from.unwrap_or(0),
            end_bytes: to.unwrap_or(media_bytes).min(media_bytes),
        };
        if region.start_bytes >= region.end_bytes {
            let key = if from.is_some() { "from" } else { "to" };
            return Err(options.invalid(key, "the range that faults hit is empty"));
        }
        if cache.is_some_and(|bytes| bytes < sector_bytes || bytes > CACHE_BYTES_MAX) {
            let message = "a volatile cache holds a sector at least and 16g at most";
            return Err(options.invalid("cache", message));
        }
        if tear.is_some_and(|bytes| ![512, 4096, 16384].contains(&bytes)) {
            return Err(options.invalid("tear", "writes tear at 512, 4096 or 16384 bytes"));
        }
        let given = seed.is_some() || cache.is_some() || tear.is_some() || !triggers.is_empty();
        options.finish()?;
        Ok(Self {
            faults: FaultPlan {
                triggers,
                region,
                seed: seed.unwrap_or(0),
            },
            cache_bytes: cache.unwrap_or(CACHE_BYTES),
            tear_bytes: tear.unwrap_or(TEAR_BYTES).max(sector_bytes),
            delay_ns: delay_ns.unwrap_or(DELAY_NS),
            sector_bytes,
            media_bytes,
            given,
        })
    }

    /// The facts for `ugeom show`.
    pub fn config(&self) -> Vec<(String, String)> {
        let names = self.faults.triggers.iter().filter_map(|(fault, _)| {
            let mut all = Fault::ALL.iter();
            all.find(|(other, _)| other == fault).map(|(_, name)| *name)
        });
        vec![
            ("Seed".into(), self.faults.seed.to_string()),
            ("CacheBytes".into(), self.cache_bytes.to_string()),
            ("TearBytes".into(), self.tear_bytes.to_string()),
            ("Faults".into(), names.collect::<Vec<_>>().join(" ")),
        ]
    }
}

/// A rate, or the numbers of requests.
fn trigger(options: &mut Options<'_>, name: &'static str) -> Result<Option<Trigger>, SpecError> {
    let Some(text) = options.take_str(name) else {
        return Ok(None);
    };
    if !text.starts_with("op") {
        let rate = probability(text).map_err(|_| {
            let message = "write a rate (0.1%), or numbers of requests (op17+op40)";
            options.invalid(name, message)
        })?;
        return Ok(Some(Trigger::Rate(rate)));
    }
    let number = |word: &str| {
        let number = word.strip_prefix("op")?.parse::<u64>().ok()?;
        (number > 0).then_some(number)
    };
    let numbers: Option<Vec<u64>> = text.split('+').map(number).collect();
    match numbers {
        Some(numbers) if numbers.len() <= OPERATIONS_MAX => Ok(Some(Trigger::Operations(numbers))),
        Some(_) => Err(options.invalid(name, format!("at most {OPERATIONS_MAX} numbers"))),
        None => Err(options.invalid(name, "numbers of requests look like op17+op40, from op1")),
    }
}
