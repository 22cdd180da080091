//! The kernel's own layers: which there are, and where the time of each request goes.
//!
//! | question | module |
//! |---|---|
//! | which layers does the kernel have, and what stands on what? | [`tree`] |
//! | what does the kernel tell of a moment? | [`event`] |
//! | which events are one request, and which requests did it become? | [`link`] |
//! | how is its time divided among the layers? | [`link::parts`] |

#![forbid(unsafe_code)]

pub mod event;
pub mod link;
pub mod tree;
