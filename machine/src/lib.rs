//! Memory, clock, CPU and wake-ups: the floor that everything else of ugeom stands on.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod adaptive_polling;
pub mod aes;
pub mod allocations;
pub mod awake;
pub mod block_device;
pub mod bpf;
pub mod buffer;
pub mod child;
pub mod clock;
pub mod copy;
pub mod cpu;
pub mod crew;
pub mod device_mapper;
pub mod direct;
pub mod fuse;
pub mod gather;
pub mod inherited;
pub mod inode;
pub mod interrupt;
pub mod lease;
pub mod lock;
pub mod mailbox;
pub mod mapping;
pub mod perf;
pub mod prefetch;
pub mod region;
pub mod result_file;
pub mod returning;
pub mod secret;
pub mod sha256;
pub mod shared_bytes;
pub mod shelf;
pub mod slab;
pub mod uring;
