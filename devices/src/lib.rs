//! The experiments on devices, and on the kernel's layers between them and a program.
//!
//! | question | module |
//! |---|---|
//! | what limits a device? | [`sweep`] |
//! | can threads stand beside the kernel's asynchronous I/O? | [`engines`] |
//! | what does a layer of the kernel cost? | [`kernel`] |

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod engines;
pub mod kernel;
pub mod sweep;
