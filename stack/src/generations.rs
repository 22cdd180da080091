//! Data that is changed under a lock and seen by others as numbered, immutable pictures.
//!
//! ```text
//!   change:   lock data, change it, number += 1, forget the newest picture
//!   newest:   lock data, read the number, take the picture of that number or draw one
//!   number:   one load; a reader whose picture has another number asks for the newest
//! ```
//!
//! The invariants that the models check: a picture shows the data as of its number, and a thread
//! that knows of a change (through anything that orders threads) sees it in the next picture.

use std::sync::{Arc, Weak};
use sync::{AtomicU64, Mutex, Ordering};

#[cfg(all(test, loom))]
#[path = "generations_loom.rs"]
mod generations_loom;

/// The primitives: those of the model checker when there is one.
mod sync {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicU64, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicU64, Ordering};
    #[cfg(not(loom))]
    pub use ugeom_machine::mutex::Mutex;
    #[cfg(loom)]
    pub use ugeom_machine::mutex::modelled::Mutex;
}

/// A picture knows the generation that it shows.
pub(crate) trait Picture {
    /// The number that it was drawn under.
    fn generation(&self) -> u64;
}

struct Guarded<T, P> {
    data: T,
    /// The picture of the current number, if it was asked for.
    newest: Option<Arc<P>>,
    /// Pictures that may still be held.
    live: Vec<Weak<P>>,
}

/// The data, and its pictures.
pub(crate) struct Generations<T, P> {
    number: AtomicU64,
    guarded: Mutex<Guarded<T, P>>,
}

impl<T, P: Picture> Generations<T, P> {
    pub(crate) fn new(data: T) -> Self {
        let guarded = Guarded {
            data,
            newest: None,
            live: Vec::new(),
        };
        Self {
            number: AtomicU64::new(1),
            guarded: Mutex::new(guarded),
        }
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Looks at the data, or changes what no picture shows.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        with(&mut self.guarded.lock().data)
    }

    /// Changes the data; every picture is old from now on, and nothing here keeps one alive.
    pub(crate) fn change<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        let mut guarded = self.guarded.lock();
        let result = with(&mut guarded.data);
        self.number.fetch_add(1, Ordering::Release);
        let old = guarded.newest.take();
        drop(guarded);
        // The last holder of a picture frees what it shows; that may take its time, unlocked.
        drop(old);
        result
    }

    /// The picture of the current number, drawn if it was not asked for yet. The thread that draws
    /// may note in the data what no picture shows.
    pub(crate) fn newest(&self, draw: impl FnOnce(&mut T, u64) -> P) -> Arc<P> {
        let mut guarded = self.guarded.lock();
        if let Some(newest) = &guarded.newest {
            return Arc::clone(newest);
        }
        let number = self.number.load(Ordering::Acquire);
        let picture = Arc::new(draw(&mut guarded.data, number));
        guarded.live.retain(|known| known.strong_count() > 0);
        guarded.live.push(Arc::downgrade(&picture));
        guarded.newest = Some(Arc::clone(&picture));
        picture
    }

    /// All pictures that are held.
    pub(crate) fn live(&self) -> Vec<Arc<P>> {
        let guarded = self.guarded.lock();
        guarded.live.iter().filter_map(Weak::upgrade).collect()
    }

    /// The picture of a number, while it is held.
    pub(crate) fn of(&self, number: u64) -> Option<Arc<P>> {
        let guarded = self.guarded.lock();
        guarded
            .live
            .iter()
            .filter_map(Weak::upgrade)
            .find(|p| p.generation() == number)
    }
}
