//! The connections: how many each peer has, and which one makes room when there are too many.
//!
//! A peer is a user of this machine, or another host. When a peer, or all together, have as many
//! connections as they may, the one that has been idle for longest makes room: one of that peer, or
//! of the peer that has most. A connection is idle with nothing in the stack: it has requested
//! nothing, or does not read its replies. Those that have never got a reply go first. Connections
//! with something in the stack, and those that moved a moment ago, stay; then the new one waits. So
//! a new client is served beside any number of silent ones, and a peer that connects again and
//! again takes places from itself.

use super::Limits;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A connection active within this time makes no room, nanoseconds: a client that has just
/// connected has not had the time to say anything.
const MOVED_NS: u64 = 100_000_000;

/// The same for a connection that has received replies: its client may be computing.
const MOVED_SERVED_NS: u64 = 800_000_000;

/// Connections that were told to make room and have not ended yet, at most.
const LEAVING_MAX: usize = 64;

/// Bits of an IPv6 address that are one host's, or one customer's: a /64.
const HOST_BITS: u32 = 64;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// A user of this machine, by a Unix socket.
    User(u32),
    /// A host; of an IPv6 address the network.
    Host(IpAddr),
}

impl Peer {
    /// A host by its address.
    pub fn host(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            IpAddr::V6(it) => {
                let network = u128::from(it) >> HOST_BITS << HOST_BITS;
                IpAddr::V6(Ipv6Addr::from(if it.is_loopback() { 1 } else { network }))
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }

    /// Its uid on this machine.
    pub fn user(self) -> Option<u32> {
        match self {
            Self::User(uid) => Some(uid),
            Self::Host(_) => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Host(address) => address.fmt(f),
        }
    }
}

/// When a connection has last moved, as its thread knows it.
pub(super) struct Presence {
    moved_ns: AtomicU64,
    /// It has got a reply.
    served: AtomicBool,
}

impl Presence {
    /// It has moved now.
    pub fn new(now_ns: u64) -> Arc<Self> {
        Arc::new(Self {
            moved_ns: AtomicU64::new(now_ns),
            served: AtomicBool::new(false),
        })
    }

    /// It has last moved then; while it has something in the stack it moves all the time.
    #[inline]
    pub fn note(&self, moved_ns: u64, in_stack: bool) {
        let moved_ns = if in_stack { u64::MAX } else { moved_ns };
        self.moved_ns.store(moved_ns, Ordering::Relaxed);
    }

    /// It has got a reply.
    #[inline]
    pub fn note_served(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// Whether it may make room, and before which others: a connection without any reply comes
    /// first, then the longest inactive one.
    fn idle_since(&self, now_ns: u64) -> Option<(bool, u64)> {
        let served = self.served.load(Ordering::Relaxed);
        let stays_ns = if served { MOVED_SERVED_NS } else { MOVED_NS };
        let moved_ns = self.moved_ns.load(Ordering::Relaxed);
        (moved_ns <= now_ns.saturating_sub(stays_ns)).then_some((served, moved_ns))
    }
}

struct Member {
    peer: Peer,
    presence: Arc<Presence>,
    leaving: bool,
}

/// The decision about a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeatDecision {
    /// There is a place.
    Free,
    /// There is one when this one has left.
    Instead(u64),
    /// There is none now.
    Wait,
}

/// All connections, by numbers that are used once.
pub(super) struct Census {
    connections_max: usize,
    per_peer_max: usize,
    members: HashMap<u64, Member>,
    /// Connections that are not leaving.
    counts: HashMap<Peer, usize>,
    leaving: usize,
    next: u64,
}

impl Census {
    pub fn new(limits: &Limits) -> Self {
        Self {
            connections_max: limits.connections,
            per_peer_max: limits.connections_per_peer.min(limits.connections),
            members: HashMap::new(),
            counts: HashMap::new(),
            leaving: 0,
            next: 0,
        }
    }

    /// Where a new connection of a peer finds its place.
    pub fn place(&self, peer: Peer, now_ns: u64) -> SeatDecision {
        let staying = self.members.len() - self.leaving;
        let full = staying >= self.connections_max;
        let from = if self.count(peer) >= self.per_peer_max {
            peer
        } else if full {
            self.with_most().unwrap_or(peer)
        } else {
            return SeatDecision::Free;
        };
        self.instead(from, now_ns)
            .map_or(SeatDecision::Wait, SeatDecision::Instead)
    }

    /// The connection that makes room where the system has no descriptor for a new one.
    pub fn dispensable(&self, now_ns: u64) -> Option<u64> {
        self.instead(self.with_most()?, now_ns)
    }

    /// The peer with most connections.
    fn with_most(&self) -> Option<Peer> {
        let most = self.counts.iter().max_by_key(|(_, count)| **count);
        most.map(|(peer, _)| *peer)
    }

    /// The connection of a peer that leaves for a new one: the longest idle.
    fn instead(&self, peer: Peer, now_ns: u64) -> Option<u64> {
        if self.leaving >= LEAVING_MAX {
            return None;
        }
        let members = self.members.iter();
        let idle = members
            .filter(|(_, it)| it.peer == peer && !it.leaving)
            .filter_map(|(id, it)| Some((it.presence.idle_since(now_ns)?, *id)));
        idle.min().map(|(_, id)| id)
    }

    /// Takes a connection in.
    pub fn add(&mut self, peer: Peer, presence: Arc<Presence>) -> u64 {
        self.next += 1;
        *self.counts.entry(peer).or_default() += 1;
        let member = Member {
            peer,
            presence,
            leaving: false,
        };
        self.members.insert(self.next, member);
        self.next
    }

    /// A connection has been told to make room.
    pub fn leaves(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if !std::mem::replace(&mut member.leaving, true) {
            self.leaving += 1;
            let peer = member.peer;
            self.discount(peer);
        }
    }

    /// A connection has ended.
    pub fn remove(&mut self, id: u64) {
        match self.members.remove(&id) {
            Some(member) if member.leaving => self.leaving -= 1,
            Some(member) => self.discount(member.peer),
            None => {}
        }
    }

    fn count(&self, peer: Peer) -> usize {
        self.counts.get(&peer).copied().unwrap_or(0)
    }

    fn discount(&mut self, peer: Peer) {
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn census(connections: usize, connections_per_peer: usize) -> Census {
        Census::new(&Limits {
            connections,
            connections_per_peer,
            ..Limits::default()
        })
    }

    #[test]
    fn the_one_that_was_idle_for_longest_makes_room_for_its_peer() {
        let mut census = census(10, 2);
        let (mine, other) = (Peer::User(1), Peer::User(2));
        let presence = Presence::new(5);
        let old = census.add(mine, Presence::new(7));
        census.add(other, presence);
        let young = census.add(mine, Presence::new(8));
        assert_eq!(census.place(mine, SECOND_NS), SeatDecision::Instead(old));
        assert_eq!(census.place(other, SECOND_NS), SeatDecision::Free);
        census.leaves(old);
        assert_eq!(census.place(mine, SECOND_NS), SeatDecision::Free);
        census.add(mine, Presence::new(9));
        assert_eq!(census.place(mine, SECOND_NS), SeatDecision::Instead(young));
        census.remove(old);
        assert_eq!(census.place(mine, SECOND_NS), SeatDecision::Instead(young));
    }

    #[test]
    fn where_the_system_has_no_descriptor_the_peer_with_most_gives_one() {
        let mut census = census(10, 10);
        assert_eq!(census.dispensable(SECOND_NS), None);
        census.add(Peer::User(1), Presence::new(1));
        let old = census.add(Peer::User(2), Presence::new(2));
        census.add(Peer::User(2), Presence::new(3));
        assert_eq!(census.dispensable(SECOND_NS), Some(old));
    }

    #[test]
    fn who_moves_or_has_something_in_the_stack_stays() {
        let mut census = census(10, 1);
        let presence = Presence::new(SECOND_NS);
        let id = census.add(Peer::User(1), Arc::clone(&presence));
        assert_eq!(
            census.place(Peer::User(1), SECOND_NS + 1000),
            SeatDecision::Wait
        );
        let later_ns = 2 * SECOND_NS;
        assert_eq!(
            census.place(Peer::User(1), later_ns),
            SeatDecision::Instead(id)
        );
        presence.note(SECOND_NS, true);
        assert_eq!(census.place(Peer::User(1), later_ns), SeatDecision::Wait);
    }

    #[test]
    fn who_never_got_a_reply_goes_first() {
        let mut census = census(10, 2);
        let old = Presence::new(1);
        old.note_served();
        census.add(Peer::User(1), old);
        let silent = census.add(Peer::User(1), Presence::new(SECOND_NS));
        let place = census.place(Peer::User(1), 2 * SECOND_NS);
        assert_eq!(place, SeatDecision::Instead(silent));
    }

    #[test]
    fn the_peer_with_most_makes_room_when_there_are_too_many() {
        let mut census = census(4, 3);
        let many = Peer::host([10, 0, 0, 1].into());
        let first = census.add(many, Presence::new(1));
        census.add(many, Presence::new(2));
        census.add(many, Presence::new(3));
        census.add(Peer::User(5), Presence::new(0));
        let new = Peer::User(6);
        assert_eq!(census.place(new, SECOND_NS), SeatDecision::Instead(first));
    }

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let host = |text: &str| Peer::host(text.parse().expect("an address"));
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:1"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("::1"), host("::2"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
    }
}
