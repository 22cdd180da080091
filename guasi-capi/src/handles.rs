//! Handles of the C interface: names of contexts and requests that fit into a pointer.
//!
//! ```text
//!   guasi_t       life of the place (40 of 48 bits) | place + 1 (12 bits) | 0000
//!   guasi_req_t   generation (32 bits) | place + 1 (12 bits) | slot (20 bits)
//! ```
//!
//! A context is found through a table of places. Each place counts the users of its context at the
//! moment, so that `guasi_free` waits for calls in other threads, and each life of a place has a
//! number, so that the handle of a freed context is recognised. Generations of requests are shifted
//! by a number that differs from life to life, so that requests of a freed context are, too. No
//! lock is held on the way, so that a child of fork(2) can make and free contexts.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use ugeom_guasi::{Context, RequestId};

/// Contexts at a time.
const PLACES: usize = (1 << PLACE_BITS) - 1;

/// Slots that a request's handle can name.
pub(crate) const SLOT_BITS: u32 = 20;
const PLACE_BITS: u32 = 12;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// There is no context, or it is being freed: no call may begin to use it.
const CLOSED: u64 = 1 << 23;
/// How many use it: at most one call a thread, of which Linux has at most 2^22.
const USERS: u64 = CLOSED - 1;
const LIFE: u64 = 1 << 24;

/// Apart from each other, so that contexts share no cache line.
#[repr(align(128))]
struct HandleSlot {
    /// Life, closed, and the number of users.
    state: AtomicU64,
    context: AtomicPtr<Context>,
}

static TABLE: [HandleSlot; PLACES] = [const {
    HandleSlot {
        state: AtomicU64::new(CLOSED),
        context: AtomicPtr::new(ptr::null_mut()),
    }
}; PLACES];

/// A context that stays for as long as this.
pub(crate) struct Guard {
    place: &'static HandleSlot,
    number: u64,
    life: u64,
}

impl Guard {
    pub(crate) fn context(&self) -> &Context {
        // SAFETY: the place was open when we entered, so that it holds a context, which is freed
        // only when it is not in use; we use it.
        unsafe { &*self.place.context.load(Ordering::Acquire) }
    }

    /// The handle of a request of this context.
    pub(crate) fn request(&self, id: RequestId) -> u64 {
        let bits = id.to_bits();
        let generation = ((bits >> 32) as u32).wrapping_add(shift(self.life));
        let slot = bits & ((1 << SLOT_BITS) - 1);
        u64::from(generation) << 32 | (self.number + 1) << SLOT_BITS | slot
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.place.state.fetch_sub(1, Ordering::Release);
    }
}

/// Puts a context into the table. Its handle; `None` when the table is full.
pub(crate) fn insert(context: Context) -> Option<u64> {
    let context = Box::into_raw(Box::new(context));
    let claim = |place: &HandleSlot| {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let nothing = ptr::null_mut();
        let claimed = place
            .context
            .compare_exchange(nothing, context, success, failure);
        claimed.is_ok()
    };
    let Some(number) = TABLE.iter().position(claim) else {
        // SAFETY: made by `Box::into_raw` just now, and in no place.
        drop(unsafe { Box::from_raw(context) });
        return None;
    };
    let place = &TABLE[number];
    // The next life, open. Meanwhile users may come, find it closed, and go.
    let before = place.state.fetch_add(LIFE - CLOSED, Ordering::AcqRel);
    let life = before / LIFE + 1;
    Some(life << 16 | (number as u64 + 1) << 4)
}

/// The context of a handle, unless it was freed or never was.
pub(crate) fn context(handle: u64) -> Option<Guard> {
    let number = (handle >> 4 & PLACE_MASK).checked_sub(1)?;
    let guard = enter(number)?;
    (handle & 15 == 0 && guard.life == handle >> 16).then_some(guard)
}

/// The context of a request's handle, and the request's name in it.
pub(crate) fn request(handle: u64) -> Option<(Guard, RequestId)> {
    let guard = enter((handle >> SLOT_BITS & PLACE_MASK).checked_sub(1)?)?;
    let generation = ((handle >> 32) as u32).wrapping_sub(shift(guard.life));
    let slot = handle & ((1 << SLOT_BITS) - 1);
    let id = RequestId::from_bits(u64::from(generation) << 32 | slot);
    Some((guard, id))
}

fn enter(number: u64) -> Option<Guard> {
    let place = TABLE.get(number as usize)?;
    let before = place.state.fetch_add(1, Ordering::Acquire);
    let life = before / LIFE;
    let guard = Guard {
        place,
        number,
        life,
    };
    (before & CLOSED == 0).then_some(guard)
}

/// Ends the context of a handle: admits no call any more, cancels what it does, waits for users
/// that are left, and frees it. False when the handle names no context.
pub(crate) fn remove(handle: u64) -> bool {
    let Some(guard) = context(handle) else { return false };
    let place = guard.place;
    if place.state.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED != 0 {
        // Another thread frees it.
        return false;
    }
    if guard.context().is_orphan() {
        // In a child of fork(2). Users that were in other threads of the parent never leave, and
        // workers are not there: the place stays closed for ever.
        return true;
    }
    guard.context().close();
    // One user is this guard; others sleep no longer and are on their way.
    while place.state.load(Ordering::Acquire) & USERS > 1 {
        std::thread::yield_now();
    }
    drop(guard);
    // From here on the place may be filled again.
    let context = place.context.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: made by `Box::into_raw`; no call uses it, none can begin to, and only the thread
    // that closed the place comes here.
    drop(unsafe { Box::from_raw(context) });
    true
}

/// How far the generations of a context's requests are shifted.
fn shift(life: u64) -> u32 {
    // 2^32 divided by the golden ratio: neighbouring lives lie far apart.
    (life as u32).wrapping_mul(0x9e37_79b9)
}
