//! Lending memory of the caller's to a bio, for calls that wait until it is back.

use super::draft::{Draft, Finished};
use super::{Bio, Command};
use ugeom_machine::buffer::Segment;

/// Ends the process when it is dropped: the caller's memory would be in use after its loan ended.
struct AbortUnlessHome;

impl Drop for AbortUnlessHome {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// A way there and back. A trait, and not a closure, because that cannot be told to be inlined.
pub(crate) trait Trip {
    /// Takes the draft there and back.
    fn make(self, draft: Draft) -> Finished;
}

/// Lends `memory` to `bio` and lets `trip` send it and wait for it.
///
/// `trip` proves that the bio has completed by giving a finished bio in the same slot back: that is
/// the right to the slot, of which there is one at a time, so that whatever life was lent the
/// memory has ended. A slot keeps its address from one life to the next, and no other has it: slots
/// are not freed while any of their pool is away. Should `trip` panic or give back another bio, the
/// process ends, because a layer may still write to the memory.
#[inline(always)]
pub(crate) fn lend(bio: Bio, offset: u64, memory: Loan<'_>, trip: impl Trip) -> Finished {
    let slot = bio.slot_pointer();
    let (command, base, len) = match memory {
        Loan::Out(bytes) => (Command::Write, bytes.as_ptr().cast_mut(), bytes.len()),
        Loan::In(bytes) => (Command::Read, bytes.as_mut_ptr(), bytes.len()),
    };
    let segment = Segment { base, len };
    let guard = AbortUnlessHome;
    // SAFETY: the memory is borrowed for the duration of this call, and the guard makes sure that
    // the call does not end before the bio has completed. `Loan::Out` is never written to: the
    // command is WRITE, and `Request::fill` serves READ only.
    let draft = unsafe { Draft::new(bio).borrow(command, offset, segment) };
    let finished = trip.make(draft);
    if finished.bio.slot_pointer() == slot {
        std::mem::forget(guard);
    }
    finished
}

/// The caller's memory, which is lent for one call.
pub(crate) enum Loan<'a> {
    /// Data to write: the command is WRITE.
    Out(&'a [u8]),
    /// Room for data: the command is READ.
    In(&'a mut [u8]),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::pool::Pool;
    use crate::home::Home;

    /// Ends the life that was lent the memory, and comes back with the next one of its slot.
    struct NextLife<'a>(&'a mut Pool);

    impl Trip for NextLife<'_> {
        fn make(self, mut draft: Draft) -> Finished {
            let slot = draft.bio.slot_pointer();
            draft.bio.request().fill(|_, piece| piece.fill(7));
            self.0.put(draft.bio);
            let mut next = Draft::new(self.0.take());
            assert_eq!(next.bio.slot_pointer(), slot, "last in, first out");
            assert!(next.bio.body().segments().iter().all(|it| it.len == 0));
            next.set(Command::Read, 0, 8);
            next.bio
                .request()
                .fill(|_, _| unreachable!("it has no memory"));
            Finished::new(next.bio)
        }
    }

    #[test]
    fn the_next_life_of_a_slot_knows_nothing_of_memory_that_was_lent_to_the_one_before() {
        let home = Home::new(0, None).expect("a home");
        let mut pool = Pool::new(home, None);
        for _ in 0..3 {
            let mut memory = [0; 8];
            let bio = pool.take();
            let finished = lend(bio, 0, Loan::In(&mut memory), NextLife(&mut pool));
            // Miri reports an access through a loan of the life before.
            assert_eq!(memory, [7; 8]);
            memory.fill(1);
            pool.put(finished.bio);
        }
    }
}
