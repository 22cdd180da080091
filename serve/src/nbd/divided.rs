//! A READ or WRITE for which there is no room as a whole: it goes through the stack in parts, each
//! of which begins when there is room for it.
//!
//! The parts of a READ are chunks of one structured reply, in any order. Where a
//! reply must be one stretch (a simple one, or with DF), they go one after another, with no other
//! reply between them; what fails after the first can then only end the connection, since no place
//! is left for an error.

use ugeom_format::wire::nbd::ExtendedRequest;

/// A request in parts.
pub(super) struct Divided {
    /// The word by which its parts know it.
    pub number: u32,
    pub request: ExtendedRequest,
    /// Bytes whose parts have begun.
    begun: u64,
    /// Parts that have begun and are not done.
    left: usize,
    failure: Option<(u32, String)>,
    /// Its reply is one stretch.
    pub in_order: bool,
}

/// The effect of a part's end on its request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// Other parts are still in flight.
    More,
    /// It was the last one, and all went well.
    Last,
    /// It was the last one, and one of them failed.
    Failed(u32, String),
}

impl Divided {
    /// A request of which no part has begun.
    pub fn new(number: u32, request: ExtendedRequest, in_order: bool) -> Self {
        Self {
            number,
            request,
            begun: 0,
            left: 0,
            failure: None,
            in_order,
        }
    }

    /// Bytes whose parts have begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Bytes whose parts have not begun; none after a failure.
    pub fn rest(&self) -> u64 {
        self.request.length_bytes - self.begun
    }

    /// Whether other requests of the connection may begin: all parts have, and where the reply is
    /// one stretch it is whole.
    pub fn lets_others_begin(&self) -> bool {
        self.rest() == 0 && (!self.in_order || self.left == 0)
    }

    /// A part of so many bytes begins.
    pub fn begin(&mut self, bytes: u64) {
        self.begun += bytes;
        self.left += 1;
    }

    /// A part has ended. After a failure no more begin; returns how many bytes that concerns, too.
    pub fn end(&mut self, failure: Option<(u32, String)>) -> (PartEnd, u64) {
        self.left -= 1;
        let mut dropped = 0;
        if let Some(failure) = failure {
            self.failure.get_or_insert(failure);
            dropped = self.rest();
            self.begun += dropped;
        }
        if self.left > 0 || self.rest() > 0 {
            return (PartEnd::More, dropped);
        }
        let end = match self.failure.take() {
            Some((errno, why)) => PartEnd::Failed(errno, why),
            None => PartEnd::Last,
        };
        (end, dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: ExtendedRequest = ExtendedRequest {
        flags: 0,
        command: 0,
        cookie: 1,
        offset_bytes: 7,
        length_bytes: 100,
    };

    #[test]
    fn the_last_part_is_the_one_that_ends_last() {
        let mut divided = Divided::new(1, REQUEST, false);
        divided.begin(60);
        divided.begin(40);
        assert_eq!(divided.end(None), (PartEnd::More, 0));
        assert_eq!(divided.end(None), (PartEnd::Last, 0));
    }

    #[test]
    fn nothing_begins_after_a_failure_which_is_told_when_all_have_ended() {
        let mut divided = Divided::new(1, REQUEST, false);
        divided.begin(30);
        divided.begin(30);
        let failure = Some((5, "broken".to_owned()));
        assert_eq!(divided.end(failure), (PartEnd::More, 40));
        assert_eq!(divided.rest(), 0);
        let end = PartEnd::Failed(5, "broken".to_owned());
        assert_eq!(divided.end(None), (end, 0));
    }
}
