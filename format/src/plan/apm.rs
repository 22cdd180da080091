//! Editing an Apple partition map. Each entry has a block, so a change of one
//! partition is one write; entries of free space are dropped by the first
//! change, and the blocks of the map that are not used are written as void.

use super::{
    Change, Create, Edit, Error, NewPart, Part, Scheme, Span, has_sectors_of, large_enough,
    place_in, read_exactly,
};
use crate::apm::{Descriptor, Entry, MAX_ENTRIES, Map, TYPE_FREE, TYPE_MAP, TYPE_VOID};
use crate::media::{Media, SectorRead, SectorWrite};

const LEAST_ENTRIES: u32 = 16;
const BLOCK_BYTES: u32 = 512;
/// Valid, allocated, in use, readable and writable, as parted sets.
const STATUS: u32 = 0x33;

/// An Apple partition map with the blocks that hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApmTable {
    media: Media,
    /// Blocks 0 up to the last one of the map, as they were read; empty for a
    /// new map.
    blocks: Vec<u8>,
    descriptor: Descriptor,
    /// The entry of the map itself, whose block is 1.
    own: Entry,
    /// The other entries, from block 2 on; `None` for void ones and for blocks
    /// that are no entries.
    entries: Vec<Option<Entry>>,
}

impl ApmTable {
    pub(super) fn create(media: Media, create: &Create) -> Result<ApmTable, Error> {
        let scheme = Scheme::Apm;
        let count = create.entries_within(scheme, LEAST_ENTRIES..=MAX_ENTRIES - 1)?;
        let reason = "the map counts in blocks of 512 bytes";
        has_sectors_of(BLOCK_BYTES as usize, media, scheme, reason)?;
        let needed = 2 + 2 * u64::from(count);
        large_enough(scheme, media, needed)?;
        let map_blocks = count + 1;
        let descriptor = Descriptor {
            block_size_bytes: BLOCK_BYTES as u16,
            blocks: u32::try_from(media.sectors).unwrap_or(u32::MAX),
            drivers: 0,
        };
        let own = Entry {
            map_blocks,
            start: 1,
            blocks: map_blocks,
            name: text("Apple").unwrap_or_default(),
            kind: text(TYPE_MAP).unwrap_or_default(),
            data_blocks: map_blocks,
            status: STATUS,
            ..Entry::default()
        };
        Ok(ApmTable {
            media,
            blocks: Vec::new(),
            descriptor,
            own,
            entries: vec![None; count as usize],
        })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<ApmTable, Error> {
        let map = Map::read(media, read)?;
        let read_only = |reason| Error::ReadOnly {
            scheme: Scheme::Apm,
            reason,
        };
        let own = match map.entries.first() {
            Some((1, own)) if own.kind_name() == TYPE_MAP => own.clone(),
            _ => return Err(read_only("its first entry does not describe the map")),
        };
        if media.sector_size_bytes != BLOCK_BYTES {
            return Err(read_only("its blocks are not of 512 bytes"));
        }
        let blocks = read_exactly(media, 0, 1 + u64::from(own.map_blocks), read)?;
        let mut entries = vec![None; own.map_blocks as usize - 1];
        for (number, entry) in map.entries.into_iter().skip(1) {
            if let Some(place) = entries.get_mut(number as usize - 2) {
                *place = entry.is_used().then_some(entry);
            }
        }
        Ok(ApmTable {
            media,
            blocks,
            descriptor: map.descriptor,
            own,
            entries,
        })
    }

    fn used(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let numbered = (1..).zip(&self.entries);
        let used = numbered.filter_map(|(index, entry)| Some((index, entry.as_ref()?)));
        used.filter(|(_, entry)| entry.kind_name() != TYPE_FREE)
    }

    fn place(&mut self, index: u32) -> Result<&mut Option<Entry>, Error> {
        place_in(&mut self.entries, index)
    }

    /// The bytes of block `number`, from 1 on.
    fn block(&self, number: usize) -> Vec<u8> {
        if number == 1 {
            return self.own.encode().to_vec();
        }
        let kept = self.entries.get(number - 2).and_then(Option::as_ref);
        let kept = kept.filter(|entry| entry.kind_name() != TYPE_FREE);
        let void = || Entry {
            map_blocks: self.own.map_blocks,
            kind: text(TYPE_VOID).unwrap_or_default(),
            ..Entry::default()
        };
        kept.cloned().unwrap_or_else(void).encode().to_vec()
    }
}

/// Text as a field of 32 bytes.
fn text(text: &str) -> Option<[u8; 32]> {
    let mut field = [0; 32];
    let bytes = crate::text::to_bytes(text);
    let fits = bytes.len() <= field.len() && !bytes.contains(&0);
    fits.then(|| {
        crate::bytes::put(&mut field, 0, &bytes);
        field
    })
}

fn parse_kind(kind: &str) -> Result<[u8; 32], Error> {
    let name = crate::apm::parse_type(kind).filter(|name| {
        let own = [TYPE_MAP, TYPE_FREE, TYPE_VOID];
        !name.is_empty() && !own.contains(name)
    });
    name.and_then(text).ok_or_else(|| {
        Error::unknown_type(
            Scheme::Apm,
            kind,
            "Apple's type of at most 32 bytes, as in !Apple_HFS",
        )
    })
}

fn parse_label(label: &str) -> Result<[u8; 32], Error> {
    text(label).ok_or_else(|| Error::label(label, "at most 32 bytes fit, and no NUL"))
}

impl Edit for ApmTable {
    media_and_scheme!(Apm);

    fn usable(&self) -> (u64, u64) {
        let blocks = u64::from(self.descriptor.blocks).min(self.media.sectors);
        (u64::from(self.own.map_blocks) + 1, blocks.saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        self.entries.len() as u32
    }

    fn parts(&self) -> Vec<Part> {
        let part = |(index, entry): (u32, &Entry)| {
            let name = entry.kind_name();
            Part {
                index,
                suffix: format!("s{}", index + 1),
                start: u64::from(entry.start),
                sectors: u64::from(entry.blocks),
                kind: entry.alias().map_or_else(|| name.clone(), str::to_owned),
                raw_kind: name,
                label: Some(entry.label()),
                attributes: Vec::new(),
            }
        };
        self.used().map(part).collect()
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        let numbers = (u32::try_from(span.start), u32::try_from(span.sectors));
        let (Ok(on_disk), Ok(blocks)) = numbers else {
            return Err(Error::out_of_range(span.start, span.sectors, self.usable()));
        };
        let entry = Entry {
            map_blocks: self.own.map_blocks,
            start: on_disk,
            blocks,
            name: parse_label(new.label.as_deref().unwrap_or(""))?,
            kind: parse_kind(&new.kind)?,
            data_blocks: blocks,
            status: STATUS,
            ..Entry::default()
        };
        *self.place(index)? = Some(entry);
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let unknown = match change {
            Change::Attribute { name, .. } => Some(self.no_attribute(name)),
            _ => None,
        };
        let entry = self.place(index)?.as_mut();
        let entry = entry.ok_or(Error::NoSuchPartition(index))?;
        match change {
            Change::Kind(kind) => entry.kind = parse_kind(kind)?,
            Change::Label(label) => entry.name = parse_label(label)?,
            Change::Sectors(sectors) => {
                let blocks = u32::try_from(*sectors).unwrap_or(u32::MAX);
                let data = entry.data_start.saturating_add(entry.data_blocks);
                if data == entry.blocks || data > blocks {
                    entry.data_blocks = blocks.saturating_sub(entry.data_start);
                }
                entry.blocks = blocks;
            }
            Change::Attribute { .. } => return Err(unknown.unwrap_or(Error::Align)),
        }
        Ok(())
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *self.place(index)? = None;
        Ok(())
    }

    /// The blocks that change: first those that become void, so that free space
    /// is no entry any more when a partition takes it. Of a new map all blocks,
    /// the descriptor last.
    fn encode(&self) -> Vec<SectorWrite> {
        let size = self.media.sector_len();
        let blocks = (1..=self.entries.len() + 1).map(|number| (number, self.block(number)));
        let old = |number: usize| self.blocks.get(number * size..(number + 1) * size);
        let mut writes: Vec<SectorWrite> = blocks
            .filter(|(number, data)| old(*number) != Some(data))
            .map(|(number, data)| SectorWrite {
                lba: number as u64,
                data,
            })
            .collect();
        match self.blocks.is_empty() {
            true => {
                let own = writes.remove(0);
                writes.push(own);
                let data = self.descriptor.encode().to_vec();
                writes.push(SectorWrite { lba: 0, data });
            }
            false => writes.sort_by_key(|write| {
                let entry = self.entries.get((write.lba as usize).wrapping_sub(2));
                let kept = entry.and_then(Option::as_ref);
                kept.is_some_and(|entry| entry.kind_name() != TYPE_FREE)
            }),
        }
        writes
    }

    fn own_sectors(&self) -> Vec<u64> {
        vec![0, 1]
    }
}
