//! Contexts in the child of fork(2), which has this thread and no worker, and no ring: io_uring's
//! memory is not inherited.
//!
//! A context of the parent is an *orphan* in the child: it takes no requests, shows what had ended,
//! and is forgotten without waiting for any thread. The one lock that this takes, around what has
//! ended, is held through the fork, so that no thread which the child lacks can have it.
//!
//! Source: pthread_atfork(3).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use ugeom_machine::mutex::Mutex;

use crate::done::TakenGuard;
use crate::shared::Shared;

/// How often this process was forked from another, since the first context of any of them.
static FORKS: AtomicU32 = AtomicU32::new(0);

static CONTEXTS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// For how long a fork waits for a lock: an endless wait would block a fork in a callback
/// that is made under that very lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// A context while its process forks.
struct Held {
    /// `None`: it could not be had. Borrows from `shared`, so it is dropped before.
    taken: Option<TakenGuard<'static>>,
    shared: Arc<Shared>,
}

thread_local! {
    /// The locks of this thread, which forks.
    static HELD: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

struct Fork {
    /// Before the list is free again.
    contexts: Vec<Held>,
    _list: Option<MutexGuard<'static, Vec<Weak<Shared>>>>,
}

/// The number that tells this process from its parents.
#[inline]
pub(crate) fn number() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Makes a context known.
pub(crate) fn register(shared: &Arc<Shared>) {
    static HANDLERS: OnceLock<()> = OnceLock::new();
    HANDLERS.get_or_init(|| {
        // SAFETY: the handlers do what is allowed in a thread that forks, and in its child: they
        // take and give back locks that the same thread holds. Without memory for them (ENOMEM)
        // there is none for a context either.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
    let mut contexts = CONTEXTS.lock();
    contexts.retain(|context| context.strong_count() > 0);
    contexts.push(Arc::downgrade(shared));
}

extern "C" fn prepare() {
    let list = list();
    let hold = |shared: Arc<Shared>| {
        let end = Instant::now() + LOCK_TIMEOUT;
        let mut taken = shared.done.try_hold();
        while taken.is_none() && Instant::now() < end {
            std::thread::yield_now();
            taken = shared.done.try_hold();
        }
        // SAFETY: the guard borrows from what the `Arc` beside it keeps. Fields are dropped in the
        // order of their declaration, the guard first, and `release` drops it first, too.
        let taken = unsafe {
            std::mem::transmute::<Option<TakenGuard<'_>>, Option<TakenGuard<'static>>>(taken)
        };
        Held { taken, shared }
    };
    let contexts = list.iter().flat_map(|list| list.iter());
    let contexts = contexts.filter_map(Weak::upgrade).map(hold).collect();
    let fork = Fork {
        contexts,
        _list: list,
    };
    HELD.with_borrow_mut(|held| *held = Some(fork));
}

fn list() -> Option<MutexGuard<'static, Vec<Weak<Shared>>>> {
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match CONTEXTS.try_lock() {
            Some(list) => return Some(list),
            None if Instant::now() >= end => return None,
            None => std::thread::yield_now(),
        }
    }
}

extern "C" fn parent() {
    let fork = HELD.with_borrow_mut(Option::take);
    release(fork, |_| {});
}

extern "C" fn child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let fork = HELD.with_borrow_mut(Option::take);
    release(fork, |shared| shared.lose_results());
}

/// Gives all locks back; `lost` hears of contexts whose lock was not had.
fn release(fork: Option<Fork>, lost: impl Fn(&Shared)) {
    let Some(mut fork) = fork else { return };
    for Held { taken, shared } in fork.contexts.drain(..) {
        if taken.is_none() {
            lost(&shared);
        }
        drop(taken);
        // The last owner frees the context's memory; in the child the workers own it for ever.
        drop(shared);
    }
}
