//! What requests in flight cost, and how much of that a connection and all of a worker's may have.

use super::Limits;
use super::operation::STATUS_EXTENTS;
use crate::buffers::Buffers;
use crate::span::{PIECE_BYTES, Span};
use ugeom_format::wire::nbd::{Request, command};

/// What a request costs of the budget beside its data, bytes: about what is kept for it.
pub(super) const REQUEST_COST_BYTES: usize = 256;

/// What a BLOCK_STATUS costs, bytes: its stretches as they are found, and as they are sent.
const STATUS_COST_BYTES: usize = STATUS_EXTENTS * 24;

/// A request that costs no more than this, bytes, is served whatever others have in flight.
const SMALL_BYTES: usize = (64 << 10) + REQUEST_COST_BYTES;

/// What one connection has in flight.
#[derive(Default)]
pub(super) struct Account {
    /// Requests that were read and whose replies are not sent.
    pub requests: usize,
    /// Bytes, as [`Limits`] count them.
    pub bytes: usize,
}

/// What all connections of a worker have in flight.
pub(super) struct Budget {
    pub limits: Limits,
    /// This worker's share of the bytes in flight.
    bytes_max: usize,
    bytes: usize,
}

impl Budget {
    /// Nothing in flight yet, on one of so many workers.
    pub fn new(limits: Limits, workers: usize) -> Self {
        Self {
            limits,
            bytes_max: limits.bytes / workers.max(1),
            bytes: 0,
        }
    }

    /// Begins a request that costs so much.
    #[inline]
    pub fn charge(&mut self, account: &mut Account, cost_bytes: usize) {
        account.requests += 1;
        account.bytes += cost_bytes;
        self.bytes += cost_bytes;
    }

    /// Ends as many requests.
    #[inline]
    pub fn release(&mut self, account: &mut Account, requests: usize, cost_bytes: usize) {
        account.requests -= requests;
        account.bytes -= cost_bytes;
        self.bytes -= cost_bytes;
    }

    /// Whether there is room for any request.
    #[inline]
    pub fn has_room(&self, account: &Account) -> bool {
        account.requests < self.limits.requests
            && account.bytes < self.limits.bytes_per_connection
            && self.bytes < self.bytes_max
    }

    /// Whether a request is served although there is no room: a small one that is its client's
    /// only one, so that no client can take all the room there is from others.
    pub fn is_served_always(account: &Account, cost_bytes: usize) -> bool {
        account.requests == 0 && cost_bytes <= SMALL_BYTES
    }
}

/// What a request costs of the budget, bytes: the memory that it may take at a time.
pub(super) fn cost(request: &Request, sector_bytes: u32) -> usize {
    let sector = u64::from(sector_bytes);
    let range = request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes);
    let span = Span::new(&range, sector);
    let data = match request.command {
        command::READ => Buffers::size_of(span.sectors),
        // What changes in part is read into two buffers more.
        command::WRITE if !span.is_whole() => {
            Buffers::size_of(span.sectors) + 2 * Buffers::size_of(sector as usize)
        }
        command::WRITE => Buffers::size_of(span.sectors),
        // Piece after piece, where no layer can do better.
        command::CACHE | command::WRITE_ZEROES => {
            Buffers::size_of(span.sectors.min(PIECE_BYTES.max(sector) as usize))
        }
        command::BLOCK_STATUS => STATUS_COST_BYTES,
        _ => 0,
    };
    data + REQUEST_COST_BYTES
}
