//! One folder a GEOM class, their registry, and the stack language.
//!
//! [`registry()`] lists the classes, [`open_target`] turns a text of the stack language into a
//! running stack. Each class's folder opens with a picture of what it does to a request; `nop` is
//! the one to copy for a new class.
//!
//! ```
//! use ugeom_classes::{TargetOptions, open_target};
//! use ugeom_stack::Delta;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The language of the command line: layers from the bottom up.
//! let target = open_target("md:1m | nop:offset=64k | nop", &TargetOptions::default())?;
//! let opened = target.open(Delta::READ_WRITE)?;
//!
//! // A channel is one thread's way in: here up to 8 requests in flight.
//! let mut channel = target.stack.channel(8)?;
//! channel.write(&opened, 512, &[b'x'; 512])?;
//! channel.flush(&opened)?;
//! let mut sector = [0; 512];
//! channel.read(&opened, 512, &mut sector)?;
//! assert_eq!(sector, [b'x'; 512]);
//! opened.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/first_sector.rs` writes an MBR and reads a sector of its slice.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod build;
pub mod cache;
pub mod crash;
pub mod delayed;
pub mod disk;
pub mod draws;
pub mod eli;
mod engines;
pub mod entry;
mod extents;
mod failures;
pub mod file;
pub mod image;
mod locking;
pub mod md;
pub mod nbd;
pub mod nop;
mod odd_end;
mod overlap;
pub mod part;
mod path;
pub mod physpath;
mod presence;
pub mod registry;
pub mod result_file;
pub mod spec;
pub mod target;
pub mod zero;

pub use build::{BuildContext, BuildError};
pub use entry::{Build, ClassEntry, Role};
pub use path::{optional_path, path_of, quoted_path, text_of};
pub use registry::registry;
pub use target::{Target, TargetError, TargetOptions, TargetText, open_target};
