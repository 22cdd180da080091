//! An owned queue threaded through the values themselves: no allocation, first in first out.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::sync::{AtomicPtr, Ordering};

/// The word inside a node through which queues and mailboxes thread it. An `AtomicPtr` of the
/// standard library, except in a model check (`cfg(loom)`).
pub type Link<N> = AtomicPtr<N>;

/// A value that can be turned into a pointer to a node and back, and so travel through queues
/// without allocation.
///
/// # Safety
/// - `into_node` gives up the value; the node stays valid, and is reached only by the queue
///   that holds it, until `from_node` makes the value again.
/// - Two live values never have the same node, and no node lies at address 1.
/// - `link` returns a pointer that is valid for as long as the node is, to a word that nothing
///   but the queue uses between `into_node` and `from_node`.
pub unsafe trait Handle: Send + Sized {
    /// The node that the pointer points to.
    type Node;

    /// Gives the value up for a pointer.
    fn into_node(self) -> NonNull<Self::Node>;

    /// Makes the value from its pointer.
    ///
    /// # Safety
    /// `node` came from `into_node` and was not yet turned back.
    unsafe fn from_node(node: NonNull<Self::Node>) -> Self;

    /// The word through which `node` is linked.
    ///
    /// # Safety
    /// `node` came from `into_node` and was not yet turned back.
    unsafe fn link(node: NonNull<Self::Node>) -> *const Link<Self::Node>;
}

/// Linked nodes: the newest, which comes first, and the oldest.
pub(super) type Chain<N> = (NonNull<N>, NonNull<N>);

/// A queue of handles, first in first out, that owns its handles. Dropping it drops them.
pub struct Fifo<H: Handle> {
    head: *mut H::Node,
    tail: *mut H::Node,
    owns: PhantomData<H>,
}

// SAFETY: the queue owns its handles, which are Send; no other code reaches their links.
unsafe impl<H: Handle> Send for Fifo<H> {}

impl<H: Handle> Fifo<H> {
    /// A queue without values; it allocates nothing, now or later.
    pub const fn new() -> Fifo<H> {
        Fifo {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            owns: PhantomData,
        }
    }

    /// Whether the queue holds nothing.
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Puts `value` at the end.
    pub fn push(&mut self, value: H) {
        let node = value.into_node();
        set_next::<H>(node, ptr::null_mut());
        self.link_after_tail(node.as_ptr(), node.as_ptr());
    }

    /// Takes the value at the front.
    pub fn pop(&mut self) -> Option<H> {
        let node = NonNull::new(self.head)?;
        self.head = next::<H>(node);
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        // SAFETY: the node was given up by `into_node` when it was queued, and leaves here.
        Some(unsafe { H::from_node(node) })
    }

    /// Moves everything in `other` to the end.
    pub fn append(&mut self, other: &mut Fifo<H>) {
        if !other.is_empty() {
            self.link_after_tail(other.head, other.tail);
            other.head = ptr::null_mut();
            other.tail = ptr::null_mut();
        }
    }

    fn link_after_tail(&mut self, first: *mut H::Node, last: *mut H::Node) {
        match NonNull::new(self.tail) {
            Some(tail) => set_next::<H>(tail, first),
            None => self.head = first,
        }
        self.tail = last;
    }

    /// Makes a queue from a chain whose newest node comes first.
    pub(super) fn from_newest_first(newest: *mut H::Node) -> Fifo<H> {
        let mut queue = Fifo::new();
        queue.tail = newest;
        let mut rest = newest;
        while let Some(node) = NonNull::new(rest) {
            rest = next::<H>(node);
            set_next::<H>(node, queue.head);
            queue.head = node.as_ptr();
        }
        queue
    }
}

impl<H: Handle> Default for Fifo<H> {
    fn default() -> Self {
        Fifo::new()
    }
}

impl<H: Handle> Drop for Fifo<H> {
    fn drop(&mut self) {
        while let Some(value) = self.pop() {
            drop(value);
        }
    }
}

impl<H: Handle> Extend<H> for Fifo<H> {
    fn extend<I: IntoIterator<Item = H>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<H: Handle> Iterator for Fifo<H> {
    type Item = H;

    fn next(&mut self) -> Option<H> {
        self.pop()
    }
}

/// The links are only touched by the queue that owns the node; the mailbox's head carries the
/// ordering from thread to thread, so that relaxed accesses do.
pub(super) fn set_next<H: Handle>(node: NonNull<H::Node>, next: *mut H::Node) {
    // SAFETY: the node is queued, so that its link is valid and ours (contract of `Handle`).
    unsafe { (*H::link(node)).store(next, Ordering::Relaxed) };
}

fn next<H: Handle>(node: NonNull<H::Node>) -> *mut H::Node {
    // SAFETY: as in `set_next`.
    unsafe { (*H::link(node)).load(Ordering::Relaxed) }
}
