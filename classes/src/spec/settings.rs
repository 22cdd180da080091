//! How a stack is to be run: the keys that a stack file and `--set KEY=VALUE` share.

use super::declared::OptionDefault::{Depends, Value};
use super::declared::{OptionTable, ValueError, option};
use super::values::{duration_ns, number_in};
use crate::{set_choice, set_field};
use ugeom_measure::units::truth;
use ugeom_stack::{Pools, Registry, Slicers};

/// How a stack is to be run. Nothing: as the command or the default has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How bios move between layers.
    pub dispatch: Option<DispatchMode>,
    /// How long a thread of queued dispatch polls before it sleeps, ns.
    pub spin_ns: Option<u64>,
    /// Whether requests are counted, and whether some of them are timed.
    pub statistics: Option<StatisticsMode>,
    /// One request in this many is timed, at least 1.
    pub sample: Option<u32>,
    /// Whether classes may taste the providers.
    pub taste: Option<bool>,
    /// How a request finds its device.
    pub registry: Option<Registry>,
    /// Where bios come from.
    pub pools: Option<Pools>,
    /// Whether layers that only shift the offset are fused.
    pub slicers: Option<Slicers>,
}

/// How bios move between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchMode {
    /// In the thread of the caller.
    Direct,
    /// Through the threads `g_down` and `g_up`.
    Queued,
}

/// The counters of each provider and consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatisticsMode {
    /// No request is counted or timed.
    Off,
    /// Operations, bytes, errors, and requests in flight.
    Counts,
    /// Counts, and the time of sampled requests.
    Time,
}

/// How long `g_down` and `g_up` poll at most: longer is a mistake in the unit.
const SPIN_NS_MAX: u64 = 1_000_000_000;

/// The settings of a stack: names, defaults and help.
#[rustfmt::skip]
pub const SETTINGS: OptionTable<Settings> = OptionTable(&[
    option("dispatch", "direct|queued", Value("direct"),
        "requests run in the caller's thread, or through the threads g_down and g_up",
        set_choice!(dispatch = [
            ("direct", DispatchMode::Direct), ("queued", DispatchMode::Queued),
        ])),
    option("spin", "TIME", Value("20us"),
        "with dispatch=queued: time that g_down and g_up poll before they sleep, at most 1s",
        set_field!(spin_ns = spin_ns)),
    option("statistics", "off|counts|time", Value("counts"),
        "level of the statistics of each provider and consumer",
        set_choice!(statistics = [
            ("off", StatisticsMode::Off), ("counts", StatisticsMode::Counts),
            ("time", StatisticsMode::Time),
        ])),
    option("sample", "N", Value("64"), "with statistics=time: time one request in N",
        set_field!(it, text => sample = Some(number_in(1..=u32::MAX.into(), text)? as u32))),
    option("taste", "true|false", Depends("true, false with --no-taste"),
        "look for partition tables on every provider", set_field!(taste = truth)),
    option("registry", "lockfree|locked", Value("lockfree"),
        "how a request finds its device; locked is for comparison",
        set_choice!(registry = [("lockfree", Registry::LockFree), ("locked", Registry::Locked)])),
    option("pools", "per-core|shared", Value("per-core"),
        "pools for the memory of requests; shared is for comparison",
        set_choice!(pools = [("per-core", Pools::PerCore), ("shared", Pools::Shared)])),
    option("slicers", "fused|called", Value("fused"),
        "layers that only shift the offset: fused into one step, or each called",
        set_choice!(slicers = [("fused", Slicers::Fused), ("called", Slicers::Called)])),
]);

fn spin_ns(text: &str) -> Result<u64, ValueError> {
    match duration_ns(text)? {
        ns if ns > SPIN_NS_MAX => Err(ValueError::new(
            "this is more than 1s; a bare number counts seconds",
        )),
        ns => Ok(ns),
    }
}

impl Settings {
    /// These settings, completed by those of `below`.
    #[must_use]
    pub fn over(self, below: Settings) -> Settings {
        Settings {
            dispatch: self.dispatch.or(below.dispatch),
            spin_ns: self.spin_ns.or(below.spin_ns),
            statistics: self.statistics.or(below.statistics),
            sample: self.sample.or(below.sample),
            taste: self.taste.or(below.taste),
            registry: self.registry.or(below.registry),
            pools: self.pools.or(below.pools),
            slicers: self.slicers.or(below.slicers),
        }
    }

    /// Reads one setting, `dispatch=queued`, as the command line has it.
    ///
    /// # Errors
    /// There is no such key, or the value is refused.
    pub fn parse(text: &str) -> Result<Settings, ValueError> {
        let Some((key, value)) = text.split_once('=') else {
            let keys = SETTINGS.names().join(", ");
            return Err(
                ValueError::new("this is not KEY=VALUE").with_help(format!("the keys are {keys}"))
            );
        };
        let mut settings = Settings::default();
        SETTINGS.set(&mut settings, key, value)?;
        Ok(settings)
    }
}
