//! The distributions behind the intervals: normal, Student's t, F and the functions they rest on.
//!
//! These are plain functions of numbers: outside of its domain a function answers NaN, as the
//! standard library's do. Checked against `statrs` and printed tables in `tests/distributions.rs`.
//! "DLMF" is the NIST Digital Library of Mathematical Functions, dlmf.nist.gov.

mod beta;
mod fisher;
mod gamma;
mod normal;
mod student;

pub use beta::{incomplete_beta, ln_beta};
pub use fisher::fisher_upper_tail;
pub use gamma::ln_gamma;
pub use normal::{erf, erfc, normal_cdf, normal_quantile};
pub use student::{student_cdf, student_critical, student_quantile, student_two_sided_p};
