//! The bench of the cache class as a library: the files are those of `classes/benches/cache`.

#![forbid(unsafe_code)]

#[path = "../../cache/hits.rs"]
pub mod hits;
#[path = "../../cache/libraries.rs"]
pub mod libraries;
#[path = "../../cache/others.rs"]
pub mod others;
#[path = "../../cache/policies.rs"]
pub mod policies;
#[path = "../../cache/ratios.rs"]
pub mod ratios;
#[path = "../../cache/rounds.rs"]
pub mod rounds;
