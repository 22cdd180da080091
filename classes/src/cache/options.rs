//! The options of `cache` and their checks.

use super::index::{Index, hash::Hash, splay::Splay};
use crate::spec::OptionDefault::Value;
use crate::spec::values::{duration_ns, size};
use crate::spec::{LayerArguments, OptionTable, SpecError, option};
use crate::{set_choice, set_field};
use ugeom_measure::units::{Size, SizeUnits, UnitError, size_or_percent};

/// The options of the class.
#[rustfmt::skip]
pub(super) const OPTIONS: OptionTable<Wanted> = OptionTable(&[
    option("size", "SIZE", Value("64m"), "memory for blocks", set_field!(size_bytes = size)),
    option("block", "SIZE", Value("16k"), "size of a block, a power of two from 4k to 64k",
        set_field!(block_bytes = size)),
    option("index", "hash|splay", Value("hash"), "index of the blocks; splay is for comparison",
        set_choice!(index = [(Hash::NAME, IndexKind::Hash), (Splay::NAME, IndexKind::Splay)])),
    option("readahead", "SIZE|off", Value("512k"), "maximum read-ahead of a sequential reader",
        set_field!(ahead_bytes = size_or_off)),
    option("write", "through|back", Value("through"),
        "a write completes in the layer below (through), or in memory (back)",
        set_choice!(is_write_back = [(THROUGH, false), (BACK, true)])),
    option("dirty", "SIZE|PERCENT", Value("50%"),
        "with write=back: memory for dirty blocks, a share of size", set_field!(dirty = share)),
    option("idle", "TIME", Value("100ms"), "with write=back: flush after this long without writes",
        set_field!(idle_ns = duration_ns)),
    option("age", "TIME", Value("5s"), "with write=back: maximum age of a dirty block",
        set_field!(age_ns = duration_ns)),
]);

/// The options as they are written.
pub(super) struct Wanted {
    size_bytes: u64,
    block_bytes: u64,
    index: IndexKind,
    ahead_bytes: u64,
    is_write_back: bool,
    dirty: Size,
    idle_ns: u64,
    age_ns: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            size_bytes: 0,
            block_bytes: 0,
            index: IndexKind::Hash,
            ahead_bytes: 0,
            is_write_back: false,
            dirty: Size::Bytes(0),
            idle_ns: 0,
            age_ns: 0,
        }
    }
}

fn size_or_off(text: &str) -> Result<u64, UnitError> {
    if text == "off" { Ok(0) } else { size(text) }
}

fn share(text: &str) -> Result<Size, UnitError> {
    size_or_percent(text, SizeUnits::USUAL)
}

/// The names of the ways to write.
pub(super) const THROUGH: &str = "through";
pub(super) const BACK: &str = "back";

const BLOCK_BYTES_MIN: u64 = 4 << 10;
const BLOCK_BYTES_MAX: u64 = 64 << 10;
/// Buffers have numbers of 32 bits, and the index wants room to grow to a power of two.
const BUFFERS_MAX: u64 = 1 << 30;

/// How a block's buffer is looked up (option `index`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// [`struct@Hash`]: one cache line per lookup, without a lock.
    Hash,
    /// [`Splay`]: a splay tree, as in FreeBSD in 2006, for comparison.
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
        /// Time without writes after which the flusher begins, ns.
        idle_ns: u64,
        /// Maximum age of a dirty block, ns.
        age_ns: u64,
    },
}

/// The options as values.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Buffers, at least one.
    pub buffers: u32,
    /// The size of a block, bytes: a power of two, and a multiple of the sector below.
    pub block_bytes: u64,
    /// How a block's buffer is looked up.
    pub index: IndexKind,
    /// The longest window of read-ahead, blocks; 0 for none.
    pub ahead_blocks: u64,
    /// When a write is done.
    pub writing: Writing,
}

/// The limits of the options.
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
    /// The defect of the first wrong option, with its place in the text.
    pub fn read(
        arguments: &LayerArguments<'_>,
        below: Below<'_>,
        memory_bytes: u64,
    ) -> Result<Self, SpecError> {
        let wanted = arguments.read(&OPTIONS, Wanted::default())?;
        let (size_bytes, block_bytes) = (wanted.size_bytes, wanted.block_bytes);
        if let Some(problem) = wrong_block(block_bytes, below) {
            return Err(arguments.invalid("block", problem));
        }
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
            return Err(arguments.invalid("size", problem));
        }
        Ok(Self {
            buffers: buffers as u32,
            block_bytes,
            index: wanted.index,
            ahead_blocks: wanted.ahead_bytes / block_bytes,
            writing: writing(arguments, &wanted, buffers as u32)?,
        })
    }
}

fn writing(
    arguments: &LayerArguments<'_>,
    wanted: &Wanted,
    buffers: u32,
) -> Result<Writing, SpecError> {
    if !wanted.is_write_back {
        let given = ["dirty", "idle", "age"];
        return match given.into_iter().find(|key| arguments.is_given(key)) {
            None => Ok(Writing::Through),
            Some(key) => Err(arguments.invalid(key, format!("{key} goes with write=back"))),
        };
    }
    let block_bytes = wanted.block_bytes;
    let limit = match wanted.dirty {
        Size::Bytes(bytes) => bytes / block_bytes,
        // Half of one buffer is one: the default has to work with the smallest cache.
        share if !arguments.is_given("dirty") => share.of(buffers.into()).max(1),
        share => share.of(buffers.into()),
    };
    let problem = if limit == 0 {
        format!("there must be room for one dirty block of {block_bytes} bytes")
    } else if limit > u64::from(buffers) {
        let size_bytes = u64::from(buffers) * block_bytes;
        format!("the whole cache has {size_bytes} bytes")
    } else {
        return Ok(Writing::Back {
            limit: limit as u32,
            idle_ns: wanted.idle_ns,
            age_ns: wanted.age_ns,
        });
    };
    Err(arguments.invalid("dirty", problem))
}

fn wrong_block(block_bytes: u64, below: Below<'_>) -> Option<String> {
    let Below { name, sector_bytes } = below;
    let sizes = BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX;
    if !block_bytes.is_power_of_two() || !sizes.contains(&block_bytes) {
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
        let arguments = layer.arguments(&["size"]);
        let arguments = arguments.map_err(|error| error.to_string())?;
        let below = Below {
            name: "md0",
            sector_bytes,
        };
        Settings::read(&arguments, below, MEMORY_BYTES).map_err(|error| error.to_string())
    }

    /// All accepted options can be built.
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
