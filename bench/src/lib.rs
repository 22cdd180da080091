//! The experiments of ugeom lab: runner, judgement, reports.
//!
//! | question | module |
//! |---|---|
//! | how is anything measured? | [`runner`] |
//! | on what machine? | [`host`] |

#![forbid(unsafe_code)]

mod error;
pub mod figure;
pub mod floor;
pub mod host;
pub mod json;
pub mod layers;
pub mod runner;
pub mod text;
pub mod tst;
pub mod work;

pub use error::BenchError;
