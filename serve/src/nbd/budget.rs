//! The cost of requests in flight, and the shares of a connection and of all of a worker's.

use super::Limits;
use super::operation::STATUS_EXTENTS;
use crate::buffers::Buffers;
use ugeom_format::wire::nbd::{ExtendedRequest, command};
use ugeom_stack::unaligned::{PIECE_BYTES, Span};

/// The cost of a request beside its data, bytes: about the memory of its state.
pub(super) const REQUEST_COST_BYTES: usize = 256;

/// The cost of a BLOCK_STATUS, bytes: its extents as they are found, and as they are sent.
const STATUS_COST_BYTES: usize = STATUS_EXTENTS * 24;

/// The bytes that every connection may have in flight at any time.
const GUARANTEED_BYTES: usize = (64 << 10) + REQUEST_COST_BYTES;

/// The bytes that a connection may have in flight before it has shown that it reads its replies.
const FIRST_WINDOW_BYTES: usize = 2 << 20;

/// Lengths of the parts of a request for which there is no room as a whole, bytes: the first that
/// there is room for.
const PART_BYTES: [u64; 3] = [1 << 20, 256 << 10, 64 << 10];

/// The requests in flight of one connection.
pub(super) struct Account {
    /// Requests that were read and whose replies are not sent.
    pub requests: usize,
    /// Bytes, as [`Limits`] count them.
    bytes: usize,
    /// The bytes that it may have in flight while there is room. It grows by what was answered, so
    /// that memory goes to clients that read.
    window_bytes: usize,
}

impl Account {
    /// Of a client that is not known yet.
    pub fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            window_bytes: FIRST_WINDOW_BYTES,
        }
    }
}

/// The requests in flight of all connections of a worker.
///
/// Each connection has a small stretch that is always there. Beyond it the bytes are shared by the
/// connections that have requests in flight, to equal parts, and none gets much more than what its
/// client has read already: connecting anew, or reading nothing, brings no memory.
pub(super) struct Budget {
    pub limits: Limits,
    /// This worker's part of the bytes in flight.
    bytes_max: usize,
    bytes: usize,
    /// Connections with requests in flight.
    active: usize,
    /// `bytes_max` divided by them.
    share_bytes: usize,
}

impl Budget {
    /// Nothing in flight yet, on one of so many workers.
    pub fn new(limits: Limits, workers: usize) -> Self {
        let bytes_max = limits.bytes / workers.max(1);
        Self {
            limits,
            bytes_max,
            bytes: 0,
            active: 0,
            share_bytes: bytes_max,
        }
    }

    /// Begins a request that costs so much.
    #[inline]
    pub fn charge(&mut self, account: &mut Account, cost_bytes: usize) {
        if account.requests == 0 {
            self.active += 1;
            self.share_bytes = self.bytes_max / self.active;
        }
        account.requests += 1;
        account.bytes += cost_bytes;
        self.bytes += cost_bytes;
    }

    /// Ends as many requests.
    #[inline]
    pub fn release(&mut self, account: &mut Account, requests: usize, cost_bytes: usize) {
        if requests > 0 && account.requests == requests {
            self.active -= 1;
            self.share_bytes = self.bytes_max / self.active.max(1);
        }
        account.requests -= requests;
        account.bytes -= cost_bytes;
        account.window_bytes = account.window_bytes.saturating_add(cost_bytes);
        self.bytes -= cost_bytes;
    }

    /// Whether a request that costs so much may begin.
    #[inline]
    pub fn admits(&self, account: &Account, cost_bytes: usize) -> bool {
        if account.requests >= self.limits.requests {
            return false;
        }
        let bytes = account.bytes + cost_bytes;
        bytes <= GUARANTEED_BYTES
            || (bytes <= self.window_bytes(account) && self.bytes + cost_bytes <= self.bytes_max)
    }

    /// Whether there may be room for a request of a connection that was held back: a quick look.
    #[inline]
    pub fn has_any_room(&self, account: &Account) -> bool {
        account.requests == 0 || self.admits(account, REQUEST_COST_BYTES)
    }

    /// Whether there is no room for a request that costs so much even when its connection has
    /// nothing else in flight.
    pub fn is_too_much(&self, account: &Account, cost_bytes: usize) -> bool {
        cost_bytes > self.window_bytes(account).max(GUARANTEED_BYTES)
            || (account.requests == 0 && !self.admits(account, cost_bytes))
    }

    /// The next part of a request, from `at` on: as much as may begin now, and something in any
    /// case when its connection has nothing else in flight; `None` otherwise.
    pub fn part(
        &self,
        account: &Account,
        request: &ExtendedRequest,
        at: u64,
        sector_bytes: u32,
    ) -> Option<ExtendedRequest> {
        let start = request.offset_bytes + at;
        let left = request.length_bytes - at;
        let sector = u64::from(sector_bytes);
        let part = |bytes: u64| {
            // Parts end where sectors do: between them nothing is read or written twice.
            let unit = (bytes - bytes % sector).max(sector);
            let end = (start - start % unit).saturating_add(unit);
            ExtendedRequest {
                offset_bytes: start,
                length_bytes: (end - start).min(left),
                ..*request
            }
        };
        let [.., least] = PART_BYTES;
        PART_BYTES
            .iter()
            .map(|&bytes| part(bytes))
            .find(|part| self.admits(account, cost(part, sector_bytes)))
            .or_else(|| (account.requests == 0).then(|| part(least)))
    }

    fn window_bytes(&self, account: &Account) -> usize {
        let granted = self.limits.bytes_per_connection.min(self.share_bytes);
        account.window_bytes.min(granted)
    }
}

/// The cost of a request, bytes: the memory that it may take at a time.
pub(super) fn cost(request: &ExtendedRequest, sector_bytes: u32) -> usize {
    let sector = u64::from(sector_bytes);
    let range = request.offset_bytes..request.offset_bytes + request.length_bytes;
    let span = Span::new(&range, sector);
    let data = match request.command {
        command::READ => Buffers::size_of(span.sectors),
        // A partly changed sector is read into two more buffers.
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
