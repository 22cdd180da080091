//! The payload of a bio beside plain data: attribute questions and answers, lists of extents.

use ugeom_machine::buffer::{IoMemory, Segment};

/// The answer to a GETATTR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A number, such as `GEOM::fwsectors`.
    Number(i64),
    /// Text, such as `PART::type`.
    Text(String),
}

impl std::fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The content of a range of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// Data, or not known to be anything else.
    Data,
    /// Allocated, and reads as zeroes.
    Zero,
    /// Not allocated, and reads as zeroes.
    Hole,
}

/// One stretch of the range that an EXTENTS bio asked about; they follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its length in bytes, at least 1.
    pub length_bytes: u64,
    /// The content of these bytes below: data, or nothing that is allocated.
    pub kind: ExtentKind,
}

/// The cold part of a bio's data. `None` on the fast path.
#[derive(Default)]
pub(crate) enum Payload {
    /// Nothing beside the inline segment.
    #[default]
    None,
    /// Memory owned by the bio; the inline segment or the segments point into it.
    Memory(Box<dyn ugeom_machine::buffer::IoMemory>),
    /// A page-aligned buffer owned by the bio.
    Buffer(ugeom_machine::buffer::Buffer),
    /// A buffer that a geom gets back when the bio ends; the inline segment is the buffer's.
    Returning(ugeom_machine::returning::Returning),
    /// Several segments of memory that a parent bio owns.
    Shared(Box<[ugeom_machine::buffer::Segment]>),
    /// A page-aligned buffer of a READ, in place of which a layer may lend memory of its own.
    Lendable {
        buffer: ugeom_machine::buffer::Buffer,
        lent: Option<ugeom_machine::lease::Lease>,
    },
    /// A GETATTR: the name, and the answer once there is one.
    Attribute {
        name: Box<str>,
        value: Option<AttributeValue>,
    },
    /// An EXTENTS: at most `limit` stretches, and those found.
    Extents { limit: usize, found: Vec<Extent> },
}

impl Payload {
    /// Whether others may copy out of the memory meanwhile.
    pub fn is_watched(&self) -> bool {
        matches!(self, Self::Memory(memory) if memory.is_watched())
    }

    /// The one segment of a buffer that goes back to a geom, which becomes the inline segment.
    pub fn returning_segment(&self) -> Option<Segment> {
        match self {
            Self::Returning(memory) => IoMemory::segments(memory.buffer()?).first().copied(),
            _ => None,
        }
    }
}
