//! The classes of partition tables and the editing of tables, in one program: each needs all of the
//! crate, and its linking takes longer than its tests.

#[path = "../common/mod.rs"]
mod common;
mod edit;
mod foreign;
mod gpt;
mod nested;
mod taste;
mod tools;
