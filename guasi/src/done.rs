//! Ended requests that were not fetched: per priority a stack that workers push to and a list that
//! fetchers take from, and the place where fetchers sleep.
//!
//! ```text
//!   workers --push--> stack of the priority --taken whole, turned around--> list --> fetcher
//! ```
//!
//! A push is one exchange. The links between requests lie apart from the requests, sixteen to a
//! cache line, so that following a chain does not wait for the line of each request in turn.
//!
//! **A sleeping fetcher is woken once.** Before it sleeps it leaves the number that it misses in
//! `missing`, and looks once more; a worker that pushes after that look finds the number, counts it
//! down, and the one that reaches zero wakes. A push that both the look and the count saw wakes too
//! early, which costs a wake-up and no more. (Every change of `missing` is a read-modify-write, so
//! that all of them are in one order for all threads.) While none sleeps, `missing` is 0 and no
//! thread writes to its cache line.

use crate::parker::Parker;
use crate::sync::{
    AtomicI64, AtomicU32, Mutex, MutexGuard, Ordering, Padded, Zeroes, fence, zeroes_u32,
};

/// The link of each slot to the next one in whatever list it is; 0 is the end, else slot + 1.
pub(crate) type Links = Zeroes<AtomicU32>;

pub(crate) struct Done {
    stacks: Box<[Padded<AtomicU32>]>,
    links: Links,
    taken: Padded<Mutex<Taken>>,
    sleep: Padded<Sleep>,
}

#[derive(Default)]
struct Sleep {
    missing: AtomicI64,
    /// How many sleep, or are about to.
    fetchers: Mutex<u32>,
    sleepers: Parker,
}

/// Requests in the hands of the fetchers: a list for each priority, as (first, last) links.
pub(crate) struct Taken {
    lists: Box<[(u32, u32)]>,
    count: usize,
}

/// Ended requests belong to a fetcher, or are held through a fork.
#[cfg(not(all(loom, test)))]
pub(crate) type TakenGuard<'a> = MutexGuard<'a, Taken>;

/// The result of `take`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// So many were handed over.
    Taken(usize),
    /// There are only so many, and none was handed over.
    Only(usize),
}

impl Done {
    /// `None` without memory for it.
    pub(crate) fn new(priorities: usize, slots: usize) -> Option<Done> {
        let empty = || Padded(AtomicU32::new(0));
        Some(Done {
            stacks: (0..priorities).map(|_| empty()).collect(),
            links: zeroes_u32(slots)?,
            taken: Padded(Mutex::new(Taken {
                lists: vec![(0, 0); priorities].into(),
                count: 0,
            })),
            sleep: Padded(Sleep::default()),
        })
    }

    /// Adds a request that has ended, and wakes sleepers if it is the last that they miss. Returns
    /// whether it was.
    pub(crate) fn push(&self, priority: usize, slot: u32) -> bool {
        let stack = &self.stacks[priority];
        let mut newest = stack.load(Ordering::Relaxed);
        loop {
            self.links[slot as usize].store(newest, Ordering::Relaxed);
            // Release: the link and the results go before. SeqCst: see `is_awaited`.
            let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
            match stack.compare_exchange_weak(newest, slot + 1, success, failure) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        let wakes = self.is_awaited() && self.sleep.missing.fetch_sub(1, Ordering::AcqRel) == 1;
        if wakes {
            self.sleep.sleepers.wake_all();
        }
        wakes
    }

    /// Whether a fetcher sleeps, after a push. Push and look here, and announcement and look in
    /// `announce`, are sequentially consistent: one of the two sides sees the other. The model
    /// checker takes such accesses for acquire and release only, and gets a fence.
    pub(crate) fn is_awaited(&self) -> bool {
        #[cfg(all(loom, test))]
        fence(Ordering::SeqCst);
        self.sleep.missing.load(Ordering::SeqCst) > 0
    }

    /// When at least `min` requests can be had, hands up to `max` of them to `each`, those of the
    /// lowest priority number first, then in the order in which they ended; else tells how many
    /// there are. Looks at `priorities` priorities. `soon` hears of a request before `each` does.
    pub(crate) fn take(
        &self,
        priorities: usize,
        (min, max): (usize, usize),
        mut each: impl FnMut(u32),
        soon: impl FnMut(u32),
    ) -> Take {
        let mut taken = self.taken.lock();
        self.collect(&mut taken, priorities, soon);
        if taken.count < min {
            return Take::Only(taken.count);
        }
        let mut count = 0;
        for priority in 0..priorities {
            let (first, last) = taken.lists[priority];
            let mut first = first;
            while first != 0 && count < max {
                let slot = first - 1;
                first = self.links[slot as usize].load(Ordering::Relaxed);
                each(slot);
                count += 1;
            }
            taken.lists[priority] = if first == 0 { (0, 0) } else { (first, last) };
        }
        taken.count -= count;
        Take::Taken(count)
    }

    /// Keeps all fetchers away, if none is at work.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn try_hold(&self) -> Option<TakenGuard<'_>> {
        self.taken.try_lock()
    }

    fn collect(
        &self,
        taken: &mut MutexGuard<'_, Taken>,
        priorities: usize,
        mut soon: impl FnMut(u32),
    ) {
        for priority in 0..priorities {
            if self.stacks[priority].load(Ordering::Relaxed) != 0 {
                taken.count += self.turn_around(&mut taken.lists[priority], priority, &mut soon);
            }
        }
    }

    /// Moves requests that workers pushed to the list of the priority. Returns how many.
    fn turn_around(
        &self,
        list: &mut (u32, u32),
        priority: usize,
        soon: &mut impl FnMut(u32),
    ) -> usize {
        // Acquire: pairs with the release of every push on the chain.
        let newest = self.stacks[priority].swap(0, Ordering::Acquire);
        let (mut turned, mut rest, mut count) = (0, newest, 0);
        while rest != 0 {
            soon(rest - 1);
            let link = &self.links[rest as usize - 1];
            let next = link.load(Ordering::Relaxed);
            link.store(turned, Ordering::Relaxed);
            turned = rest;
            rest = next;
            count += 1;
        }
        match *list {
            (0, _) => *list = (turned, newest),
            (first, last) => {
                self.links[last as usize - 1].store(turned, Ordering::Relaxed);
                *list = (first, newest);
            }
        }
        count
    }

    /// Whether workers have pushed something that no fetcher has taken.
    pub(crate) fn has_new(&self, priorities: usize) -> bool {
        let mut stacks = self.stacks[..priorities].iter();
        stacks.any(|stack| stack.load(Ordering::SeqCst) != 0)
    }

    /// Whether there is anything to fetch.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn has_any(&self, priorities: usize) -> bool {
        self.has_new(priorities) || self.taken.lock().count != 0
    }

    /// How many there are to fetch.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn count(&self, priorities: usize) -> usize {
        let mut taken = self.taken.lock();
        self.collect(&mut taken, priorities, |_| ());
        taken.count
    }

    /// Sleeps by `park` until there are `missing` requests to fetch more than the `seen` that the
    /// caller saw. Returns at once when there are no longer as many as it saw, or more. It may
    /// return for no reason. The push of the last one missed wakes the threads that sleep on the
    /// parker, and tells the thread that pushed.
    pub(crate) fn sleep(
        &self,
        priorities: usize,
        missing: usize,
        seen: usize,
        park: impl FnOnce(&Parker, u32),
    ) {
        let count = self.sleep.sleepers.count();
        self.announce(missing as i64);
        // Another fetcher may have moved requests from the stacks to the lists, or taken some,
        // since the caller looked: then the number that it announced is wrong.
        if !self.has_new(priorities) && self.taken.lock().count == seen {
            park(&self.sleep.sleepers, count);
        }
        let mut fetchers = self.sleep.fetchers.lock();
        *fetchers -= 1;
        if *fetchers == 0 {
            self.sleep.missing.swap(0, Ordering::AcqRel);
        }
    }

    /// Lets every sleeper return.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn wake_all(&self) {
        self.sleep.sleepers.wake_all();
    }

    /// Wakes the sleepers to check again: the source of results has changed.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn stir(&self) {
        if self.is_awaited() {
            self.sleep.sleepers.wake_all();
        }
    }

    /// Says that a fetcher misses `missing` requests. The smallest number of all that sleep stands.
    fn announce(&self, missing: i64) {
        let mut fetchers = self.sleep.fetchers.lock();
        let now = self.sleep.missing.load(Ordering::Relaxed);
        if *fetchers == 0 || now <= 0 || now > missing {
            self.sleep.missing.swap(missing, Ordering::SeqCst);
        }
        *fetchers += 1;
        drop(fetchers);
        fence(Ordering::SeqCst);
    }

    #[cfg(not(all(loom, test)))]
    pub(crate) fn links(&self) -> &[AtomicU32] {
        &self.links
    }
}
