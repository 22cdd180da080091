//! One row of the table of signatures, and how it is looked for.

use super::view::View;
use super::{Content, ContentUse, text};

/// From which end of the medium a place is counted.
#[derive(Clone, Copy)]
pub enum At {
    /// So many bytes from the beginning.
    Start(u64),
    /// So many sectors of 512 bytes before the end.
    End(u64),
    /// So many bytes before the end.
    EndBytes(u64),
}

/// A magic number: where the structure begins, and where in it the number stands.
pub struct Magic {
    pub base: At,
    pub offset: u64,
    pub bytes: &'static [u8],
}

/// Where the label or the UUID of a structure is, counted from where the structure begins.
#[derive(Clone, Copy)]
pub enum Field {
    Absent,
    /// Text of so many bytes.
    Text(u64, usize),
    /// Text in little-endian UTF-16, of so many bytes.
    Utf16(u64, usize),
    /// A UUID of sixteen bytes.
    Uuid(u64),
    /// A function that describes the structure: the medium, and the start of the structure.
    Made(fn(&mut View<'_>, u64) -> Option<String>),
}

/// A structure that magic numbers and a few fields describe.
pub struct Signature {
    pub name: &'static str,
    pub title: &'static str,
    pub short: &'static str,
    pub usage: ContentUse,
    /// A medium smaller than this carries none.
    pub min_bytes: u64,
    pub magics: &'static [Magic],
    /// A further condition: the medium, and the start of the structure.
    pub check: Option<fn(&mut View<'_>, u64) -> bool>,
    pub label: Field,
    pub uuid: Field,
    /// The size of the disk inside, for an image.
    pub inner: Option<fn(&mut View<'_>, u64) -> u64>,
}

/// A magic number at a place from the beginning, in a structure that begins at `base`.
pub const fn magic(base: u64, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic {
        base: At::Start(base),
        offset,
        bytes,
    }
}

/// A magic number at the beginning of a sector counted from the end; 1 is the last one.
pub const fn magic_from_end(sectors: u64, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic {
        base: At::End(sectors),
        offset,
        bytes,
    }
}

/// A magic number so many bytes before the end of a file, whose size need not be whole sectors.
pub const fn magic_from_end_of_file(before: u64, bytes: &'static [u8]) -> Magic {
    Magic {
        base: At::EndBytes(before),
        offset: 0,
        bytes,
    }
}

impl Signature {
    pub const fn new(
        usage: ContentUse,
        name: &'static str,
        title: &'static str,
        short: &'static str,
        magics: &'static [Magic],
    ) -> Self {
        Self {
            name,
            title,
            short,
            usage,
            min_bytes: 0,
            magics,
            check: None,
            label: Field::Absent,
            uuid: Field::Absent,
            inner: None,
        }
    }

    pub const fn label(mut self, field: Field) -> Self {
        self.label = field;
        self
    }

    pub const fn uuid(mut self, field: Field) -> Self {
        self.uuid = field;
        self
    }

    pub const fn check(mut self, check: fn(&mut View<'_>, u64) -> bool) -> Self {
        self.check = Some(check);
        self
    }

    pub const fn least(mut self, bytes: u64) -> Self {
        self.min_bytes = bytes;
        self
    }

    pub const fn inner(mut self, inner: fn(&mut View<'_>, u64) -> u64) -> Self {
        self.inner = Some(inner);
        self
    }

    /// Looks for it in all its places.
    pub fn find(&self, view: &mut View<'_>) -> Option<Content> {
        if view.size_bytes() < self.min_bytes {
            return None;
        }
        let mut found: Option<Content> = None;
        for magic in self.magics {
            let base = match magic.base {
                At::Start(base) => Some(base),
                At::End(sectors) => view.sector_before_end(sectors, 0),
                At::EndBytes(before) => view.size_bytes().checked_sub(before),
            };
            let Some(base) = base else { continue };
            let place = base + magic.offset;
            if !view.has(place, magic.bytes) || self.check.is_some_and(|check| !check(view, base)) {
                continue;
            }
            let content = match found.take() {
                Some(content) => content,
                None => self.describe(view, base),
            };
            found = Some(content.at(place, magic.bytes.len() as u64));
        }
        found
    }

    fn describe(&self, view: &mut View<'_>, base: u64) -> Content {
        let mut content = Content::new(self.name, self.title, self.short, self.usage);
        content.label = field(view, base, self.label);
        content.uuid = field(view, base, self.uuid);
        content.inner_bytes = self.inner.map(|inner| inner(view, base));
        content
    }
}

fn field(view: &mut View<'_>, base: u64, field: Field) -> Option<String> {
    match field {
        Field::Absent => None,
        Field::Text(at, length) => text::label(&view.bytes(base + at, length)),
        Field::Utf16(at, length) => text::utf16(&view.bytes(base + at, length), u16::from_le_bytes),
        Field::Uuid(at) => text::uuid(&view.bytes(base + at, 16)),
        Field::Made(make) => make(view, base),
    }
}
