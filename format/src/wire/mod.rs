//! Messages of protocols, as pure functions between bytes and structs. Like the layouts of disks
//! they are bounded and never panic; their users do the input and output.

pub mod fuse;
pub mod nbd;
