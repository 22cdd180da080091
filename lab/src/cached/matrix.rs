//! The cases: three parts, each a set of its own, run together in rounds.

use super::counting::Ledger;
use super::names::{self, HitStep};
use super::orders::Order;
use super::reading;
use super::steps::{self, Content};
use super::subject::{Extent, MAIN_BLOCK_BYTES, Subject};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use ugeom_classes::cache::index::{Index, hash::Hash, splay::Splay};
use ugeom_classes::cache::store::Store;
use ugeom_classes::{Target, TargetError, TargetOptions, open_target, quoted_path};
use ugeom_experiment::served::{Client, ServerKind, Source};
use ugeom_harness::HarnessError;
use ugeom_harness::baseline;
use ugeom_harness::{Case, Counters};
use ugeom_load::devices::{KernelDevice, StackDevice};
use ugeom_load::door::{Kind, Request, StackCalls};
use ugeom_load::drive::one_by_one;
use ugeom_load::places::Drawn;
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::mapping::Mapping;
use ugeom_stack::Delta;

/// Bytes that caches are filled with at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Everything that cases read from; it lives as long as they are measured.
pub struct Sources {
    /// The kernel's own pages of the file.
    pub mapping: Arc<Mapping>,
    /// The caches of the hits, by their names.
    pub caches: Vec<(String, Target)>,
    /// The counts of all caches.
    pub ledger: Ledger,
    file: Arc<File>,
    device: Option<Arc<dyn Counters>>,
    seed: u64,
}

impl Sources {
    /// Opens the file and fills the kernel's cache with it.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when it cannot be read or mapped.
    pub fn new(path: &Path, size_bytes: u64, seed: u64) -> Result<Self, HarnessError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(HarnessError::open(&name))?;
        let mapping = Mapping::of(&file, size_bytes)
            .map_err(HarnessError::os(&name, "mapping it into memory"))?;
        let device = KernelDevice::below(path).map(|device| Arc::new(device) as Arc<dyn Counters>);
        Ok(Self {
            mapping: Arc::new(mapping),
            caches: Vec::new(),
            ledger: Ledger::default(),
            file: Arc::new(file),
            device,
            seed,
        })
    }

    fn places(&self, order: Order, total_bytes: u64, read_bytes: u64) -> Drawn {
        order.places(total_bytes, read_bytes, self.seed)
    }

    fn observed(&self, case: Case<'static>) -> Case<'static> {
        match &self.device {
            Some(device) => case.observing(Arc::clone(device)),
            None => case,
        }
    }
}

/// The stores whose steps are measured alone.
struct Stores {
    hash: Arc<Store<Hash>>,
    splay: Arc<Store<Splay>>,
}

/// All cases: those of filled caches, the lookups, and the costs of the bench.
///
/// # Errors
/// [`HarnessError`] when a stack cannot be built or filled.
pub fn cases(
    sources: &mut Sources,
    path: &Path,
    extent: Extent,
    subject: &mut Subject,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let mut cases = filled(sources, path, extent, subject)?;
    cases.extend(lookups(subject)?);
    let places = sources.places(Order::Shuffled, subject.size_bytes, 4096);
    cases.push(steps::empty_loop(places));
    cases.push(baseline::clock_reading(names::CLOCK));
    Ok(cases)
}

/// The cases that caches are filled for: that takes as long as the file is.
///
/// # Errors
/// As [`cases`].
pub fn filled(
    sources: &mut Sources,
    path: &Path,
    extent: Extent,
    subject: &mut Subject,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let buffers = (subject.size_bytes / MAIN_BLOCK_BYTES) as u32;
    let stores = Stores {
        hash: steps::filled(buffers, MAIN_BLOCK_BYTES, Content::Written)?,
        splay: steps::filled(buffers, MAIN_BLOCK_BYTES, Content::Written)?,
    };
    subject.overhead_bytes_a_block = stores.hash.overhead_bytes() as f64 / f64::from(buffers);
    let mut cases = hits(sources, path, extent, subject, &stores)?;
    cases.extend(step_cases(sources, subject, &stores)?);
    cases.extend(recycled(sources, extent, subject)?);
    Ok(cases)
}

/// Everything is in memory: the kernel's cache, a mapping, the bare copy, the cache class.
fn hits(
    sources: &mut Sources,
    path: &Path,
    extent: Extent,
    subject: &Subject,
    stores: &Stores,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let size_bytes = subject.size_bytes;
    for (index, block_bytes) in extent.caches() {
        let text = format!(
            "{} | cache:size={},block={block_bytes},index={index},readahead=off",
            quoted_path(path),
            cache_bytes(size_bytes, block_bytes)
        );
        let target = opened(&text, false)?;
        fill_by_reading(&target, size_bytes)?;
        let way = names::class(index, block_bytes);
        sources.caches.push((way, target));
    }
    let mut cases = Vec::new();
    for &read_bytes in &subject.reads_bytes {
        for &order in &subject.orders {
            let places = sources.places(order, size_bytes, read_bytes);
            let name = |way: &str| names::hits(way, read_bytes, order);
            let by_pread = |name: &str| {
                let case = reading::by_pread(name, &sources.file, places.clone(), read_bytes);
                sources.observed(case)
            };
            cases.push(by_pread(&name("pread")));
            if (read_bytes, order) == (4096, Order::Shuffled) {
                cases.push(by_pread(&names::hits_again("pread", read_bytes, order)));
            }
            let mapping = &sources.mapping;
            let case = reading::by_mapping(&name("mmap"), mapping, places.clone(), read_bytes);
            cases.push(sources.observed(case));
            let copied = places.clone();
            cases.push(steps::copy(
                &name("memcpy"),
                &stores.hash,
                copied,
                read_bytes,
            ));
            for (way, target) in &sources.caches {
                let (stack, top) = (&target.stack, target.top);
                let case = reading::by_stack(&name(way), stack, top, places.clone(), read_bytes)?;
                let ledger = &sources.ledger;
                let case = ledger.count(names::HITS, way, order, stack, case);
                cases.push(sources.observed(case));
            }
        }
    }
    Ok(cases)
}

/// The cache of the profile, read through servers. A server that cannot start here is left out with
/// its reason.
///
/// # Errors
/// [`HarnessError`] when the served provider cannot be read.
pub fn served(
    sources: &Sources,
    servers: &[ServerKind],
    subject: &mut Subject,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let main = names::class("hash", MAIN_BLOCK_BYTES);
    let mut cases = Vec::new();
    let Some((_, target)) = sources.caches.iter().find(|(way, _)| *way == main) else {
        return Ok(cases);
    };
    for server in servers {
        let client = match Client::open(server, &target.stack, &target.name) {
            Ok(client) => client,
            Err(problem) => {
                let problem = problem.lines().next().unwrap_or_default();
                let left_out = format!("reads through {} ({problem})", server.name);
                subject.left_out.push(left_out);
                continue;
            }
        };
        for &read_bytes in &subject.reads_bytes {
            for &order in &subject.orders {
                let places = sources.places(order, subject.size_bytes, read_bytes);
                let name = names::hits(server.name, read_bytes, order);
                let case = match client.source() {
                    Source::Stack(target) => {
                        reading::by_stack(&name, &target.stack, target.top, places, read_bytes)?
                    }
                    Source::File(path) => {
                        let file = File::open(path).map_err(HarnessError::open(&name))?;
                        reading::by_pread(&name, &Arc::new(file), places, read_bytes)
                    }
                };
                let (ledger, stack) = (&sources.ledger, &target.stack);
                let case = ledger.count(names::HITS, &main, order, stack, case);
                cases.push(sources.observed(client.kept_by(case)));
            }
        }
        subject.through.push(server.name.to_owned());
    }
    Ok(cases)
}

/// Shards do not fill evenly, so that a cache for everything needs a little more than everything.
fn cache_bytes(size_bytes: u64, block_bytes: u64) -> u64 {
    (size_bytes + size_bytes / 8).next_multiple_of(block_bytes)
}

fn opened(text: &str, writable: bool) -> Result<Target, HarnessError> {
    let options = TargetOptions {
        writable,
        ..TargetOptions::untasted()
    };
    open_target(text, &options).map_err(|error: TargetError| HarnessError::subject(error))
}

/// Reads or writes the first `size_bytes` of a target, in pieces, from `buffer` or into it.
fn all_of(
    target: &Target,
    kind: Kind,
    size_bytes: u64,
    buffer: &mut [u8],
) -> Result<(), HarnessError> {
    let (delta, what) = match kind {
        Kind::Write => (Delta::READ_WRITE, "filling a memory disk"),
        _ => (Delta::READ, "filling a cache"),
    };
    let opened = target.open(delta);
    let opened = opened.map_err(HarnessError::stack)?;
    let mut channel = target.stack.channel(1).map_err(HarnessError::stack)?;
    let mut door = StackCalls::new(&mut channel, &opened, buffer);
    let pieces = (0..size_bytes).step_by(PIECE_BYTES as usize).map(|offset| {
        let length = PIECE_BYTES.min(size_bytes - offset);
        Request::of(kind, offset, length as u32)
    });
    let done = one_by_one(&mut door, pieces, &mut Unwatched);
    done.map(drop).map_err(|failure| failure.in_case(what))
}

/// Reads the first `size_bytes` twice, so that all of it is in the cache.
fn fill_by_reading(target: &Target, size_bytes: u64) -> Result<(), HarnessError> {
    let mut buffer = Buffer::new(PIECE_BYTES as usize);
    all_of(target, Kind::Read, size_bytes, &mut buffer)?;
    all_of(target, Kind::Read, size_bytes, &mut buffer)
}

/// The steps of a hit, and of a miss, of both indexes.
fn step_cases(
    sources: &Sources,
    subject: &Subject,
    stores: &Stores,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let mut cases = Vec::new();
    for &read_bytes in &subject.reads_bytes {
        for order in [Order::Sequential, Order::Shuffled] {
            let places = sources.places(order, subject.size_bytes, read_bytes);
            for step in [HitStep::Lookup, HitStep::LookupAndCopy] {
                let hash = names::class(Hash::NAME, MAIN_BLOCK_BYTES);
                let name = names::steps(step, &hash, read_bytes, order);
                let (store, at) = (&stores.hash, places.clone());
                cases.push(steps::hit(&name, store, at, read_bytes, step));
                let splay = names::class(Splay::NAME, MAIN_BLOCK_BYTES);
                let name = names::steps(step, &splay, read_bytes, order);
                let (store, at) = (&stores.splay, places.clone());
                cases.push(steps::hit(&name, store, at, read_bytes, step));
            }
        }
    }
    let buffers = (subject.recycled_cache_bytes / MAIN_BLOCK_BYTES) as u32;
    let media_blocks = subject.recycled_media_bytes / MAIN_BLOCK_BYTES;
    let name = |index: &str| names::miss(&names::class(index, MAIN_BLOCK_BYTES));
    cases.push(steps::miss::<Hash>(
        &name(Hash::NAME),
        buffers,
        MAIN_BLOCK_BYTES,
        media_blocks,
    )?);
    cases.push(steps::miss::<Splay>(
        &name(Splay::NAME),
        buffers,
        MAIN_BLOCK_BYTES,
        media_blocks,
    )?);
    Ok(cases)
}

/// The regime of 2006: the data is in memory below, the cache holds 15 % of it.
fn recycled(
    sources: &Sources,
    extent: Extent,
    subject: &Subject,
) -> Result<Vec<Case<'static>>, HarnessError> {
    let (media_bytes, cache_bytes) = (subject.recycled_media_bytes, subject.recycled_cache_bytes);
    let mut targets = vec![("md".to_owned(), opened(&format!("md:{media_bytes}"), true)?)];
    for (index, block_bytes) in extent.caches() {
        let text = format!(
            "md:{media_bytes} | \
             cache:size={cache_bytes},block={block_bytes},index={index},readahead=off"
        );
        targets.push((names::class(index, block_bytes), opened(&text, true)?));
    }
    let text = format!("md:{media_bytes} | cache:size={cache_bytes},block={MAIN_BLOCK_BYTES}");
    let way = names::ahead(&names::class(Hash::NAME, MAIN_BLOCK_BYTES));
    targets.push((way, opened(&text, true)?));
    let mut cases = Vec::new();
    for (way, target) in &targets {
        fill_by_writing(target, media_bytes, sources.seed)?;
        for &read_bytes in &subject.reads_bytes {
            for &order in &subject.orders {
                let name = names::recycled(way, read_bytes, order);
                let places = sources.places(order, media_bytes, read_bytes);
                let (stack, top) = (&target.stack, target.top);
                let case = reading::by_stack(&name, stack, top, places, read_bytes)?;
                let case = match way.as_str() {
                    "md" => case,
                    way => sources
                        .ledger
                        .count(names::RECYCLED, way, order, stack, case),
                };
                cases.push(case.observing(StackDevice::of("md", stack, target.bottom)));
            }
        }
    }
    Ok(cases)
}

/// Writes a memory disk in full: what was never written is no memory that could be copied.
fn fill_by_writing(target: &Target, media_bytes: u64, seed: u64) -> Result<(), HarnessError> {
    let mut buffer = Buffer::new(PIECE_BYTES as usize);
    fastrand::Rng::with_seed(seed).fill(&mut buffer);
    all_of(target, Kind::Write, media_bytes, &mut buffer)
}

/// The lookup alone: small and large, both indexes, and its bounds.
///
/// # Errors
/// [`HarnessError::Os`] when there is no memory for the stores.
pub fn lookups(subject: &Subject) -> Result<Vec<Case<'static>>, HarnessError> {
    fn of<I: Index>(blocks: u64, cases: &mut Vec<Case<'static>>) -> Result<usize, HarnessError> {
        // The smallest blocks: only the index is looked at.
        let buffers = blocks as u32 + blocks as u32 / 8;
        let store = steps::filled::<I>(buffers, LOOKUP_BLOCK_BYTES, Content::Untouched)?;
        let name = names::lookup(I::NAME, blocks);
        cases.push(steps::lookup(&name, &store, blocks));
        Ok(store.overhead_bytes())
    }
    let mut cases = Vec::new();
    for blocks in [subject.index_blocks_small, subject.index_blocks] {
        of::<Splay>(blocks, &mut cases)?;
        let overhead_bytes = of::<Hash>(blocks, &mut cases)?;
        if blocks == subject.index_blocks {
            cases.push(steps::dependent_load(overhead_bytes));
        }
    }
    cases.push(steps::hash_of_16_bytes());
    Ok(cases)
}

/// Bytes of the blocks behind a lookup, which touches none of them.
const LOOKUP_BLOCK_BYTES: u64 = 4096;
