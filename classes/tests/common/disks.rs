//! Small partitioned disks for tests, and a stack's listings of them.

use super::{Sparse, add, tables};
use std::sync::Arc;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_format::{Media, SectorWrite, bsd, ebr, mbr};
use ugeom_stack::{Delta, ProviderView, Stack};

pub const GEOMETRY: mbr::Geometry = mbr::Geometry::LBA_ASSIST;
pub const MIB: u64 = 1 << 20;

/// A stack with one memory disk of 512-byte sectors on it.
pub fn disk(size: u64, writes: &[(u64, Vec<u8>)]) -> Stack {
    disk_of(size, 512, writes)
}

pub fn disk_of(size: u64, sector: u32, writes: &[(u64, Vec<u8>)]) -> Stack {
    let memory = Sparse::default();
    for (offset, bytes) in writes {
        memory.put(*offset, bytes);
    }
    let stack = tables();
    add(&stack, "md0", size, sector, Arc::new(memory));
    stack
}

/// An MBR with these partitions: type, first sector, sectors.
pub fn mbr_of(entries: &[(u8, u32, u32)]) -> Vec<u8> {
    let mut mbr = mbr::Mbr::empty(0);
    for (place, &(kind, start, sectors)) in mbr.entries.iter_mut().zip(entries) {
        *place = mbr::Entry::new(mbr::PartType(kind), start, sectors, GEOMETRY);
    }
    mbr.encode().to_vec()
}

/// A label with these partitions: index, first sector, sectors.
pub fn label_of(sector: u32, count: usize, entries: &[(usize, u32, u32)]) -> Vec<u8> {
    let media = Media {
        sector_size_bytes: sector,
        sectors: 4096,
    };
    let Ok(Table::Bsd(table)) = Table::create(Scheme::Bsd, media, &Create::default()) else {
        panic!("a label");
    };
    let mut label = table.label().clone();
    label.partitions = vec![bsd::Partition::default(); count];
    for &(index, start, sectors) in entries {
        let kind = bsd::FsType::UFS;
        label.partitions[index] = bsd::Partition {
            sectors,
            start,
            kind,
            ..Default::default()
        };
    }
    label.encode().expect("a label")
}

/// The writes of a GPT with these partitions: type, first sector, sectors.
pub fn gpt_of(media: Media, entries: &[(&str, u64, u64)]) -> Vec<(u64, Vec<u8>)> {
    let mut table = Table::create(Scheme::Gpt, media, &Create::default()).expect("a GPT");
    for (number, &(kind, start, sectors)) in (1..).zip(entries) {
        let part = NewPart {
            start: Some(start),
            sectors: Some(sectors),
            kind: kind.to_owned(),
            random: [number; 16],
            ..NewPart::default()
        };
        table.add(&part).expect("a partition");
    }
    at_offsets(table.encode(), u64::from(media.sector_size_bytes))
}

/// Where the sectors stand, bytes.
pub fn at_offsets(writes: Vec<SectorWrite>, unit: u64) -> Vec<(u64, Vec<u8>)> {
    let at = |write: SectorWrite| (write.lba * unit, write.data);
    writes.into_iter().map(at).collect()
}

/// The records of a chain of logical partitions.
pub fn chain_of(start: u64, logicals: &[ebr::NewLogical]) -> Vec<(u64, Vec<u8>)> {
    let chain = ebr::encode_chain(start, logicals, GEOMETRY).expect("a chain");
    let at = |(lba, record): (u64, [u8; 512])| (lba * 512, record.to_vec());
    chain.into_iter().map(at).collect()
}

/// Names of the providers above `md0`, sorted by the order of the tree.
pub fn names(stack: &Stack) -> Vec<String> {
    let tree = stack.tree();
    tree.providers()
        .map(|provider| provider.name.clone())
        .skip(1)
        .collect()
}

pub fn view(stack: &Stack, name: &str) -> ProviderView {
    let view = stack.tree().provider(name).cloned();
    view.unwrap_or_else(|| panic!("there is no {name}, only {:?}", names(stack)))
}

pub fn mark(stack: &Stack, name: &str) -> Option<String> {
    view(stack, name).mark
}

pub fn facts(stack: &Stack, class: &str, name: &str) -> Vec<String> {
    let tree = stack.tree();
    let geom = tree
        .geoms
        .iter()
        .find(|geom| geom.class == class)
        .expect("the geom");
    let facts = geom.config.iter().filter(|fact| fact.0 == name);
    facts.map(|fact| fact.1.clone()).collect()
}

pub fn errors(stack: &Stack) -> Vec<String> {
    stack
        .taste_errors()
        .iter()
        .map(ToString::to_string)
        .collect()
}

pub fn read_sector(
    stack: &Stack,
    name: &str,
    offset: u64,
) -> Result<Vec<u8>, ugeom_stack::IoError> {
    let provider = stack.find(name).expect("a provider");
    let opened = stack.open(provider, Delta::READ).expect("open for reading");
    let mut channel = stack.channel(1).expect("a channel");
    let mut bytes = vec![0; view(stack, name).sectorsize_bytes as usize];
    let read = channel.read(&opened, offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
