//! The control socket: how another process of the same user looks at a server that runs.
//!
//! A Unix stream socket, with mode 0600. A client sends questions, the server answers each with one
//! line; both are JSON ([`Question`], [`Answer`]).
//!
//! ```text
//!   {"ask":"server"}                       {"server":{"protocol":1,"pid":4711,...}}
//!   {"ask":"figures","consumers":false}    {"figures":{"at_ns":...,"providers":[...],...}}
//!   {"ask":"passages"}                     {"passages":{"each":[[9,1000,3000]],"lost":0}}
//!   {"ask":"tea"}                          {"error":"..."}
//! ```
//!
//! **Looking does not slow the data path.** A thread of its own answers. Figures are summed up
//! from what the threads that move requests have counted; these are neither asked nor stopped.
//! Times are only taken while the server is watched: with the first question for figures the server
//! begins to time one request in N, and stops when the last client that asked has left. N follows
//! the load, so that some thousand requests a second are timed and no more.
//!
//! **Limits.** A question has at most 4096 bytes, 16 clients are served at a
//! time, each question is read when the answer before it is sent, and there are at most 50 looks a
//! second, however many clients ask. A client that does not read its answers, or falls silent in
//! the middle of a question, is left after ten seconds. Other users cannot connect; one that got
//! the socket all the same is told so and left (root may look).
//!
//! The files: `message` the messages, `figures` from a look at the stack to a message, `place` the
//! place of sockets, `server` the thread that answers, `watch` the statistics and the rate of
//! samples, `client` the other end, `openmetrics` figures as text for Prometheus.

mod client;
mod error;
mod figures;
mod message;
mod openmetrics;
mod place;
mod server;
#[cfg(test)]
mod tests;
mod watch;

pub use client::{Client, FoundServer, running};
pub use error::ControlError;
pub use message::{
    ANSWER_BYTES_MAX, Answer, Consumer, Counted, Figures, Layer, OperationTotals, PROTOCOL,
    Question, ServerFacts, Spread, Times, Timing,
};
pub use openmetrics::{Exposition, text as openmetrics};
pub use place::default_path;
pub use server::{Control, ControlSettings};
pub(crate) use watch::Watch;
