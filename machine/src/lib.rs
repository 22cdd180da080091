//! Memory, clock, CPU and wake-ups: the floor that everything else of ugeom stands on.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod adaptive_polling;
pub mod aes;
pub mod allocations;
pub mod awake;
pub mod block_device;
pub mod bpf;
pub mod buffer;
mod call;
pub mod child;
pub mod clock;
pub mod copy;
pub mod cpu;
pub mod crew;
pub mod device_mapper;
pub mod direct;
pub mod fuse;
pub mod gather;
pub mod in_use;
pub mod inherited;
pub mod inode;
pub mod interrupt;
pub mod io_priority;
pub mod lease;
pub mod lock;
pub mod mailbox;
pub mod mapping;
pub mod memory_policy;
pub mod mounts;
pub mod mutex;
pub mod perf;
pub mod pinned;
pub mod prefetch;
pub mod region;
pub mod result_file;
pub mod returning;
pub mod secret;
pub mod sha256;
pub mod shared_bytes;
pub mod shelf;
pub mod slab;
pub mod stdout;
pub mod sync_range;
pub mod temporary;
pub mod uring;
