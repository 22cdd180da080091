//! Cases that read places of a file in some order: by system calls, from a mapping, from bare
//! memory, through a stack.

use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult, Work};
use ugeom_load::door::{Calls, Direct, Request, StackCalls, file_calls};
use ugeom_load::drive::one_by_one;
use ugeom_load::places::Drawn;
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_machine::mapping::Mapping;
use ugeom_stack::{Delta, Errno, ProviderId, Stack};

/// Reads so many places one after the other.
fn reads(
    name: &str,
    door: &mut impl Direct,
    places: &mut Drawn,
    read_bytes: u64,
    count: u64,
) -> Result<RunResult, HarnessError> {
    let places = places.take(count as usize);
    let requests = places.map(|offset| Request::read(offset, read_bytes as u32));
    let start_ns = clock::now_ns();
    let done = one_by_one(door, requests, &mut Unwatched);
    let ns_total = clock::now_ns() - start_ns;
    let done = done.map_err(|failure| failure.in_case(name))?;
    Ok(RunResult::taking(ns_total).doing(Work::of(done.bytes, done.requests)))
}

/// A case that reads through a door of its own.
fn by_door(
    name: &str,
    mut door: impl Direct + 'static,
    mut places: Drawn,
    read_bytes: u64,
) -> Case<'static> {
    let case = name.to_owned();
    Case::new(name, move |iterations| {
        reads(&case, &mut door, &mut places, read_bytes, iterations)
    })
}

/// pread(2) from the kernel's page cache.
pub fn by_pread(name: &str, file: &Arc<File>, places: Drawn, read_bytes: u64) -> Case<'static> {
    let buffer = Buffer::new(read_bytes as usize);
    let door = Calls::new(buffer, file_calls(Arc::clone(file)));
    by_door(name, door, places, read_bytes)
}

/// A copy from a mapping of the file.
pub fn by_mapping(
    name: &str,
    mapping: &Arc<Mapping>,
    places: Drawn,
    read_bytes: u64,
) -> Case<'static> {
    let (mapping, buffer) = (Arc::clone(mapping), Buffer::new(read_bytes as usize));
    let copy = move |request: &Request, memory: &mut [u8]| {
        let copied = mapping.copy_out(request.offset, black_box(memory));
        copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(u64::from(request.length))
    };
    by_door(name, Calls::new(buffer, copy), places, read_bytes)
}

/// A read through a stack, by its own channel.
///
/// # Errors
/// [`HarnessError::Stack`] when the provider cannot be opened.
pub fn by_stack(
    name: &str,
    stack: &Stack,
    provider: ProviderId,
    mut places: Drawn,
    read_bytes: u64,
) -> Result<Case<'static>, HarnessError> {
    let opened = stack.open(provider, Delta::READ);
    let opened = opened.map_err(HarnessError::stack)?;
    let mut channel = stack.channel(1).map_err(HarnessError::stack)?;
    let mut buffer = Buffer::new(read_bytes as usize);
    let case = name.to_owned();
    Ok(Case::new(name, move |iterations| {
        let mut door = StackCalls::new(&mut channel, &opened, &mut buffer);
        reads(&case, &mut door, &mut places, read_bytes, iterations)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::orders::Order;
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;
    use ugeom_classes::{TargetOptions, open_target};
    use ugeom_harness::scratch::Scratch;
    use ugeom_testkit::begins;

    fn places(order: Order) -> Drawn {
        order.places(1 << 20, 4096, 5)
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
        let opened = Arc::new(target.open(Delta::READ).unwrap());
        let mut channel = target.stack.channel(1).unwrap();
        let offsets = places(Order::Shuffled);
        let (mut by_map, mut by_call, mut by_bio) = ([0; 4096], [0; 4096], [0; 4096]);
        for offset in offsets.take(256) {
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
        let mut case = by_pread("pread", &file, places(Order::Random), 4096);
        let result = (case.run)(300).unwrap();
        assert_eq!(
            (result.work.bytes, result.work.transactions),
            (300 * 4096, 300)
        );
        assert!(result.ns_total > 0);
        let past = Order::Sequential.places(2 << 20, 1 << 20, 5);
        let mut case = by_pread("past the end", &file, past, 4096);
        let error = (case.run)(2).unwrap_err().to_string();
        begins(&error, "past the end: a read of 4096 bytes at offset ");
    }
}
