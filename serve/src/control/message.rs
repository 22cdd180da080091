//! Questions and answers of the control socket, as lines of JSON.
//!
//! All counts and sums run from the start of the server; a rate is the difference of two answers.
//! Numbers may pass 2^53, from where on readers of JSON that know only doubles lose digits.

use super::ControlError;
use crate::fuse::Passage;
use serde::{Deserialize, Serialize};

/// The version of the protocol; a client that knows another should not guess.
pub const PROTOCOL: u32 = 1;

/// The longest question, with its line feed, bytes.
pub(super) const QUESTION_BYTES_MAX: usize = 4096;

/// The longest answer that a client reads, bytes: some ten thousand providers.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A client's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// Asks for the facts of the server: see [`ServerFacts`].
    Server {},
    /// Asks for the counters of each layer.
    Figures {
        /// Whether consumers are listed as well as providers.
        #[serde(default)]
        consumers: bool,
    },
    /// When were requests of the FUSE mount in the server, since the last such question?
    Passages {},
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The answer to [`Question::Server`].
    Server(ServerFacts),
    /// The counters of each layer.
    Figures(Box<Figures>),
    /// When requests of the FUSE mount were in the server.
    Passages {
        /// The kernel's numbers of requests, each with the moments when it was taken and when its
        /// reply was begun, `CLOCK_MONOTONIC`, ns.
        each: Vec<Passage>,
        /// How many there was no room for, since the start of the server.
        lost: u64,
    },
    /// Why there is no answer.
    Error(String),
}

/// Identity of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The version of the protocol: [`PROTOCOL`].
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// Process id of the server.
    pub pid: u32,
    /// The targets, as on its command line.
    pub target: String,
    /// The number of the kernel's FUSE connection, if it has a mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
}

/// All figures of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// When that was, in ns of the machine's `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How times are taken.
    pub timing: Timing,
    /// The providers, from the bottom up as they were made.
    pub providers: Vec<Layer>,
    /// The consumers, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<Consumer>,
}

/// How times are taken, and the sampling cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Whether the stack counts requests (`--set statistics`).
    pub counts: bool,
    /// One request in this many is timed from now on; 0 for none.
    pub one_in: u32,
    /// The cost of one reading of the clock, ns; a request that is timed needs two a layer.
    pub clock_ns: f64,
    /// How long this look took, ns, in a thread that serves no other client.
    pub look_ns: u64,
}

/// A provider of the server's stack and its counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Its number, which no other provider of this server ever has.
    pub id: u64,
    /// Name of the provider.
    pub name: String,
    /// The name under which clients find it, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// The class of its geom, upper case.
    pub class: String,
    /// The geom's rank: 1 at the bottom.
    pub rank: u32,
    /// The providers that its geom stands on.
    pub below: Vec<u64>,
    /// Its access counts, as `r1w0e0`.
    pub mode: String,
    /// The size of its media, bytes.
    pub media_bytes: u64,
    /// Its error, when it is gone or broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Requests of this provider, by kind.
    pub counted: Counted,
    /// How long that took, for the requests that were timed.
    pub times: Times,
}

/// A consumer: a geom's, or an opened handle's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Consumer {
    /// Number of the consumer, unique in the stack.
    pub id: u64,
    /// The name of its geom.
    pub geom: String,
    /// The class of its geom; `DEV` for an opened handle.
    pub class: String,
    /// The provider that it is attached to.
    pub provider: u64,
    /// How often it is open, as `r1w0e0`.
    pub mode: String,
    /// Requests of this consumer, by kind.
    pub counted: Counted,
    /// How long that took, without the spread.
    pub times: Times,
}

/// Requests that ended, by kind, and those that have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Requests that entered and have not ended.
    pub in_flight: u64,
    /// Requests that failed; they are among the kinds, too.
    pub errors: u64,
    /// READ requests and their bytes.
    pub read: OperationTotals,
    /// WRITE requests and their bytes.
    pub write: OperationTotals,
    /// DELETE requests and their bytes.
    pub delete: OperationTotals,
    /// ZERO requests and their bytes.
    pub zero: OperationTotals,
    /// FLUSH requests; they have no bytes.
    pub flush: OperationTotals,
    /// EXTENTS: questions where holes are, which servers ask before long READs.
    #[serde(default)]
    pub extents: OperationTotals,
    /// GETATTR and everything that has no field here.
    pub other: OperationTotals,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationTotals {
    /// Requests that ended, those that failed among them.
    pub operations: u64,
    /// The bytes that they moved.
    pub bytes: u64,
}

/// Times of requests that were timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// READ, from entering to leaving the provider.
    pub read: Spread,
    /// WRITE, measured as READ is.
    pub write: Spread,
    /// DELETE, measured as READ is.
    pub delete: Spread,
    /// All other kinds, measured as READ is.
    pub other: Spread,
    /// Time that these requests spent in this layer and not below it, in all, ns.
    pub exclusive_ns: u64,
    /// The same times, each divided by the requests that shared the provider with it, in all, ns.
    pub busy_ns: u64,
}

/// How times are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many were taken.
    pub samples: u64,
    /// Sum of the times, nanoseconds.
    pub sum_ns: u64,
    /// How many fell into which bucket, each named by its smallest value in ns, in ascending order.
    /// A bucket is at most 1/64 of that wide, and one wide below 128.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

impl Question {
    /// Reads a question: a line, with or without its line feed.
    ///
    /// # Errors
    /// `Message`: it is none that there is, with the reason.
    pub fn parse(line: &[u8]) -> Result<Self, ControlError> {
        let wrong = |problem: String| ControlError::Message {
            what: "a question",
            problem,
        };
        if line.len() > QUESTION_BYTES_MAX {
            let problem = format!(
                "it has {} bytes, and may have {QUESTION_BYTES_MAX}",
                line.len()
            );
            return Err(wrong(problem));
        }
        serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))
    }

    /// The question as a line.
    pub fn line(&self) -> String {
        line(self)
    }
}

impl Answer {
    /// Reads an answer: a line, with or without its line feed.
    ///
    /// # Errors
    /// `Message`: it is none that this version knows, or its figures contradict themselves.
    pub fn parse(line: &[u8]) -> Result<Self, ControlError> {
        let wrong = |problem: String| ControlError::Message {
            what: "an answer",
            problem,
        };
        let answer: Self =
            serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        if let Self::Figures(figures) = &answer {
            figures.check().map_err(wrong)?;
        }
        Ok(answer)
    }

    /// The answer as a line.
    pub fn line(&self) -> String {
        line(self)
    }
}

/// One line of JSON. Strings in JSON have no line feeds in them.
fn line(message: &impl Serialize) -> String {
    // Neither maps with odd keys nor fallible fields are in there: nothing can fail.
    let mut text = serde_json::to_string(message).unwrap_or_default();
    text.push('\n');
    text
}

impl Figures {
    /// Invariants for readers: numbers are used once, buckets ascend and hold the stated values.
    fn check(&self) -> Result<(), String> {
        let mut ids: Vec<u64> = self.providers.iter().map(|layer| layer.id).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two providers have the number {}", twice[0]));
        }
        let times = self.providers.iter().map(|layer| &layer.times);
        times
            .chain(self.consumers.iter().map(|consumer| &consumer.times))
            .flat_map(Times::kinds)
            .try_for_each(Spread::check)
    }
}

impl Times {
    /// READ, WRITE, DELETE and the rest.
    pub fn kinds(&self) -> [&Spread; 4] {
        [&self.read, &self.write, &self.delete, &self.other]
    }
}

impl Spread {
    fn check(&self) -> Result<(), String> {
        if let Some(pair) = self.buckets.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("bucket {} does not ascend", pair[1].0));
        }
        let held = self.buckets.iter().try_fold(0_u64, |sum, (_, count)| {
            sum.checked_add(*count).filter(|_| *count > 0)
        });
        match held {
            Some(held) if self.buckets.is_empty() || held == self.samples => Ok(()),
            _ => Err(format!("the buckets do not hold {} samples", self.samples)),
        }
    }
}
