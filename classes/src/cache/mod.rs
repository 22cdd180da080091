//! `cache`: a buffer cache in memory before any provider.
//!
//! ```text
//!              caller
//!                |  READ 4096 at 20480
//!           disk.img.cache     start: lookup(1) -> buffer 7, copyout 4096 at 4096 of it: done
//!                |  READ 16384 at 16384 into buffer 7, when it is not there (getnewbuf)
//!             disk.img
//!
//!   index   [ head | 1 -> 7 | 93 -> 2 | ... ]     one line of the processor's cache a block
//!   slab    [ 0 ][ 1 ][ 2 ] ... [ 7 ] ...         buffers on huge pages, allocated once
//!   queues  small, main, ghost                    S3-FIFO, a set a shard
//! ```
//!
//! READ: lookup, copyout, done, without a lock. Missing blocks are read below one at a time, by the
//! first request; others wait for it. WRITE goes below and, when it is done there, into the
//! buffers; or into the buffers, and below later ([`writeback`]). GEOM's counterpart is
//! `gcache(8)`; the steps have the names of FreeBSD's buffer cache: lookup (`gbincore`),
//! `getnewbuf`, `copyout`.

pub mod ahead;
pub mod counts;
mod dirty;
pub mod index;
#[cfg(test)]
mod lease_tests;
mod lost;
pub mod options;
mod pending;
pub mod policy;
mod start;
mod state;
pub mod store;
#[cfg(test)]
mod tests;
pub mod unflushed;
mod waits;
mod writeback;
pub mod writers;

use crate::build::{BuildContext, BuildError, provider_over};
use crate::entry::{Build, ClassEntry, Role};
use crate::spec::LayerArguments;
use ahead::ReadAhead;
use dirty::Dirty;
use index::Index;
use index::hash::Hash;
use index::splay::Splay;
use options::{Below, IndexKind, Settings, Writing};
use pending::PendingReads;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;
use ugeom_stack::{
    AccessChange, BioId, Cx, Delta, Errno, Fact, Geom, IoError, Losses, Lower, Next, Plan,
    ProviderView, Request, Unsaved,
};
use writeback::WriteBack;

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "cache",
    class: "CACHE",
    about: "a buffer cache in memory",
    role: Role::Layer,
    positional: &["size"],
    options: &options::OPTIONS,
    build: Build::Layer(build),
    taste: None,
};

/// The result of [`store::Store::getnewbuf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A buffer for the block, which is busy until it is published or abandoned.
    New(u32),
    /// The block is there, or on its way.
    Present,
    /// No buffer can be had: all are leased, busy, or have to be written first.
    Full,
}

/// The geom of a cache with one kind of index, so that no look-up asks which.
pub struct Cache<I: Index> {
    store: Store<I>,
    pending: PendingReads,
    block_bytes: u64,
    /// log2 of the block size.
    shift: u32,
    media_bytes: AtomicU64,
    /// The read-ahead state, if the option is on.
    ahead: Option<ReadAhead>,
    /// The write-back state, if the option is on.
    back: Option<WriteBack>,
    /// Losses of the layers below and of this one.
    losses: Arc<Losses>,
    /// The last loss after which a cache that writes through has forgotten its blocks.
    forgot: AtomicU64,
}

/// How a cache writes back.
#[derive(Clone, Debug)]
pub struct BackOptions {
    /// How many buffers may be dirty.
    pub limit: u32,
    /// Time without writes after which the flusher begins, ns.
    pub idle_ns: u64,
    /// How long something is dirty at the most when writes never pause, ns.
    pub age_ns: u64,
    /// The sector size of the provider below, bytes.
    pub sector_bytes: u32,
    /// The prefix of its messages.
    pub name: String,
}

impl<I: Index> Cache<I> {
    /// A cache of so many blocks of `block_bytes`, a power of two, for a media of `media_bytes`.
    ///
    /// # Errors
    /// The system's error about the memory.
    pub fn new(buffers: u32, block_bytes: u32, media_bytes: u64) -> io::Result<Self> {
        Ok(Self {
            store: Store::new(buffers, block_bytes as usize)?,
            pending: PendingReads::default(),
            block_bytes: u64::from(block_bytes),
            shift: block_bytes.trailing_zeros(),
            media_bytes: AtomicU64::new(media_bytes),
            ahead: None,
            back: None,
            losses: Arc::default(),
            forgot: AtomicU64::new(0),
        })
    }

    /// The same, which reads up to so many blocks ahead of sequential readers, and at most a
    /// quarter of its capacity. With less than one block it stays as it is.
    #[must_use]
    pub fn reading_ahead(mut self, most: u64) -> Self {
        let most = most.min(u64::from(self.store.slab().blocks()) / 4);
        if most > 0 {
            let queue = Arc::new(ahead::WindowQueue::new(most));
            self.ahead = Some(ReadAhead::new(&queue));
            self.store.ahead = Some(queue);
        }
        self
    }

    /// Starts the thread that reads ahead, if it does that.
    ///
    /// # Errors
    /// The system's error about a thread.
    pub fn begin_reading_ahead(self: &Arc<Self>) -> io::Result<()> {
        self.ahead
            .as_ref()
            .map_or(Ok(()), |ahead| ahead.begin(self))
    }

    /// The same, which writes back: a WRITE is done when it is in memory.
    #[must_use]
    pub fn writing_back(mut self, options: &BackOptions) -> Self {
        let buffers = self.store.slab().blocks();
        let limit = options.limit.clamp(1, buffers) as usize;
        let sector_bytes = u64::from(options.sector_bytes);
        let dirty = Dirty::new(buffers, limit, self.block_bytes, sector_bytes);
        self.store.write_back(dirty);
        self.back = Some(WriteBack::new(&self.store.dirty, options, &self.losses));
        self
    }

    /// Starts the thread that writes, if it writes back.
    ///
    /// # Errors
    /// The system's error about a thread.
    pub fn begin_writing_back(self: &Arc<Self>) -> io::Result<()> {
        self.back.as_ref().map_or(Ok(()), |back| back.begin(self))
    }

    /// Its buffers, whose steps can be called one by one.
    pub fn store(&self) -> &Store<I> {
        &self.store
    }

    /// The block in which an offset lies, and where in it.
    #[inline]
    fn place(&self, offset: u64) -> (u64, u64) {
        (offset >> self.shift, offset & (self.block_bytes - 1))
    }

    /// How much of a block the media has, bytes: the last one may be shorter.
    fn held_bytes(&self, block: u64) -> u64 {
        let start = block << self.shift;
        let media_bytes = self.media_bytes.load(Ordering::Relaxed);
        media_bytes.saturating_sub(start).min(self.block_bytes)
    }

    /// True when the media ends before an offset. Requests that set out before it became shorter
    /// may still reach there.
    #[inline]
    fn ends_before(&self, end: u64) -> bool {
        end > self.media_bytes.load(Ordering::Relaxed)
    }

    /// How many blocks the media has; the last one may be short.
    fn media_blocks(&self) -> u64 {
        let media_bytes = self.media_bytes.load(Ordering::Relaxed);
        media_bytes.div_ceil(self.block_bytes)
    }

    /// A FLUSH is back. Data that a layer below has lost is not on the media, also if it is cached.
    fn forget_what_is_lost(&self) {
        let last = self.losses.last();
        if self.forgot.fetch_max(last, Ordering::SeqCst) < last {
            self.store.drop_range(0, u64::MAX - 1);
        }
    }

    /// How it writes, as the option says it.
    fn writing(&self) -> &'static str {
        match self.back {
            None => options::THROUGH,
            Some(_) => options::BACK,
        }
    }

    /// The first and the last block that a request touches.
    fn blocks_of(&self, request: &Request<'_>) -> (u64, u64) {
        let (first, _) = self.place(request.offset());
        let (last, _) = self.place(request.offset() + request.length().max(1) - 1);
        (first, last)
    }
}

impl<I: Index> Geom for Cache<I> {
    fn position(&self, _port: u16) -> Option<u64> {
        Some(0)
    }

    #[inline]
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::done(self, request, cx)
    }

    fn resume(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::resume(self, request, cx)
    }

    fn widest_fan_out(&self) -> usize {
        // The blocks at both ends of a DELETE.
        1 + usize::from(self.back.is_some())
    }

    fn cancel(&self, id: BioId) {
        if let Some(back) = &self.back {
            back.cancel(id);
        }
    }

    fn does_own_io(&self) -> bool {
        self.ahead.is_some() || self.back.is_some()
    }

    fn attached(&self, lower: Lower) {
        if let Some(back) = &self.back {
            back.attached(lower.clone());
        }
        if let Some(ahead) = &self.ahead {
            ahead.attached(lower);
        }
    }

    fn settle(&self) -> Result<(), IoError> {
        if let Some(ahead) = &self.ahead {
            ahead.settle();
        }
        self.back.as_ref().map_or(Ok(()), WriteBack::settle)
    }

    fn unsaved(&self) -> Option<Unsaved> {
        let back = self.back.as_ref()?;
        back.unsaved(self.store.left_over())
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    /// A block that cannot be written stays dirty.
    fn notes_each_loss(&self) -> bool {
        self.back.is_some()
    }

    /// While it is open, no other consumer may write below: the cache would not learn of it.
    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        Ok(change.exclusive_while_open())
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        if let Some(back) = &self.back {
            let before = self.media_bytes.load(Ordering::Relaxed);
            return Some(vec![(back.resized(self, before, mediasize_bytes), None)]);
        }
        let before = self.media_bytes.swap(mediasize_bytes, Ordering::Relaxed);
        // From the block in which the shorter media ends: it holds too much, or too little.
        let (first, _) = self.place(before.min(mediasize_bytes));
        self.store.drop_range(first, u64::MAX - 1);
        Some(vec![(mediasize_bytes, None)])
    }

    fn config(&self) -> Vec<Fact> {
        let slab = self.store.slab();
        let size_bytes = u64::from(slab.blocks()) * self.block_bytes;
        let mut facts = vec![
            ("size", size_bytes.to_string()),
            ("block", self.block_bytes.to_string()),
            ("index", I::NAME.to_owned()),
            ("write", self.writing().to_owned()),
        ];
        if let Some(back) = &self.back {
            let dirty = &self.store.dirty;
            let limit_bytes = dirty.limit() as u64 * self.block_bytes;
            facts.push(("dirty_limit", limit_bytes.to_string()));
            facts.push(("dirty", dirty.bytes().to_string()));
            facts.extend(back.facts());
        }
        facts.extend(self.store.lanes.totals().facts());
        facts
    }
}

impl<I: Index> Drop for Cache<I> {
    fn drop(&mut self) {
        if let Some(back) = &mut self.back {
            back.end(self.store.left_over());
        }
    }
}

/// The memory of the machine, bytes.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let (total, unit) = (info.totalram as u64, u64::from(info.mem_unit));
    total.saturating_mul(unit.max(1))
}

fn geom<I: Index>(
    settings: Settings,
    below: &ProviderView,
    name: &str,
) -> Result<Arc<dyn Geom>, BuildError> {
    let (block_bytes, media_bytes) = (settings.block_bytes as u32, below.mediasize_bytes);
    let cache = Cache::<I>::new(settings.buffers, block_bytes, media_bytes);
    let mut cache = cache.map_err(BuildError::system("cache", "mapping memory"))?;
    cache = cache.reading_ahead(settings.ahead_blocks);
    if let Writing::Back {
        limit,
        idle_ns,
        age_ns,
    } = settings.writing
    {
        cache = cache.writing_back(&BackOptions {
            limit,
            idle_ns,
            age_ns,
            sector_bytes: below.sectorsize_bytes,
            name: name.to_owned(),
        });
    }
    let cache = Arc::new(cache);
    let begun = cache.begin_reading_ahead();
    let begun = begun.and_then(|()| cache.begin_writing_back());
    begun.map_err(BuildError::system("cache", "starting a thread"))?;
    Ok(cache)
}

fn build(
    _context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let sectors = Below {
        name: &below.name,
        sector_bytes: u64::from(below.sectorsize_bytes),
    };
    let settings = Settings::read(&arguments, sectors, memory_bytes())?;
    let name = format!("{}.cache", below.name);
    let geom = match settings.index {
        IndexKind::Hash => geom::<Hash>(settings, below, &name)?,
        IndexKind::Splay => geom::<Splay>(settings, below, &name)?,
    };
    let provider = provider_over(name, below);
    Ok(Plan::of(provider, geom))
}
