//! One folder a GEOM class, their registry, and the stack language.
//!
//! [`registry()`] lists the classes, [`open_target`] turns a text of the stack language into a
//! running stack. Each class's folder opens with a picture of what it does to a request; `nop` is
//! the one to copy for a new class.
#![forbid(unsafe_code)]

pub mod build;
pub mod cache;
pub mod crash;
pub mod delayed;
pub mod disk;
pub mod eli;
pub mod entry;
pub mod file;
pub mod image;
mod locking;
pub mod md;
pub mod nbd;
pub mod nop;
pub mod part;
pub mod registry;
pub mod spec;
pub mod target;
pub mod zero;

pub use build::{BuildContext, BuildError};
pub use entry::{Build, ClassEntry, Role};
pub use registry::registry;
pub use target::{Target, TargetError, TargetOptions, TargetText, open_target};
