//! The functions of the fuzz targets.
#![forbid(unsafe_code)]

pub mod cache;
pub mod client;
pub mod compressed;
pub mod content;
pub mod control;
pub mod eli;
pub mod format;
pub mod image;
pub mod image_tables;
pub mod job;
pub mod kernel;
pub mod labels;
pub mod names;
pub mod reached;
pub mod report;
pub mod search;
pub mod serve;
pub mod taste;
pub mod units;
