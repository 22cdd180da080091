//! How a stack is to be run: the keys that a stack file and `--set KEY=VALUE` share.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::{nearest, units};

/// How a stack is to be run. Nothing: as the command or the default has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How bios move between layers.
    pub dispatch: Option<Dispatch>,
    /// How long a thread of queued dispatch spins before it sleeps, ns.
    pub spin_ns: Option<u64>,
    /// What is counted.
    pub statistics: Option<Statistics>,
    /// Of how many requests the time of one is taken, at least 1.
    pub sample: Option<u32>,
    /// Whether classes may taste the providers.
    pub taste: Option<bool>,
    /// How a request finds its device.
    pub registry: Option<Registry>,
    /// Where bios come from.
    pub pools: Option<Pools>,
    /// What becomes of layers that only move requests.
    pub slicers: Option<Slicers>,
}

/// How bios move between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dispatch {
    /// In the thread of the caller.
    Direct,
    /// Through the threads `g_down` and `g_up`.
    Queued,
}

/// What is counted for each provider and consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// Nothing.
    Off,
    /// Operations, bytes, errors, and requests in flight.
    Counts,
    /// Counts, and the time of sampled requests.
    Time,
}

/// How a request finds its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// Without a lock.
    LockFree,
    /// Under one lock, taken when a request enters and when it is home.
    Locked,
}

/// Where bios come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pools {
    /// From a pool of the thread's own.
    PerCore,
    /// From one pool of all threads, under one lock.
    Shared,
}

/// What becomes of layers that only move requests to another offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slicers {
    /// The stack makes their step.
    Passed,
    /// Each is asked about each request.
    Asked,
}

/// The keys that there are.
pub const SETTINGS: &[&str] = &[
    "dispatch",
    "spin",
    "statistics",
    "sample",
    "taste",
    "registry",
    "pools",
    "slicers",
];

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
    /// In words: there is no such key, or the value is none of its values.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!(
                "write KEY=VALUE; the keys are {}",
                SETTINGS.join(", ")
            ));
        };
        let mut settings = Settings::default();
        match key {
            "dispatch" => settings.dispatch = Some(word(value)?),
            "spin" => settings.spin_ns = Some(spin_ns(value)?),
            "statistics" => settings.statistics = Some(word(value)?),
            "sample" => settings.sample = Some(sample(value)?),
            "taste" => settings.taste = Some(units::truth(value).map_err(in_words)?),
            "registry" => settings.registry = Some(word(value)?),
            "pools" => settings.pools = Some(word(value)?),
            "slicers" => settings.slicers = Some(word(value)?),
            _ => {
                let help = nearest(key, SETTINGS.iter().copied()).map_or_else(
                    || format!("the keys are {}", SETTINGS.join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                return Err(format!("there is no such setting; {help}"));
            }
        }
        Ok(settings)
    }
}

fn word<'de, T: Deserialize<'de>>(value: &'de str) -> Result<T, String> {
    let reader: StrDeserializer<'de, Error> = value.into_deserializer();
    T::deserialize(reader).map_err(|error| error.to_string())
}

fn in_words(error: units::UnitError) -> String {
    match error.help() {
        Some(help) => format!("{error}; write {help}"),
        None => error.to_string(),
    }
}

fn spin_ns(value: &str) -> Result<u64, String> {
    units::duration_ns(value).map_err(in_words)
}

fn sample(value: &str) -> Result<u32, String> {
    let number = units::whole_number(value).map_err(in_words)?;
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("one in {number} requests: write 1 to {}", u32::MAX)),
    }
}

/// `spin = "20us"` in a stack file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Spin(pub u64);

impl TryFrom<String> for Spin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        spin_ns(&text).map(Self)
    }
}
