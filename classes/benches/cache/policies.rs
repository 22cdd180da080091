//! Other replacement policies, simulated, to compare hit ratios with.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// A cache of keys alone.
pub trait Policy {
    /// Asks for a key, which is in the cache afterwards; true when it was before.
    fn access(&mut self, key: u64) -> bool;
}

/// Keys in the order in which they were put, oldest first.
#[derive(Default)]
struct Ordered {
    stamps: HashMap<u64, u64>,
    keys: BTreeMap<u64, u64>,
    next: u64,
}

impl Ordered {
    fn put(&mut self, key: u64) {
        self.remove(key);
        self.next += 1;
        self.stamps.insert(key, self.next);
        self.keys.insert(self.next, key);
    }

    fn remove(&mut self, key: u64) -> bool {
        let stamp = self.stamps.remove(&key);
        stamp.is_some_and(|stamp| self.keys.remove(&stamp).is_some())
    }

    fn pop(&mut self) -> Option<u64> {
        let (_, key) = self.keys.pop_first()?;
        self.stamps.remove(&key);
        Some(key)
    }

    fn has(&self, key: u64) -> bool {
        self.stamps.contains_key(&key)
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// The block that was used least recently leaves first (LRU).
pub struct Lru {
    keys: Ordered,
    room: usize,
}

impl Lru {
    pub fn new(room: usize) -> Self {
        let keys = Ordered::default();
        Self { keys, room }
    }
}

impl Policy for Lru {
    fn access(&mut self, key: u64) -> bool {
        let hit = self.keys.has(key);
        self.keys.put(key);
        if self.keys.len() > self.room {
            self.keys.pop();
        }
        hit
    }
}

/// SIEVE: Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi, NSDI 2024.
pub struct Sieve {
    /// Oldest first; `None` where one was taken out.
    queue: Vec<Option<u64>>,
    visited: HashMap<u64, bool>,
    hand: usize,
    room: usize,
}

impl Sieve {
    pub fn new(room: usize) -> Self {
        Self {
            queue: Vec::new(),
            visited: HashMap::new(),
            hand: 0,
            room,
        }
    }

    fn evict(&mut self) {
        loop {
            if self.hand >= self.queue.len() {
                self.queue.retain(Option::is_some);
                self.hand = 0;
            }
            let place = &mut self.queue[self.hand];
            self.hand += 1;
            let Some(key) = *place else { continue };
            match self.visited.get_mut(&key) {
                Some(visited) if *visited => *visited = false,
                _ => {
                    *place = None;
                    self.visited.remove(&key);
                    return;
                }
            }
        }
    }
}

impl Policy for Sieve {
    fn access(&mut self, key: u64) -> bool {
        if let Some(visited) = self.visited.get_mut(&key) {
            *visited = true;
            return true;
        }
        if self.visited.len() >= self.room {
            self.evict();
        }
        self.queue.push(Some(key));
        self.visited.insert(key, false);
        false
    }
}

/// CLOCK with one bit.
pub struct Clock {
    queue: VecDeque<u64>,
    visited: HashMap<u64, bool>,
    room: usize,
}

impl Clock {
    pub fn new(room: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            visited: HashMap::new(),
            room,
        }
    }
}

impl Policy for Clock {
    fn access(&mut self, key: u64) -> bool {
        if let Some(visited) = self.visited.get_mut(&key) {
            *visited = true;
            return true;
        }
        while self.visited.len() >= self.room {
            let Some(oldest) = self.queue.pop_front() else { break };
            if self.visited.insert(oldest, false) == Some(true) {
                self.queue.push_back(oldest);
            } else {
                self.visited.remove(&oldest);
            }
        }
        self.queue.push_back(key);
        self.visited.insert(key, false);
        false
    }
}

/// ARC: N. Megiddo, D. S. Modha, FAST 2003.
pub struct Arc {
    once: Ordered,
    often: Ordered,
    gone_once: Ordered,
    gone_often: Ordered,
    target: usize,
    room: usize,
}

impl Arc {
    pub fn new(room: usize) -> Self {
        Self {
            once: Ordered::default(),
            often: Ordered::default(),
            gone_once: Ordered::default(),
            gone_often: Ordered::default(),
            target: 0,
            room,
        }
    }

    fn replace(&mut self, was_often: bool) {
        let once = self.once.len();
        if once > 0 && (once > self.target || (was_often && once == self.target)) {
            if let Some(key) = self.once.pop() {
                self.gone_once.put(key);
            }
        } else if let Some(key) = self.often.pop() {
            self.gone_often.put(key);
        }
    }
}

impl Policy for Arc {
    fn access(&mut self, key: u64) -> bool {
        if self.once.remove(key) || self.often.has(key) {
            self.often.put(key);
            return true;
        }
        let (ones, oftens) = (self.gone_once.len().max(1), self.gone_often.len().max(1));
        if self.gone_once.remove(key) {
            self.target = self.room.min(self.target + (oftens / ones).max(1));
            self.replace(false);
            self.often.put(key);
        } else if self.gone_often.remove(key) {
            self.target = self.target.saturating_sub((ones / oftens).max(1));
            self.replace(true);
            self.often.put(key);
        } else {
            let (once, gone_once) = (self.once.len(), self.gone_once.len());
            let all = once + gone_once + self.often.len() + self.gone_often.len();
            if once + gone_once == self.room {
                if once < self.room {
                    self.gone_once.pop();
                    self.replace(false);
                } else {
                    self.once.pop();
                }
            } else if all >= self.room {
                if all == 2 * self.room {
                    self.gone_often.pop();
                }
                self.replace(false);
            }
            self.once.put(key);
        }
        false
    }
}
