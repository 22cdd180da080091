//! The client's side of the handshake: bytes in, bytes out, and at its end the server's description
//! of the export.
//!
//! ```text
//!   greeting -> flags, [STARTTLS ->] STRUCTURED_REPLY -> SET_META_CONTEXT -> GO -> facts
//! ```
//! What a server does not have is done without: in place of GO, old ones have EXPORT_NAME, which
//! tells size and flags, and answers a name that does not exist by leaving. Servers without the
//! fixed newstyle have that option only, and oldstyle ones none: they tell size and flags at once.

use ugeom_format::wire::nbd::{
    BASE_ALLOCATION, ExportReply, GREETING_BYTES, Greeting, Info, InfoRequest, MetaContext,
    MetaRequest, OLD_GREETING_BYTES, OPTION_BYTES_MAX, OPTION_REPLY_HEADER_BYTES, OldGreeting,
    OptionHeader, OptionReplyHeader, PAYLOAD_BYTES_MAX, handshake_flag, info, option, option_reply,
};

/// Why a server with an old handshake is not used with TLS.
const TOO_OLD_FOR_TLS: &str = "the server offers no TLS (its handshake is of before 2013)";

/// The largest minimum that the protocol allows, bytes.
const MINIMUM_BYTES_MAX: u32 = 65_536;

/// The server's description of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub size_bytes: u64,
    pub flags: u16,
    /// Offsets and lengths are multiples of it.
    pub minimum_bytes: u32,
    pub preferred_bytes: u32,
    /// The longest READ and WRITE.
    pub maximum_bytes: u32,
    pub description: String,
    /// Replies to READ may come in chunks.
    pub structured: bool,
    /// The number of `base:allocation`, if BLOCK_STATUS may be asked.
    pub allocation: Option<u32>,
}

enum Stage {
    Greeting,
    /// Waits for the replies to this option.
    Asked(u32),
    /// Waits for an old server's description of the export.
    Named,
}

/// The state of the handshake.
pub(super) enum Step {
    /// More bytes are needed.
    More,
    /// All that follows travels in records of TLS; [`Shake::secured`] goes on then.
    Secure,
    /// The transmission phase begins, for an export of these facts.
    Done(Facts),
}

/// The client's side of a handshake, without the socket: bytes in, bytes out.
pub(super) struct Shake {
    export: String,
    /// It begins with STARTTLS.
    tls: bool,
    stage: Stage,
    no_zeroes: bool,
    facts: Facts,
}

impl Shake {
    pub fn new(export: &str, tls: bool) -> Self {
        let facts = Facts {
            minimum_bytes: 1,
            preferred_bytes: 4096,
            maximum_bytes: PAYLOAD_BYTES_MAX,
            ..Facts::default()
        };
        Self {
            export: export.to_owned(),
            tls,
            stage: Stage::Greeting,
            no_zeroes: false,
            facts,
        }
    }

    /// Goes on with what has come; what was used is taken from `input`, what is to be sent is
    /// appended to `out`.
    ///
    /// # Errors
    /// The refusal or fault of the server, in plain words.
    pub fn advance(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Step, String> {
        loop {
            let (used, done) = match self.stage {
                Stage::Greeting if OldGreeting::is_begun(input) => {
                    let Some(greeting) = input.get(..OLD_GREETING_BYTES) else {
                        return Ok(Step::More);
                    };
                    (OLD_GREETING_BYTES, Some(self.greeted_oldstyle(greeting)?))
                }
                Stage::Greeting => match input.get(..GREETING_BYTES) {
                    Some(greeting) => (GREETING_BYTES, self.greeted(greeting, out)?),
                    None => return Ok(Step::More),
                },
                Stage::Asked(asked) => {
                    let Some(header) = input.get(..OPTION_REPLY_HEADER_BYTES) else {
                        return Ok(Step::More);
                    };
                    let header = OptionReplyHeader::decode(header).map_err(|e| e.to_string())?;
                    if header.length > OPTION_BYTES_MAX {
                        return Err(format!("a reply of {} bytes to an option", header.length));
                    }
                    let end = OPTION_REPLY_HEADER_BYTES + header.length as usize;
                    let Some(data) = input.get(OPTION_REPLY_HEADER_BYTES..end) else {
                        return Ok(Step::More);
                    };
                    if header.option != asked {
                        let other = header.option;
                        return Err(format!("a reply to option {other} instead of {asked}"));
                    }
                    (end, self.replied(header, data, out)?)
                }
                Stage::Named => {
                    let length = ExportReply::length_bytes(self.no_zeroes);
                    let Some(reply) = input.get(..length) else {
                        return Ok(Step::More);
                    };
                    let reply = ExportReply::decode(reply).map_err(|error| error.to_string())?;
                    self.facts.size_bytes = reply.size_bytes;
                    self.facts.flags = reply.flags;
                    (length, Some(self.told()))
                }
            };
            input.drain(..used);
            if let Some(step) = done {
                if matches!(step, Step::Secure) && !input.is_empty() {
                    let why = "the server sent unencrypted data after STARTTLS";
                    return Err(why.to_owned());
                }
                return Ok(step);
            }
        }
    }

    fn greeted(&mut self, greeting: &[u8], out: &mut Vec<u8>) -> Result<Option<Step>, String> {
        let greeting = Greeting::decode(greeting).map_err(|error| error.to_string())?;
        let both = greeting.flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
        self.no_zeroes = both & handshake_flag::NO_ZEROES != 0;
        out.extend(u32::from(both).to_be_bytes());
        if !greeting.is_fixed() {
            if self.tls {
                return Err(TOO_OLD_FOR_TLS.to_owned());
            }
            self.ask_by_name(out);
        } else if self.tls {
            self.ask(option::STARTTLS, &[], out);
        } else {
            self.secured(out);
        }
        Ok(None)
    }

    fn greeted_oldstyle(&mut self, greeting: &[u8]) -> Result<Step, String> {
        if self.tls {
            return Err(TOO_OLD_FOR_TLS.to_owned());
        }
        if !self.export.is_empty() {
            return Err("the server has one export without a name (oldstyle)".to_owned());
        }
        let greeting = OldGreeting::decode(greeting).map_err(|error| error.to_string())?;
        self.facts.size_bytes = greeting.size_bytes;
        self.facts.flags = greeting.flags;
        Ok(self.told())
    }

    /// Asks for the export with the one option that all newstyle servers have.
    fn ask_by_name(&mut self, out: &mut Vec<u8>) {
        let name = self.export.clone();
        self.ask(option::EXPORT_NAME, name.as_bytes(), out);
        self.stage = Stage::Named;
    }

    /// Goes on in TLS, or without it where none was asked for.
    pub fn secured(&mut self, out: &mut Vec<u8>) {
        self.ask(option::STRUCTURED_REPLY, &[], out);
    }

    fn told(&mut self) -> Step {
        Step::Done(std::mem::take(&mut self.facts))
    }

    fn ask(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let header = OptionHeader {
            option,
            length: data.len() as u32,
        };
        out.extend(header.encode());
        out.extend(data);
        self.stage = Stage::Asked(option);
    }

    fn go(&mut self, out: &mut Vec<u8>) {
        let request = InfoRequest {
            name: self.export.clone(),
            wanted: vec![info::BLOCK_SIZE, info::DESCRIPTION],
        };
        self.ask(option::GO, &request.encode(), out);
    }

    /// The step after a reply that is not another option.
    fn replied(
        &mut self,
        header: OptionReplyHeader,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, String> {
        match (header.option, header.reply) {
            (_, option_reply::ERR_TLS_REQD) => {
                return Err("the server serves clients with TLS only: nbds://".to_owned());
            }
            (option::STARTTLS, option_reply::ACK) => return Ok(Some(Step::Secure)),
            (option::STARTTLS, _) => {
                let why = refusal(header.reply, data);
                return Err(format!("the server offers no TLS ({why})"));
            }
            (option::STRUCTURED_REPLY, option_reply::ACK) => {
                self.facts.structured = true;
                let request = MetaRequest {
                    name: self.export.clone(),
                    queries: vec![BASE_ALLOCATION.to_owned()],
                };
                self.ask(option::SET_META_CONTEXT, &request.encode(), out);
            }
            (option::SET_META_CONTEXT, option_reply::META_CONTEXT) => {
                let context = MetaContext::decode(data).map_err(|error| error.to_string())?;
                if context.name == BASE_ALLOCATION {
                    self.facts.allocation = Some(context.id);
                }
            }
            (option::GO, option_reply::INFO) => {
                self.learn(Info::decode(data).map_err(|error| error.to_string())?)?;
            }
            (option::GO, option_reply::ACK) => return Ok(Some(self.told())),
            (option::GO, option_reply::ERR_UNSUP) => {
                self.ask_by_name(out);
            }
            (option::GO, _) if header.is_error() => return Err(refusal(header.reply, data)),
            // Everything else is done without.
            (option::SET_META_CONTEXT, option_reply::ACK) => self.go(out),
            (option::STRUCTURED_REPLY | option::SET_META_CONTEXT, _) if header.is_error() => {
                self.go(out);
            }
            _ => {}
        }
        Ok(None)
    }

    fn learn(&mut self, info: Info) -> Result<(), String> {
        match info {
            Info::Export { size_bytes, flags } => {
                self.facts.size_bytes = size_bytes;
                self.facts.flags = flags;
            }
            Info::BlockSize {
                minimum_bytes,
                preferred_bytes,
                maximum_bytes,
            } => {
                check_sizes(minimum_bytes, preferred_bytes, maximum_bytes)?;
                self.facts.minimum_bytes = minimum_bytes;
                self.facts.preferred_bytes = preferred_bytes;
                self.facts.maximum_bytes = maximum_bytes.min(PAYLOAD_BYTES_MAX);
            }
            Info::Description(text) => self.facts.description = text,
            Info::Name(_) | Info::Other(_) => {}
        }
        Ok(())
    }
}

/// Refuses block sizes that the protocol forbids ("Block size constraints" of proto.md).
fn check_sizes(minimum: u32, preferred: u32, maximum: u32) -> Result<(), String> {
    let problem = if !minimum.is_power_of_two() || minimum > MINIMUM_BYTES_MAX {
        format!("minimum of {minimum} bytes (not a power of two up to {MINIMUM_BYTES_MAX})")
    } else if !preferred.is_power_of_two() || preferred < minimum.max(512) {
        let least = minimum.max(512);
        format!("preferred size of {preferred} bytes (not a power of two from {least} on)")
    } else if maximum != u32::MAX && (maximum == 0 || !maximum.is_multiple_of(minimum)) {
        format!("maximum of {maximum} bytes (not a multiple of the minimum, {minimum})")
    } else {
        return Ok(());
    };
    Err(format!("the server has an invalid block size: a {problem}"))
}

/// The server's own words, or the meaning of its number.
fn refusal(reply: u32, data: &[u8]) -> String {
    let meaning = match reply {
        option_reply::ERR_UNKNOWN => "it has no such export",
        option_reply::ERR_POLICY => "its rules forbid it",
        option_reply::ERR_SHUTDOWN => "it is shutting down",
        _ => "it gives no reason",
    };
    let text = String::from_utf8_lossy(data);
    if text.is_empty() {
        return format!("the server refuses: {meaning}");
    }
    format!("the server refuses: {}", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_are_those_of_the_protocol() {
        for (minimum, preferred, maximum, valid) in [
            (1, 512, 1, true),
            (1, 4096, u32::MAX, true),
            (4096, 65_536, 32 << 20, true),
            (65_536, 1 << 31, 65_536, true),
            (1 << 31, 1 << 31, 1 << 31, false),
            (131_072, 131_072, 131_072, false),
            (0, 4096, 32 << 20, false),
            (3, 4096, 32 << 20, false),
            (1, 7, 32 << 20, false),
            (1, 256, 32 << 20, false),
            (4096, 512, 32 << 20, false),
            (512, 4096, 1000, false),
            (512, 4096, 0, false),
        ] {
            let checked = check_sizes(minimum, preferred, maximum);
            assert_eq!(checked.is_ok(), valid, "{checked:?}");
        }
    }
}
