//! The cases of a sweep: for each target the ways to it, for each way the blocks.

use super::SweepOptions;
use super::blocks::{self, Moving, Named};
use super::subject::{CacheMode, CaseFacts, Role, SetLimits, Subject, SweepTarget};
use rustix::fs::{Advice, Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ugeom_classes::spec::{self, FILE_CLASS};
use ugeom_classes::{Target, TargetOptions, open_target, path_of, registry, text_of};
use ugeom_engine::{Choice, open_engine};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, Counters, Length};
use ugeom_load::devices::{KernelDevice, StackDevice};
use ugeom_load::places::{Either, Random, Sequence};
use ugeom_machine::block_device;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::file_error::FileError;
use ugeom_stack::Stack;

/// How many blocks are in flight where the smallest is repeated. The first is the base.
pub(super) const DEPTHS: [u64; 3] = [1, 4, 32];

/// The block that is measured twice, for the noise, bytes.
const AGAIN_BYTES: u64 = 4096;

/// Cases, and their descriptions.
pub(super) struct Matrix<'a> {
    options: &'a SweepOptions,
    seed: u64,
    cancelled: &'a AtomicBool,
    cases: Vec<Case<'a>>,
    subject: Subject,
    written: Vec<Stack>,
}

/// A target that is ready to be measured in one way.
enum Ready {
    /// Read and written by system calls (direct, buffered).
    Calls(Named),
    /// Read and written through the channel of a stack.
    Stack(Box<Target>),
}

/// A target, and its known properties.
struct TargetFacts {
    text: String,
    /// The file at its bottom, if there is one.
    file: Option<PathBuf>,
    /// It is that file and nothing else.
    plain: bool,
    /// A stack of it is open and keeps others out: further ones of this sweep need not.
    held: std::cell::Cell<bool>,
}

/// The path that a target is, when it is nothing else: no layer, no option, no address.
pub fn is_path(text: &str) -> Option<PathBuf> {
    let found = TargetFacts::of(text);
    found.file.filter(|_| found.plain)
}

/// Whether a target is a file or a block device that is read by system calls.
pub fn is_file(text: &str) -> bool {
    TargetFacts::of(text).file.is_some()
}

impl TargetFacts {
    fn of(text: &str) -> Self {
        let target = spec::parse(text, &registry::names()).ok();
        let bottom = target.as_ref().and_then(|target| target.layers.first());
        let bottom = bottom.filter(|bottom| bottom.class.value == FILE_CLASS);
        let path = bottom.and_then(|bottom| bottom.positional.first());
        let plain = target.as_ref().is_some_and(|target| {
            let layers = &target.layers;
            let only = layers.len() == 1 && layers.iter().all(|one| one.options.is_empty());
            only && target.provider.is_none() && target.stack.is_none()
        });
        Self {
            text: text.to_owned(),
            file: path.map(|path| path_of(&path.value)),
            plain,
            held: std::cell::Cell::new(false),
        }
    }

    /// Makes it ready for one way.
    fn ready(&self, way: CacheMode, write: bool) -> Result<Ready, HarnessError> {
        match &self.file {
            Some(path) if self.plain => open_file(path, way, write).map(Ready::Calls),
            _ => self
                .stack(way, write)
                .map(|target| Ready::Stack(Box::new(target))),
        }
    }

    fn stack(&self, way: CacheMode, write: bool) -> Result<Target, HarnessError> {
        let options = TargetOptions {
            writable: write,
            direct: way == CacheMode::Direct,
            // Reading a path by system calls excludes no other program, so its queue need not
            // either.
            unlocked: self.held.get() || self.plain && !write,
            ..TargetOptions::default()
        };
        let target = open_target(&self.text, &options);
        let target = target.map_err(HarnessError::subject)?;
        self.held.set(true);
        Ok(target)
    }

    /// Whether there is something in it that blocks can be read from.
    fn can_be_read(&self) -> Result<(), HarnessError> {
        let Some(path) = self.file.as_ref().filter(|_| self.plain) else { return Ok(()) };
        let name = path.display().to_string();
        let facts = std::fs::metadata(path).map_err(HarnessError::open(&name))?;
        let kind = facts.file_type();
        let problem = match () {
            () if kind.is_block_device() => return Ok(()),
            () if !kind.is_file() => "is no file and no block device".to_owned(),
            () if facts.len() == 0 => "is empty: there are no blocks to move".to_owned(),
            () => return Ok(()),
        };
        Err(HarnessError::Load { job: name, problem })
    }
}

fn open_file(path: &Path, way: CacheMode, write: bool) -> Result<Named, HarnessError> {
    let name = text_of(path);
    let mut flags = OFlags::CLOEXEC;
    flags |= if write { OFlags::RDWR } else { OFlags::RDONLY };
    flags.set(OFlags::DIRECT, way == CacheMode::Direct);
    let file = rustix::fs::open(path, flags, Mode::empty());
    let file = file.map_err(|errno| match way {
        CacheMode::Direct => FileError::at(&name, "opening with O_DIRECT")(errno),
        _ => FileError::open(&name)(errno),
    })?;
    Ok(Named {
        path: name,
        file: Arc::new(File::from(file)),
        cached: way != CacheMode::Direct,
    })
}

impl Ready {
    fn bytes(&self) -> Result<u64, HarnessError> {
        match self {
            Self::Calls(named) => {
                let end = rustix::fs::seek(&named.file, rustix::fs::SeekFrom::End(0));
                end.map_err(|errno| HarnessError::os(&named.path, "finding the size")(errno.into()))
            }
            Self::Stack(target) => {
                let tree = target.stack.tree();
                let view = tree.provider(&target.name);
                Ok(view.map_or(0, |view| view.mediasize_bytes))
            }
        }
    }

    /// Why a block of that size cannot be moved; none when it can.
    fn objection(&self, block_bytes: u64) -> Option<String> {
        match self {
            Self::Calls(named) => named
                .can_read(block_bytes)
                .err()
                .map(|error| error.to_string()),
            Self::Stack(target) => {
                let tree = target.stack.tree();
                let sector = u64::from(tree.provider(&target.name)?.sectorsize_bytes);
                let whole = block_bytes.is_multiple_of(sector.max(1));
                (!whole).then(|| format!("{} has sectors of {sector} bytes", target.name))
            }
        }
    }

    fn device(&self) -> Option<Arc<dyn Counters>> {
        match self {
            Self::Calls(named) => {
                let device = KernelDevice::below(&path_of(&named.path))?;
                Some(Arc::new(device))
            }
            Self::Stack(target) => {
                let name = target.stack.tree();
                let name = name.providers().find(|view| view.id == target.bottom)?;
                Some(StackDevice::of(&name.name, &target.stack, target.bottom))
            }
        }
    }
}

impl<'a> Matrix<'a> {
    pub fn new(options: &'a SweepOptions, seed: u64, cancelled: &'a AtomicBool) -> Self {
        let subject = Subject {
            bytes: options.bytes,
            write: options.write,
            random: options.random,
            ..Subject::default()
        };
        Self {
            options,
            seed,
            cancelled,
            cases: Vec::new(),
            subject,
            written: Vec::new(),
        }
    }

    /// The stacks that the cases write, to be finished when all cases are dropped.
    pub fn take_written(&mut self) -> Vec<Stack> {
        std::mem::take(&mut self.written)
    }

    fn will_write(&mut self, target: &Target) {
        if self.options.write {
            self.written.push(target.stack.clone());
        }
    }

    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Why there is not.
    pub fn nothing(&self) -> HarnessError {
        let name = self.subject.parts.first();
        let why = self.subject.left_out.first();
        HarnessError::Load {
            job: name.map_or_else(String::new, |part| part.target.clone()),
            problem: match why {
                Some(why) => format!("nothing of it can be measured: {why}"),
                None => "there are no blocks to measure".to_owned(),
            },
        }
    }

    pub fn finish(self) -> (Vec<Case<'a>>, Subject) {
        (self.cases, self.subject)
    }

    /// A case, and its description.
    pub fn push(&mut self, case: Case<'a>, facts: CaseFacts) {
        self.cases.push(case);
        self.subject.cases.push(facts);
    }

    /// A target without cases yet.
    pub fn part(&mut self, part: SweepTarget) -> usize {
        self.subject.parts.push(part);
        self.subject.parts.len() - 1
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.subject.left_out.contains(&what) {
            self.subject.left_out.push(what);
        }
    }

    /// Adds all cases of a target.
    ///
    /// # Errors
    /// [`HarnessError`] when it cannot be opened in any of the ways that were asked for.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), HarnessError> {
        let found = TargetFacts::of(text);
        found.can_be_read()?;
        let ways: Vec<CacheMode> = match found.file {
            None => vec![CacheMode::Stack],
            Some(_) => [
                (CacheMode::Direct, self.options.direct),
                (CacheMode::Buffered, self.options.buffered),
            ]
            .into_iter()
            .filter_map(|(way, wanted)| wanted.then_some(way))
            .collect(),
        };
        let mut refused = None;
        let mut part = None;
        for way in ways {
            let ready = match found.ready(way, self.options.write) {
                Ok(ready) => ready,
                Err(error) => {
                    self.leave_out(format!("{}: {error}", way.word()));
                    refused = Some(error);
                    continue;
                }
            };
            if let Ready::Stack(target) = &ready {
                self.will_write(target);
            }
            let part = match part {
                Some(part) => part,
                None => *part.insert(self.part_of(name, &found, &ready)?),
            };
            self.add_way(part, way, &found, &ready)?;
        }
        match (part, refused) {
            (None, Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn part_of(
        &mut self,
        name: &str,
        found: &TargetFacts,
        ready: &Ready,
    ) -> Result<usize, HarnessError> {
        let device = ready.device().map(|device| device.name().to_owned());
        let below = found.file.as_deref().map(block_device::below);
        let below = below.and_then(Result::ok).unwrap_or_default();
        let set = match ready {
            Ready::Stack(target) => set_limits(target),
            Ready::Calls(_) => None,
        };
        let part = SweepTarget {
            name: name.to_owned(),
            target: found.text.clone(),
            region_bytes: ready.bytes()?.min(self.options.bytes),
            device,
            transfer_bytes_max: below
                .first()
                .and_then(|device| device.queue().request_bytes_max),
            set,
        };
        Ok(self.part(part))
    }

    fn add_way(
        &mut self,
        part: usize,
        way: CacheMode,
        found: &TargetFacts,
        ready: &Ready,
    ) -> Result<(), HarnessError> {
        let region_bytes = self.subject.parts[part].region_bytes;
        let mut blocks = Vec::new();
        for block_bytes in self.options.blocks_bytes() {
            let problem = match block_bytes > region_bytes {
                true => Some(format!("the target has {region_bytes} bytes")),
                false => ready.objection(block_bytes),
            };
            match problem {
                Some(problem) => {
                    let way = way.word();
                    self.leave_out(format!("{way} blocks of {block_bytes} bytes ({problem})"));
                }
                None => blocks.push(block_bytes),
            }
        }
        let roles = blocks
            .iter()
            .map(|block| (*block, Role::Step))
            .collect::<Vec<_>>();
        let again = blocks.iter().find(|block| **block >= AGAIN_BYTES);
        let again = again.map(|block| (*block, Role::Again));
        for (block_bytes, role) in roles.into_iter().chain(again) {
            let facts = CaseFacts {
                part,
                way,
                role,
                block_bytes,
            };
            self.add_step(facts, found, ready)?;
        }
        match blocks.first() {
            Some(smallest) if way != CacheMode::Buffered => {
                self.add_depths(part, way, *smallest, found)
            }
            _ => Ok(()),
        }
    }

    fn moving(&self, block_bytes: u64) -> Moving<'a> {
        Moving {
            block_bytes,
            write: self.options.write,
            seed: self.seed,
            cancelled: self.cancelled,
        }
    }

    /// Where the blocks are; those that follow each other with a gap of one block between two,
    /// where they must not be merged.
    fn places(&self, facts: &CaseFacts, gaps: bool) -> Either {
        let (region_bytes, step) = (
            self.subject.parts[facts.part].region_bytes,
            facts.block_bytes,
        );
        let steps = region_bytes / step;
        if self.options.random {
            let rng = fastrand::Rng::with_seed(self.seed ^ step);
            return Either::Random(Random::new(0, step, steps, rng));
        }
        let sequence = Sequence::new(0, step, steps);
        Either::Sequence(if gaps { sequence.with_gaps() } else { sequence })
    }

    fn add_step(
        &mut self,
        facts: CaseFacts,
        found: &TargetFacts,
        ready: &Ready,
    ) -> Result<(), HarnessError> {
        let name = facts.name(&self.subject.parts[facts.part].name);
        let (places, moving) = (self.places(&facts, false), self.moving(facts.block_bytes));
        let mut case = match ready {
            Ready::Calls(named) => blocks::by_calls(&name, named.clone(), places, moving),
            Ready::Stack(target) => {
                blocks::by_stack(&name, (&target.stack, target.top), places, moving)?
            }
        };
        if let (CacheMode::Buffered, Some(path)) = (facts.way, &found.file) {
            let path = path.clone();
            case = case.preparing(move || forget(&path));
        }
        self.push_limited(case, facts, ready.device());
        Ok(())
    }

    /// The case with the device's counters and an end: the bytes that were asked for.
    fn push_limited(
        &mut self,
        case: Case<'a>,
        facts: CaseFacts,
        device: Option<Arc<dyn Counters>>,
    ) {
        let most = (self.options.bytes / facts.block_bytes).max(1);
        let case = case.with_length(Length::AtMost(most));
        let case = match device {
            Some(device) => case.observing(device),
            None => case,
        };
        self.push(case, facts);
    }

    /// The smallest block again, several at a time. Without an asynchronous engine threads do it.
    fn add_depths(
        &mut self,
        part: usize,
        way: CacheMode,
        block_bytes: u64,
        found: &TargetFacts,
    ) -> Result<(), HarnessError> {
        let threads = found.plain && !has_queue();
        for depth in DEPTHS {
            let facts = CaseFacts {
                part,
                way,
                role: Role::Depth(depth),
                block_bytes,
            };
            let name = facts.name(&self.subject.parts[part].name);
            let (places, moving) = (self.places(&facts, true), self.moving(block_bytes));
            let (case, device) = if threads {
                let Some(path) = &found.file else { continue };
                let named = open_file(path, way, self.options.write)?;
                let device = Ready::Calls(named.clone()).device();
                (
                    blocks::by_threads(&name, named, &places, moving, depth),
                    device,
                )
            } else {
                let target = match found.stack(way, self.options.write) {
                    Ok(target) => target,
                    Err(error) => {
                        self.leave_out(format!("several blocks in flight: {error}"));
                        return Ok(());
                    }
                };
                self.will_write(&target);
                let case =
                    blocks::in_queue(&name, (&target.stack, target.top), places, moving, depth)?;
                let below = found.file.as_deref().filter(|_| found.plain);
                let device = match below {
                    Some(path) => {
                        KernelDevice::below(path).map(|device| Arc::new(device) as Arc<_>)
                    }
                    None => Ready::Stack(Box::new(target)).device(),
                };
                (case, device)
            };
            self.push_limited(case, facts, device);
        }
        Ok(())
    }
}

/// One step of a sweep by itself: blocks of a file or block device, read directly (O_DIRECT)
/// one after the other, over and over the first `region_bytes`. It is what a sweep measures, so
/// that other programs can be run beside it.
///
/// # Errors
/// [`HarnessError::Os`] when it cannot be opened or blocks of that size cannot be read so,
/// [`HarnessError::Short`] when it is shorter than a block.
pub fn direct_reads<'a>(
    name: &str,
    path: &Path,
    (block_bytes, region_bytes): (u64, u64),
    cancelled: &'a AtomicBool,
) -> Result<Case<'a>, HarnessError> {
    let named = open_file(path, CacheMode::Direct, false)?;
    named.can_read(block_bytes)?;
    let moving = Moving {
        block_bytes,
        write: false,
        seed: 0,
        cancelled,
    };
    let places = Sequence::new(0, block_bytes, region_bytes / block_bytes);
    let places = Either::Sequence(places);
    Ok(blocks::by_calls(name, named, places, moving))
}

/// Whether the engine for files can have several operations in flight.
fn has_queue() -> bool {
    open_engine::<Buffer>(Choice::Auto, 1).is_ok_and(|(engine, _)| engine.name() != "sync")
}

/// Empties the page cache of a file or device, as far as it is neither mapped nor dirty.
fn forget(path: &Path) -> Result<(), HarnessError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(HarnessError::open(&name))?;
    let forgotten = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    forgotten.map_err(|errno| HarnessError::os(&name, "emptying the cache")(errno.into()))
}

/// The limits set for the simulated disk at the bottom of a stack.
fn set_limits(target: &Target) -> Option<SetLimits> {
    let tree = target.stack.tree();
    let disk = tree.geoms.iter().find(|geom| geom.class == "DISK")?;
    let number = |name: &str| disk.fact(name)?.parse().ok();
    Some(SetLimits {
        transaction_ns: number("OverheadNs")?,
        bytes_per_second: number("RateBytesPerSecond")?,
    })
}
