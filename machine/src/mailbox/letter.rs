//! The messages of the mailbox's tests: a value in a box, linked by a word of its own.

use super::{Handle, Link};
use std::ptr::{self, NonNull};

pub struct Node<T> {
    link: Link<Node<T>>,
    pub value: T,
}

pub struct Letter<T>(pub Box<Node<T>>);

impl<T> Letter<T> {
    pub fn new(value: T) -> Self {
        let link = Link::new(ptr::null_mut());
        Self(Box::new(Node { link, value }))
    }
}

// SAFETY: the box is given up and made again; the link is used by nothing else.
unsafe impl<T: Send> Handle for Letter<T> {
    type Node = Node<T>;

    fn into_node(self) -> NonNull<Node<T>> {
        NonNull::from(Box::leak(self.0))
    }

    unsafe fn from_node(node: NonNull<Node<T>>) -> Self {
        // SAFETY: the pointer came from `into_node`.
        Self(unsafe { Box::from_raw(node.as_ptr()) })
    }

    unsafe fn link(node: NonNull<Node<T>>) -> *const Link<Node<T>> {
        // SAFETY: the node is alive.
        unsafe { &raw const (*node.as_ptr()).link }
    }
}
