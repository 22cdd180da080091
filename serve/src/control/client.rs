//! The other end: asking a server, and finding those that run.

use super::message::{ANSWER_BYTES_MAX, Answer, Figures, PROTOCOL, Question, ServerFacts};
use super::{ControlError, place};
use crate::fuse::Passage;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server answers in well under a second; one that is stopped (SIGSTOP) never does.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a server.
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    facts: ServerFacts,
}

/// A server that was found.
#[derive(Clone, Debug)]
pub struct FoundServer {
    /// The Unix socket on which the server answers.
    pub path: PathBuf,
    /// Its identity, or the reason why it did not answer.
    pub facts: Result<ServerFacts, String>,
}

impl Client {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    /// `NoServer`, `Forbidden`, `Refused`, `Gone`; `Message` when it is no server of ours.
    pub fn connect(path: &Path) -> Result<Self, ControlError> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ControlError::NoServer {
                path: path.to_owned(),
            },
            io::ErrorKind::PermissionDenied => ControlError::Forbidden {
                path: path.to_owned(),
            },
            _ => ControlError::Place {
                path: path.to_owned(),
                problem: error.to_string(),
            },
        })?;
        let limits = stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT)));
        limits.map_err(|source| ControlError::System {
            what: "setting a time-out",
            source,
        })?;
        let mut client = Self {
            path: path.to_owned(),
            stream: BufReader::new(stream),
            facts: ServerFacts {
                protocol: PROTOCOL,
                version: String::new(),
                pid: 0,
                target: String::new(),
                connection: None,
            },
        };
        match client.ask(&Question::Server {})? {
            Answer::Server(facts) if facts.protocol == PROTOCOL => client.facts = facts,
            Answer::Server(facts) => {
                let reason = format!(
                    "it speaks version {} of the protocol, this program speaks {PROTOCOL}",
                    facts.protocol
                );
                return Err(client.refused(reason));
            }
            _ => return Err(client.off_the_point()),
        }
        Ok(client)
    }

    /// Identity of the server.
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The counters of each layer.
    ///
    /// # Errors
    /// `Gone`: the server has ended; `Refused`, `Message`.
    pub fn figures(&mut self, consumers: bool) -> Result<Figures, ControlError> {
        match self.ask(&Question::Figures { consumers })? {
            Answer::Figures(figures) => Ok(*figures),
            _ => Err(self.off_the_point()),
        }
    }

    /// When requests of the server's FUSE mount were in it, since the last such question; and how
    /// many there was no room for so far.
    ///
    /// # Errors
    /// As [`Client::figures`].
    pub fn passages(&mut self) -> Result<(Vec<Passage>, u64), ControlError> {
        match self.ask(&Question::Passages {})? {
            Answer::Passages { each, lost } => Ok((each, lost)),
            _ => Err(self.off_the_point()),
        }
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, ControlError> {
        // A server that refuses says so and closes before it has read the question: look first.
        let sent = self.stream.get_mut().write_all(question.line().as_bytes());
        let mut line = Vec::new();
        let limit = ANSWER_BYTES_MAX as u64;
        let read = self
            .stream
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut line);
        if let (true, Err(error)) = (line.is_empty(), sent.and(read.map(|_| ()))) {
            return Err(self.gone(&error));
        }
        if line.last() != Some(&b'\n') {
            return Err(ControlError::Gone {
                path: self.path.clone(),
                why: match line.len() {
                    0 => String::new(),
                    length => format!(": its answer broke off after {length} bytes"),
                },
            });
        }
        match Answer::parse(&line)? {
            Answer::Error(reason) => Err(self.refused(reason)),
            answer => Ok(answer),
        }
    }

    fn gone(&self, error: &io::Error) -> ControlError {
        let why = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!(": it has not answered for {} s", ANSWER_TIMEOUT.as_secs())
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => String::new(),
            _ => format!(": {error}"),
        };
        ControlError::Gone {
            path: self.path.clone(),
            why,
        }
    }

    fn refused(&self, reason: String) -> ControlError {
        ControlError::Refused {
            path: self.path.clone(),
            reason,
        }
    }

    fn off_the_point(&self) -> ControlError {
        ControlError::Message {
            what: "an answer",
            problem: format!("the answer of {} is invalid", self.path.display()),
        }
    }
}

/// The servers of this user whose sockets lie where they do unless a path is given. Sockets
/// of servers that are gone are removed.
pub fn running() -> Vec<FoundServer> {
    let mut found = Vec::new();
    for folder in place::folders() {
        // Sockets in a folder that others can write to are not trusted.
        if place::is_private(&folder).is_err() {
            continue;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "sock"));
        paths.sort();
        for path in paths {
            match Client::connect(&path) {
                Ok(client) => found.push(FoundServer {
                    path,
                    facts: Ok(client.facts),
                }),
                Err(ControlError::NoServer { .. }) => {
                    // Of a server that was killed. Another process may have removed it already.
                    let _ = std::fs::remove_file(&path);
                }
                Err(error) => found.push(FoundServer {
                    path,
                    facts: Err(error.to_string()),
                }),
            }
        }
    }
    found
}
