//! The providers of a stack as devices that any program can open, without root and without a kernel
//! module: over [`nbd`].
//!
//! A server takes a stack that stands, and whatever stands on top of it: a path, one layer or a
//! stack of six are the same to it. It knows no class.
#![forbid(unsafe_code)]

pub mod nbd;
