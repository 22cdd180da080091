//! The experiments of ugeom lab: harness, judgement, reports.
//!
//! | question | module |
//! |---|---|
//! | how is anything measured? | [`harness`], rules in `docs/statistics.md` |
//! | on what machine, of what target? | [`host`], told by [`head`] |
//! | what does the device below count? | [`devices`] |
//! | what does a cell do? | [`work`], [`floor`] |
//! | on which file, when the user names none? | [`scratch`] |
//! | what is a figure, when is a goal reached? | [`figure`] |
//! | what is saved, and how? | [`json`], fields in `docs/results.md` |
//! | what drives a provider as fast as it goes? | [`load`] |
//! | what does a layer cost? | [`layers`] |
//! | how does it scale, and what buys what? | [`scaling`] |
//! | is B faster than A? | [`ab`] |
//! | what do saved results prove? | [`compare`] |
//! | what limits a device? | [`sweep`] |
//! | can threads stand beside the kernel's asynchronous I/O? | [`engines`] |
//! | what do devices and processors do meanwhile? | [`iostat`] |
//! | the program of 2002 | [`tst`] |
//! | the measurements of diskinfo(8) | [`diskinfo`], `docs/diskinfo.md` |
//! | how does a result become a report? | [`report`], `docs/reports.md` |
//!
//! Each experiment measures into a [`json::Document`] and makes its report from that alone.

#![forbid(unsafe_code)]

pub mod ab;
pub mod cached;
pub mod compare;
mod crew;
pub mod devices;
pub mod diskinfo;
pub mod engines;
mod error;
pub mod figure;
pub mod floor;
pub mod harness;
pub mod head;
pub mod host;
pub mod iostat;
pub mod job;
pub mod json;
pub mod layers;
pub mod load;
pub mod report;
pub mod scaling;
pub mod scratch;
pub mod served;
pub mod sweep;
pub mod text;
pub mod tst;
pub mod work;

pub use error::BenchError;
