//! Why a loop ended before its requests did.

use super::door::{Explain, Kind, Request};
use std::io;
use ugeom_engine::Errno;
use ugeom_harness::HarnessError;
use ugeom_stack::IoError;

/// The first thing that went wrong.
#[derive(Debug)]
pub enum Failure {
    /// A request completed with an error.
    Failed {
        /// The request that failed.
        request: Request,
        /// The number of the error.
        errno: Errno,
        /// The layer that failed it, where there are layers.
        layers: Option<Box<IoError>>,
    },
    /// A request moved less than it was asked for.
    Short {
        /// The request that moved less.
        request: Request,
        /// Bytes moved.
        done: u64,
    },
    /// So many requests did not come back.
    Lost(u64),
    /// The door cannot be waited for.
    Waiting(io::Error),
}

impl Failure {
    /// Of a request that was not done as a whole.
    #[cold]
    pub(crate) fn of(
        request: &Request,
        result: Result<u64, Errno>,
        door: &mut impl Explain,
    ) -> Self {
        let request = *request;
        match result {
            Ok(done) => Self::Short { request, done },
            Err(errno) => Self::Failed {
                request,
                errno,
                layers: door.explain().map(Box::new),
            },
        }
    }

    /// Of a read at offset 0 that was not done as a whole.
    #[cold]
    pub(crate) fn of_read(length: u32, result: Result<usize, IoError>) -> Self {
        let request = Request::read(0, length);
        match result {
            Ok(done) => Self::Short {
                request,
                done: done as u64,
            },
            Err(error) => Self::Failed {
                request,
                errno: error.errno,
                layers: Some(Box::new(error)),
            },
        }
    }

    /// The error of a case that made the requests.
    #[cold]
    pub fn in_case(self, name: &str) -> HarnessError {
        match self {
            Self::Failed {
                layers: Some(source),
                ..
            } => HarnessError::request(name, *source),
            Self::Failed { request, errno, .. } => {
                let operation = match request.kind {
                    Kind::Read => "reading",
                    Kind::Write => "writing",
                    Kind::Trim => "trimming",
                    Kind::DataSync | Kind::Sync => "syncing",
                };
                let path = format!("{name} at offset {}", request.offset);
                HarnessError::os(path, operation)(errno.into())
            }
            Self::Short { request, done } => HarnessError::Short {
                path: name.to_owned(),
                offset_bytes: request.offset,
                wanted_bytes: u64::from(request.length),
                got_bytes: done,
            },
            Self::Lost(requests) => HarnessError::Thread {
                case: name.to_owned(),
                problem: format!("{requests} requests did not complete within a minute"),
            },
            Self::Waiting(source) => HarnessError::os(name, "waiting for requests")(source),
        }
    }
}
