//! Cells that read places of a file in some order: by system calls, from a mapping, from bare
//! memory, through a stack.

use super::orders::Places;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::{Cell, RunResult, Work};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_machine::mapping::Mapping;
use ugeom_stack::{Channel, Delta, Opened, ProviderId, Stack};

/// A cell that reads the places one after the other with `read`, which gets an offset and the
/// memory to fill.
pub fn reads(
    name: &str,
    mut places: Places,
    read_bytes: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), HarnessError> + 'static,
) -> Cell<'static> {
    let mut buffer = Buffer::new(read_bytes as usize);
    Cell::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for _ in 0..iterations {
            read(places.next_offset(), &mut buffer)?;
            std::hint::black_box(&mut *buffer);
        }
        let ns_total = clock::now_ns() - start_ns;
        let work = Work::of(iterations * read_bytes, iterations);
        Ok(RunResult::taking(ns_total).doing(work))
    })
}

/// pread(2) from the kernel's page cache.
pub fn by_pread(name: &str, file: &Arc<File>, places: Places, read_bytes: u64) -> Cell<'static> {
    let (file, cell) = (Arc::clone(file), name.to_owned());
    reads(name, places, read_bytes, move |offset, into| {
        file.read_exact_at(into, offset)
            .map_err(|source| HarnessError::Os {
                path: cell.clone(),
                operation: "reading",
                source,
            })
    })
}

/// A copy from a mapping of the file.
pub fn by_mapping(
    name: &str,
    mapping: &Arc<Mapping>,
    places: Places,
    read_bytes: u64,
) -> Cell<'static> {
    let (mapping, cell) = (Arc::clone(mapping), name.to_owned());
    reads(name, places, read_bytes, move |offset, into| {
        mapping
            .copy_out(offset, into)
            .map_err(|source| HarnessError::Os {
                path: cell.clone(),
                operation: "copying from its mapping",
                source,
            })
    })
}

/// A read through a stack, by its own channel.
///
/// # Errors
/// [`HarnessError::Stack`] when the provider cannot be opened.
pub fn by_stack(
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    places: Places,
    read_bytes: u64,
) -> Result<Cell<'static>, HarnessError> {
    let opened: Arc<Opened> = Arc::new(
        stack
            .open(provider, Delta::READ)
            .map_err(HarnessError::stack)?,
    );
    let mut channel: Channel = stack.channel(1).map_err(HarnessError::stack)?;
    let cell = name.to_owned();
    Ok(reads(
        name,
        places,
        read_bytes,
        move |offset, into| match channel.read(&opened, offset, into) {
            Ok(got) if got == into.len() => Ok(()),
            Ok(got) => Err(HarnessError::Short {
                path: cell.clone(),
                offset_bytes: offset,
                wanted_bytes: into.len() as u64,
                got_bytes: got as u64,
            }),
            Err(source) => Err(HarnessError::request(cell.clone(), source)),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::super::orders::Order;
    use super::*;
    use std::sync::atomic::AtomicBool;
    use ugeom_classes::{TargetOptions, open_target};
    use ugeom_harness::scratch::Scratch;

    fn places(order: Order) -> Places {
        Places::new(order, 1 << 20, 4096, 5)
    }

    #[test]
    fn all_ways_read_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(folder.path()), 1 << 20, 9, &AtomicBool::new(false));
        let scratch = scratch.unwrap();
        let truth = std::fs::read(scratch.path()).unwrap();
        let file = Arc::new(File::open(scratch.path()).unwrap());
        let mapping = Arc::new(Mapping::of(&file, 1 << 20).unwrap());
        assert_eq!(mapping.resident_bytes().unwrap(), 1 << 20);
        let target = open_target(
            &scratch.path().display().to_string(),
            &TargetOptions::default(),
        );
        let target = target.unwrap();
        let opened = Arc::new(target.stack.open(target.top, Delta::READ).unwrap());
        let mut channel = target.stack.channel(1).unwrap();
        let mut offsets = places(Order::Shuffled);
        let (mut by_map, mut by_call, mut by_bio) = ([0; 4096], [0; 4096], [0; 4096]);
        for _ in 0..offsets.count() {
            let offset = offsets.next_offset();
            mapping.copy_out(offset, &mut by_map).unwrap();
            file.read_exact_at(&mut by_call, offset).unwrap();
            channel.read(&opened, offset, &mut by_bio).unwrap();
            let there = &truth[offset as usize..][..4096];
            assert!(by_map == *there && by_call == *there && by_bio == *there);
        }
    }

    #[test]
    fn a_run_counts_its_reads_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(folder.path()), 1 << 20, 9, &AtomicBool::new(false));
        let scratch = scratch.unwrap();
        let file = Arc::new(File::open(scratch.path()).unwrap());
        let mut cell = by_pread("pread", &file, places(Order::Random), 4096);
        let result = (cell.run)(300).unwrap();
        assert_eq!(
            (result.work.bytes, result.work.transactions),
            (300 * 4096, 300)
        );
        assert!(result.ns_total > 0);
        let past = Places::new(Order::Sequential, 2 << 20, 1 << 20, 5);
        let mut cell = by_pread("past the end", &file, past, 4096);
        let error = (cell.run)(2).unwrap_err().to_string();
        assert!(error.starts_with("past the end: reading: "), "{error}");
    }
}
