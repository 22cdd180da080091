//! The options of `cache` and their checks.

use super::index::{Index, hash::Hash, splay::Splay};
use crate::registry::OptionDoc;
use crate::spec::{Options, SpecError, units};

/// The options for the registry.
pub(super) const DOCS: &[OptionDoc] = &[
    doc("size", "SIZE", "memory for blocks [64m]"),
    doc(
        "block",
        "SIZE",
        "size of a block, a power of two from 4k to 64k [16k]",
    ),
    doc(
        "index",
        "hash|splay",
        "how a block is found; splay is there to compare [hash]",
    ),
    doc(
        "readahead",
        "SIZE|off",
        "the most that is read ahead of a sequential reader [512k]",
    ),
    doc(
        "write",
        "through|back",
        "when a write is done: below, or in memory, to be written later [through]",
    ),
    doc(
        "dirty",
        "SIZE|PERCENT",
        "with write=back, memory for what is not below yet [50%]",
    ),
    doc(
        "idle",
        "TIME",
        "with write=back, how long nobody writes before it gets below [100ms]",
    ),
    doc(
        "age",
        "TIME",
        "with write=back, after how long it gets below at the latest [5s]",
    ),
];

/// The names of the ways to write.
pub(super) const THROUGH: &str = "through";
pub(super) const BACK: &str = "back";

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

/// The part of the buffers that may be dirty when nothing is said.
const DIRTY_SHARE: f64 = 0.5;
/// How long the flusher leaves things alone after the last write, ns.
const IDLE_NS: u64 = 100_000_000;
/// How long something is dirty at the most when writes never pause, ns.
const AGE_NS: u64 = 5_000_000_000;
const SIZE_BYTES: u64 = 64 << 20;
const AHEAD_BYTES: u64 = 512 << 10;
const BLOCK_BYTES: u64 = 16 << 10;
const BLOCK_BYTES_MIN: u64 = 4 << 10;
const BLOCK_BYTES_MAX: u64 = 64 << 10;
/// Buffers have numbers of 32 bits, and the index wants room to grow to a power of two.
const BUFFERS_MAX: u64 = 1 << 30;

/// Which index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`struct@Hash`].
    Hash,
    /// [`Splay`].
    Splay,
}

/// When a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// When it is done below.
    Through,
    /// When it is in memory.
    Back {
        /// How many buffers may be dirty.
        limit: u32,
        /// How long nobody writes before the flusher begins, ns.
        idle_ns: u64,
        /// How long it waits at the most, ns.
        age_ns: u64,
    },
}

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Buffers, at least one.
    pub buffers: u32,
    /// The size of a block, bytes: a power of two, and a multiple of the sector below.
    pub block_bytes: u64,
    /// Which index.
    pub index: Kind,
    /// The longest window of read-ahead, blocks; 0 for none.
    pub ahead_blocks: u64,
    /// When a write is done.
    pub writing: Writing,
}

/// What the options are held against.
#[derive(Clone, Copy, Debug)]
pub struct Below<'a> {
    /// The name of the provider below.
    pub name: &'a str,
    /// The size of its sectors, bytes.
    pub sector_bytes: u64,
}

impl Settings {
    /// Reads and checks them. The machine has `memory_bytes` of memory.
    ///
    /// # Errors
    /// What is wrong with the first option that cannot be, with the place in the text.
    pub fn read(
        mut options: Options<'_>,
        below: Below<'_>,
        memory_bytes: u64,
    ) -> Result<Self, SpecError> {
        let block_bytes = block_size(&mut options, below)?;
        let size_bytes = options.take_size("size")?.unwrap_or(SIZE_BYTES);
        let buffers = size_bytes / block_bytes;
        let problem = if buffers == 0 {
            Some(format!(
                "{size_bytes} bytes do not hold one block of {block_bytes}"
            ))
        } else if size_bytes > memory_bytes {
            Some(format!(
                "this machine has {memory_bytes} bytes of memory, less than {size_bytes}"
            ))
        } else if buffers > BUFFERS_MAX {
            Some(format!("a cache has at most {BUFFERS_MAX} blocks"))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(options.invalid("size", problem));
        }
        let kinds = [(Hash::NAME, Kind::Hash), (Splay::NAME, Kind::Splay)];
        let index = options.take_choice(&kinds, "index")?.unwrap_or(Kind::Hash);
        let ahead_blocks = ahead(&mut options)? / block_bytes;
        let writing = writing(&mut options, buffers as u32, block_bytes)?;
        options.finish()?;
        Ok(Self {
            buffers: buffers as u32,
            block_bytes,
            index,
            ahead_blocks,
            writing,
        })
    }
}

fn ahead(options: &mut Options<'_>) -> Result<u64, SpecError> {
    match options.take_str("readahead") {
        None => Ok(AHEAD_BYTES),
        Some("off") => Ok(0),
        Some(text) => units::size_bytes(text, units::SECTOR_BYTES)
            .map_err(|error| options.invalid("readahead", error.to_string())),
    }
}

fn writing(
    options: &mut Options<'_>,
    buffers: u32,
    block_bytes: u64,
) -> Result<Writing, SpecError> {
    let backs = options.take_choice(&[(THROUGH, false), (BACK, true)], "write")?;
    let dirty = options.take_str("dirty");
    let idle_ns = options.take_duration_ns("idle")?;
    let age_ns = options.take_duration_ns("age")?;
    if !backs.unwrap_or(false) {
        let given = [
            ("dirty", dirty.is_some()),
            ("idle", idle_ns.is_some()),
            ("age", age_ns.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(Writing::Through),
            Some((key, _)) => Err(options.invalid(key, format!("{key} goes with write=back"))),
        };
    }
    let share = |share: f64| (share * f64::from(buffers)) as u64;
    let limit = match dirty {
        None => share(DIRTY_SHARE).max(1),
        Some(text) if text.ends_with('%') => {
            share(options.take_probability("dirty")?.unwrap_or(DIRTY_SHARE))
        }
        Some(_) => options.take_size("dirty")?.unwrap_or(0) / block_bytes,
    };
    let problem = if limit == 0 {
        format!("there must be room for one dirty block of {block_bytes} bytes")
    } else if limit > u64::from(buffers) {
        let size_bytes = u64::from(buffers) * block_bytes;
        format!("the whole cache has {size_bytes} bytes")
    } else {
        let limit = limit as u32;
        return Ok(Writing::Back {
            limit,
            idle_ns: idle_ns.unwrap_or(IDLE_NS),
            age_ns: age_ns.unwrap_or(AGE_NS),
        });
    };
    Err(options.invalid("dirty", problem))
}

fn block_size(options: &mut Options<'_>, below: Below<'_>) -> Result<u64, SpecError> {
    let block_bytes = options.take_size("block")?.unwrap_or(BLOCK_BYTES);
    let Below { name, sector_bytes } = below;
    let sizes = BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX;
    let problem = if !block_bytes.is_power_of_two() || !sizes.contains(&block_bytes) {
        Some("a block size is a power of two from 4k to 64k".to_owned())
    } else if block_bytes < sector_bytes {
        Some(format!(
            "a block of {block_bytes} bytes is smaller than a sector of {name}, {sector_bytes}"
        ))
    } else if !block_bytes.is_multiple_of(sector_bytes) {
        Some(format!(
            "{block_bytes} bytes are no whole number of {name}'s sectors of {sector_bytes}"
        ))
    } else {
        None
    };
    match problem {
        Some(problem) => Err(options.invalid("block", problem)),
        None => Ok(block_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse;
    use proptest::prelude::*;

    const MEMORY_BYTES: u64 = 1 << 30;

    fn read(text: &str, sector_bytes: u64) -> Result<Settings, String> {
        let target = parse(text, &["md", "cache"]).map_err(|error| error.to_string())?;
        let layer = target.layers.last().ok_or("no layer")?;
        let options = layer.options(&["size"]);
        let options = options.map_err(|error| error.to_string())?;
        let below = Below {
            name: "md0",
            sector_bytes,
        };
        Settings::read(options, below, MEMORY_BYTES).map_err(|error| error.to_string())
    }

    /// Whatever was accepted can be built.
    fn is_sound(settings: &Settings, sector_bytes: u64) {
        let Settings {
            buffers,
            block_bytes,
            ..
        } = *settings;
        assert!(buffers > 0 && u64::from(buffers) * block_bytes <= MEMORY_BYTES);
        assert!(block_bytes.is_power_of_two() && block_bytes.is_multiple_of(sector_bytes));
        assert!((BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes));
        if let Writing::Back { limit, .. } = settings.writing {
            assert!((1..=buffers).contains(&limit), "{limit} of {buffers}");
        }
    }

    fn option() -> impl Strategy<Value = String> {
        let size = prop_oneof![
            "[0-9]{1,6}[kmgs]?",
            "0|4k|16k|64k|12k|1e|16e|0x1000|18446744073709551615"
        ];
        prop_oneof![
            size.clone().prop_map(|size| format!("size={size}")),
            size.clone().prop_map(|size| format!("block={size}")),
            size.clone().prop_map(|size| format!("dirty={size}")),
            "dirty=[0-9]{1,4}%",
            size.prop_map(|size| format!("readahead={size}")),
            "(index=(hash|splay|x)|write=(back|through|)|readahead=off|nonsense=1)",
            "(idle|age)=[0-9]{1,20}(ns|us|ms|s|h)?",
            "[ -~]{0,12}",
        ]
    }

    proptest! {
        #[test]
        fn any_options_are_refused_with_a_reason_or_can_be_built(
            options in prop::collection::vec(option(), 0..6),
            sector_bytes in prop_oneof![Just(512_u64), Just(4096), Just(520), Just(1 << 17)],
        ) {
            match read(&format!("md | cache:{}", options.join(",")), sector_bytes) {
                Ok(settings) => is_sound(&settings, sector_bytes),
                Err(error) => prop_assert!(error.contains('^'), "{error}"),
            }
        }
    }

    #[test]
    fn ends_of_the_ranges_are_accepted_and_one_more_is_not() {
        for (options, buffers) in [
            ("size=1g", Some(1 << 16)),
            ("size=1025m", None),
            ("size=16k", Some(1)),
            ("size=16383", None),
            ("size=64k,block=64k,write=back,dirty=100%", Some(1)),
            ("size=64k,write=back,dirty=101%", None),
            ("size=64k,write=back,dirty=64k", Some(4)),
            ("size=64k,write=back,dirty=80k", None),
            ("size=64k,write=back,dirty=0", None),
            ("size=18446744073709551615", None),
            ("size=18446744073709551616", None),
        ] {
            let read = read(&format!("md | cache:{options}"), 512);
            let read = read.map(|settings| settings.buffers).ok();
            assert_eq!(read, buffers, "{options}");
        }
    }
}
