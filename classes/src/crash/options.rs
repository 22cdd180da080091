//! The options of `crash`.

use super::faults::{Fault, FaultPlan, Region, Trigger};
use crate::spec::OptionDefault::{Absent, Depends, Value};
use crate::spec::values::{self, duration_ns, size, size_in_sectors_of};
use crate::spec::{LayerArguments, OptionEntry, OptionTable, SpecError, ValueError, option};
use crate::{set_choice, set_field};
use ugeom_measure::units::{probability, whole_number};
use ugeom_stack::{Fact, ProviderView};

/// The options as they are written.
#[derive(Default)]
pub(super) struct Wanted {
    pub log: Option<String>,
    /// Of the provider below: `s` in the range of faults counts these.
    below_sector_bytes: u64,
    seed: u64,
    cache_bytes: u64,
    tear_bytes: u64,
    from_bytes: u64,
    to_bytes: Option<u64>,
    delay_ns: u64,
    triggers: Vec<(Fault, Trigger)>,
}

/// Declares the option of a fault.
macro_rules! fault {
    ($name:literal, $fault:ident, $help:literal) => {
        option($name, "WHEN", Absent, $help, |it, text| {
            it.triggers.push((Fault::$fault, trigger(text)?));
            Ok(())
        })
    };
}

#[rustfmt::skip]
const ENTRIES: &[OptionEntry<Wanted>] = &[
    option("log", "PATH", Absent,
        "log of all writes and barriers, with data (docs/formats/crash_log.md)",
        set_field!(log = values::text)),
    option("seed", "N", Value("0"), "seed of all random decisions",
        set_field!(seed = whole_number)),
    option("cache", "SIZE", Value("16m"),
        "size of the volatile cache; beyond it the oldest write goes to the media",
        set_field!(cache_bytes = size)),
    option("tear", "512|4096|16384", Value("4096"), "granularity of torn writes, bytes",
        set_choice!(tear_bytes = [("512", 512_u64), ("4096", 4096), ("16384", 16_384)])),
    option("from", "SIZE", Value("0"), "start of the range of faults",
        set_field!(it, text => from_bytes = size_in_sectors_of(it.below_sector_bytes, text)?)),
    option("to", "SIZE", Depends("the end of the media"), "end of the range of faults",
        set_field!(it, text => to_bytes = Some(size_in_sectors_of(it.below_sector_bytes, text)?))),
    // In the order of `Fault::ALL`, in which they are tried.
    fault!("cut", Cut, "power cut: a rate (0.1%) or request numbers (op17+op40)"),
    fault!("spike", Spike, "requests that take longer, by delay"),
    fault!("eio", Eio, "reads and writes that fail once"),
    fault!("enospc", NoSpace, "writes that fail with ENOSPC"),
    fault!("flushfail", FlushFail,
        "FLUSHes that fail once; the writes that they should cover are lost at a cut"),
    fault!("lost", Lost, "writes that are acknowledged and never done"),
    fault!("misdirected", Misdirected, "writes that go to another offset"),
    fault!("duplicated", Duplicated, "writes that also go to another offset"),
    fault!("stale", Stale, "reads that return the data from before the last write"),
    fault!("rot", Rot, "reads that find a changed bit; it stays changed"),
    fault!("latent", Latent, "reads that fail until the sector is written again"),
    option("delay", "TIME", Value("100ms"), "length of a latency spike",
        set_field!(delay_ns = duration_ns)),
];

/// The options of the class.
pub(super) const OPTIONS: OptionTable<Wanted> = OptionTable(ENTRIES);

/// The largest volatile cache, bytes: it is memory.
const CACHE_BYTES_MAX: u64 = 16 << 30;
/// How many request numbers one option takes.
const OPERATIONS_MAX: usize = 4096;

/// The options, checked against the provider below.
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
    /// Reads and checks them; also gives the path of the log.
    pub fn read(
        arguments: &LayerArguments<'_>,
        below: &ProviderView,
    ) -> Result<(Self, Option<String>), SpecError> {
        let media_bytes = below.mediasize_bytes;
        let sector_bytes = u64::from(below.sectorsize_bytes);
        let start = Wanted {
            below_sector_bytes: sector_bytes,
            ..Wanted::default()
        };
        let wanted = arguments.read(&OPTIONS, start)?;
        let region = Region {
            start_bytes: wanted.from_bytes,
            end_bytes: wanted.to_bytes.unwrap_or(media_bytes).min(media_bytes),
        };
        if region.start_bytes >= region.end_bytes {
            let given = arguments.is_given("from");
            let key = if given { "from" } else { "to" };
            return Err(arguments.invalid(key, "the range of faults is empty"));
        }
        if wanted.cache_bytes < sector_bytes || wanted.cache_bytes > CACHE_BYTES_MAX {
            let message = "a volatile cache holds a sector at least and 16g at most";
            return Err(arguments.invalid("cache", message));
        }
        let of_the_model = ["seed", "cache", "tear"];
        let given = of_the_model.iter().any(|key| arguments.is_given(key));
        let settings = Self {
            given: given || !wanted.triggers.is_empty(),
            faults: FaultPlan {
                triggers: wanted.triggers,
                region,
                seed: wanted.seed,
            },
            cache_bytes: wanted.cache_bytes,
            tear_bytes: wanted.tear_bytes.max(sector_bytes),
            delay_ns: wanted.delay_ns,
            sector_bytes,
            media_bytes,
        };
        Ok((settings, wanted.log))
    }

    /// The facts for `ugeom show`.
    pub fn config(&self) -> Vec<Fact> {
        let names = self.faults.triggers.iter().filter_map(|(fault, _)| {
            let mut all = Fault::ALL.iter();
            all.find(|(other, _)| other == fault).map(|(_, name)| *name)
        });
        vec![
            ("Seed", self.faults.seed.to_string()),
            ("CacheBytes", self.cache_bytes.to_string()),
            ("TearBytes", self.tear_bytes.to_string()),
            ("Faults", names.collect::<Vec<_>>().join(" ")),
        ]
    }
}

/// A rate, or the numbers of requests.
fn trigger(text: &str) -> Result<Trigger, ValueError> {
    if !text.starts_with("op") {
        let wrong = |_| ValueError::new("write a rate (0.1%), or numbers of requests (op17+op40)");
        return probability(text).map(Trigger::Rate).map_err(wrong);
    }
    let number = |word: &str| {
        let number = word.strip_prefix("op")?.parse::<u64>().ok()?;
        (number > 0).then_some(number)
    };
    let numbers: Option<Vec<u64>> = text.split('+').map(number).collect();
    match numbers {
        Some(numbers) if numbers.len() <= OPERATIONS_MAX => Ok(Trigger::Operations(numbers)),
        Some(_) => Err(ValueError::new(format!("at most {OPERATIONS_MAX} numbers"))),
        None => Err(ValueError::new(
            "numbers of requests look like op17+op40, from op1",
        )),
    }
}
