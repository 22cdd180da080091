//! The handshake: bytes in, bytes out, and at its end an export that is open, or a reason to leave.

use super::exports::{Chosen, Export, Refusal, Visible};
use ugeom_format::wire::nbd::{
    ALLOCATION_DEPTH, BASE_ALLOCATION, CLIENT_FLAGS_BYTES, Error, ExportReply, Greeting, Info,
    InfoRequest, Listed, MetaContext, MetaRequest, OPTION_BYTES_MAX, OPTION_HEADER_BYTES,
    OptionHeader, OptionReplyHeader, STRING_BYTES_MAX, export_name, handshake_flag, info, option,
    option_reply,
};

/// The flags of our greeting.
const FLAGS: u16 = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;

/// The longest data of an option that is read and refused, bytes; with more the client is left.
const SKIP_BYTES_MAX: u32 = 1 << 20;

/// Numbers of contexts in replies to BLOCK_STATUS.
pub(super) const ALLOCATION_ID: u32 = 1;
pub(super) const DEPTH_ID: u32 = 2;

/// How a client is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyStyle {
    /// One header and the data of the request (`NBD_SIMPLE_REPLY_MAGIC`).
    Simple,
    /// Structured: a READ and a BLOCK_STATUS in chunks.
    Chunks,
    /// Everything in chunks with 64-bit lengths, and so are the requests.
    Extended,
}

/// The contexts of a BLOCK_STATUS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contexts {
    /// Holes and zeroes: `base:allocation`.
    pub allocation: bool,
    /// The depth of the layer that has the data: `qemu:allocation-depth`.
    pub depth: bool,
}

impl Contexts {
    pub fn any(self) -> bool {
        self.allocation || self.depth
    }
}

/// Where in the handshake a client is.
enum Stage {
    /// Its flags come next.
    Flags,
    /// A header of an option comes next.
    Header,
    /// The data of an option comes next.
    Data(OptionHeader),
    /// So many bytes of an option's data are not looked at.
    Skip(OptionHeader, u32),
}

/// Whether a client may do without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    /// There is no TLS.
    None,
    /// A client may ask for TLS.
    Offered,
    /// A client without TLS is refused.
    Required,
    /// It has done so.
    Established,
}

pub(super) struct Handshake {
    stage: Stage,
    security: Security,
    no_zeroes: bool,
    style: ReplyStyle,
    /// The contexts that were chosen, and for which export.
    contexts: (String, Contexts),
}

/// The state of the handshake.
pub(super) enum Step {
    /// More bytes are needed.
    More,
    /// It is over; with a reason when that is the client's fault.
    Leave(Option<String>),
    /// All that follows travels in records of TLS; [`Handshake::secured`] goes on then.
    Secure,
    /// The transmission phase begins.
    Start(Box<Session>),
}

/// The agreed session.
pub(super) struct Session {
    pub chosen: Chosen,
    pub style: ReplyStyle,
    pub contexts: Contexts,
}

impl Handshake {
    /// A handshake at its start, and the server's first message.
    pub fn new(security: Security) -> (Self, Vec<u8>) {
        let handshake = Self {
            stage: Stage::Flags,
            security,
            no_zeroes: false,
            style: ReplyStyle::Simple,
            contexts: Default::default(),
        };
        (handshake, Greeting { flags: FLAGS }.encode().to_vec())
    }

    /// TLS begins. Earlier negotiation may be an attacker's, and is dropped.
    pub fn secured(&mut self) {
        self.security = Security::Established;
        self.style = ReplyStyle::Simple;
        self.contexts = Default::default();
    }

    /// Goes on with what has come. Used bytes are taken from `input`; answers are appended to
    /// `out`.
    pub fn advance(
        &mut self,
        input: &mut Vec<u8>,
        exports: &Visible<'_>,
        out: &mut Vec<u8>,
    ) -> Step {
        let mut used = 0;
        let step = loop {
            let rest = &input[used..];
            let (taken, step) = self.once(rest, exports, out);
            used += taken;
            match step {
                Some(step) => break step,
                None if taken == 0 => break Step::More,
                None => {}
            }
        };
        input.drain(..used);
        step
    }

    /// One message: how many bytes it had (0 when it is not whole), and its effect.
    fn once(
        &mut self,
        input: &[u8],
        exports: &Visible<'_>,
        out: &mut Vec<u8>,
    ) -> (usize, Option<Step>) {
        match self.stage {
            Stage::Flags => match input.first_chunk::<CLIENT_FLAGS_BYTES>() {
                Some(flags) => (CLIENT_FLAGS_BYTES, self.flags(u32::from_be_bytes(*flags))),
                None => (0, None),
            },
            Stage::Header => match input.get(..OPTION_HEADER_BYTES) {
                Some(header) => (OPTION_HEADER_BYTES, self.header(header)),
                None => (0, None),
            },
            Stage::Data(header) => match input.get(..header.length as usize) {
                Some(data) => {
                    self.stage = Stage::Header;
                    let step = self.option(header, data, exports, out);
                    // An option without data takes no bytes, and is progress all the same.
                    match step {
                        None if data.is_empty() => self.once(input, exports, out),
                        step => (data.len(), step),
                    }
                }
                None => (0, None),
            },
            Stage::Skip(header, left) => {
                let now = input.len().min(left as usize);
                let left = left - now as u32;
                self.stage = Stage::Skip(header, left);
                if left == 0 {
                    self.stage = Stage::Header;
                    let message = format!("the limit is {OPTION_BYTES_MAX} bytes");
                    refuse(out, header.option, option_reply::ERR_TOO_BIG, &message);
                }
                (now, None)
            }
        }
    }

    fn flags(&mut self, flags: u32) -> Option<Step> {
        let unknown = flags & !u32::from(FLAGS);
        if unknown != 0 {
            // A TLS hello begins like this, too; its header says so better than its flags.
            let why = format!(
                "it sent flags that were not offered: {flags:#x}{}",
                tls(flags)
            );
            return Some(Step::Leave(Some(why)));
        }
        self.no_zeroes = flags & u32::from(handshake_flag::NO_ZEROES) != 0;
        self.stage = Stage::Header;
        None
    }

    fn header(&mut self, bytes: &[u8]) -> Option<Step> {
        match OptionHeader::decode(bytes) {
            Ok(header) if header.length > SKIP_BYTES_MAX => {
                let OptionHeader { option, length } = header;
                let why = format!("it sent option {option} with {length} bytes of data");
                Some(Step::Leave(Some(why)))
            }
            Ok(header) if header.length > OPTION_BYTES_MAX => {
                self.stage = Stage::Skip(header, header.length);
                None
            }
            Ok(header) => {
                self.stage = Stage::Data(header);
                None
            }
            Err(error) => Some(Step::Leave(Some(error.to_string()))),
        }
    }

    fn option(
        &mut self,
        header: OptionHeader,
        data: &[u8],
        exports: &Visible<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        let number = header.option;
        if self.security == Security::Required
            && !matches!(number, option::ABORT | option::STARTTLS)
        {
            if number == option::EXPORT_NAME {
                return Some(Step::Leave(Some("it does not use TLS".to_owned())));
            }
            let message = "this server serves clients with TLS only";
            refuse(out, number, option_reply::ERR_TLS_REQD, message);
            return None;
        }
        match number {
            option::EXPORT_NAME => return Some(self.export_name(data, exports, out)),
            option::ABORT => {
                reply(out, number, option_reply::ACK, &[]);
                return Some(Step::Leave(None));
            }
            option::LIST | option::STRUCTURED_REPLY | option::EXTENDED_HEADERS
                if !data.is_empty() =>
            {
                refuse(out, number, option_reply::ERR_INVALID, "it has no data");
            }
            option::LIST => {
                for Export {
                    name, description, ..
                } in exports.all()
                {
                    let listed = Listed { name, description };
                    reply(out, number, option_reply::SERVER, &listed.encode());
                }
                reply(out, number, option_reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY => self.restyle(out, number, ReplyStyle::Chunks),
            option::EXTENDED_HEADERS => self.restyle(out, number, ReplyStyle::Extended),
            option::INFO => {
                let found = understood(InfoRequest::decode(data));
                let told = found.and_then(|request| {
                    let export = exports.find(&request.name)?;
                    Ok((export, request))
                });
                match told {
                    Ok((export, request)) => self.tell(out, number, &export, &request),
                    Err(refusal) => refuse(out, number, refusal.reply, &refusal.message),
                }
            }
            option::GO => return self.go(data, exports, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                if let Err(refusal) = self.contexts(number, data, exports, out) {
                    refuse(out, number, refusal.reply, &refusal.message);
                }
            }
            option::STARTTLS => return self.start_tls(data, out),
            _ => refuse(out, number, option_reply::ERR_UNSUP, "unknown option"),
        }
        None
    }

    fn start_tls(&self, data: &[u8], out: &mut Vec<u8>) -> Option<Step> {
        let (error, why) = match self.security {
            Security::None => (option_reply::ERR_UNSUP, "there is no TLS here"),
            _ if !data.is_empty() => (option_reply::ERR_INVALID, "it has no data"),
            Security::Established => (option_reply::ERR_INVALID, "it is TLS already"),
            Security::Offered | Security::Required => {
                reply(out, option::STARTTLS, option_reply::ACK, &[]);
                return Some(Step::Secure);
            }
        };
        refuse(out, option::STARTTLS, error, why);
        None
    }

    fn export_name(&mut self, data: &[u8], exports: &Visible<'_>, out: &mut Vec<u8>) -> Step {
        let chosen = understood(export_name(data)).and_then(|name| exports.open(&name));
        match chosen {
            Ok(chosen) => {
                let answer = ExportReply {
                    size_bytes: chosen.export.size_bytes,
                    flags: chosen.export.flags(self.in_chunks()),
                };
                out.extend(answer.encode(self.no_zeroes));
                self.start(chosen)
            }
            // This option has no reply for errors: the protocol says to leave.
            Err(refusal) => Step::Leave(Some(refusal.message)),
        }
    }

    fn go(&mut self, data: &[u8], exports: &Visible<'_>, out: &mut Vec<u8>) -> Option<Step> {
        let chosen = understood(InfoRequest::decode(data))
            .and_then(|request| Ok((exports.open(&request.name)?, request)));
        match chosen {
            Ok((chosen, request)) => {
                self.tell(out, option::GO, &chosen.export, &request);
                Some(self.start(chosen))
            }
            Err(refusal) => {
                refuse(out, option::GO, refusal.reply, &refusal.message);
                None
            }
        }
    }

    fn start(&mut self, chosen: Chosen) -> Step {
        let (of, contexts) = std::mem::take(&mut self.contexts);
        let contexts = if of == chosen.export.name {
            contexts
        } else {
            Contexts::default()
        };
        Step::Start(Box::new(Session {
            chosen,
            style: self.style,
            contexts,
        }))
    }

    /// Agrees on chunks, unless more is agreed on already.
    fn restyle(&mut self, out: &mut Vec<u8>, number: u32, style: ReplyStyle) {
        if self.style == ReplyStyle::Extended && style == ReplyStyle::Chunks {
            let why = "extended headers are already in use";
            return refuse(out, number, option_reply::ERR_EXT_HEADER_REQD, why);
        }
        self.style = style;
        reply(out, number, option_reply::ACK, &[]);
    }

    fn in_chunks(&self) -> bool {
        self.style != ReplyStyle::Simple
    }

    /// The facts about an export that were asked for, those that every client needs, and the end.
    fn tell(&self, out: &mut Vec<u8>, number: u32, export: &Export, request: &InfoRequest) {
        let wants = |fact: u16| request.wanted.contains(&fact);
        let mut facts = vec![Info::Export {
            size_bytes: export.size_bytes,
            flags: export.flags(self.in_chunks()),
        }];
        if wants(info::NAME) {
            facts.push(Info::Name(export.name.clone()));
        }
        if wants(info::DESCRIPTION) && !export.description.is_empty() {
            facts.push(Info::Description(export.description.clone()));
        }
        if wants(info::BLOCK_SIZE) {
            facts.push(Info::BlockSize {
                minimum_bytes: 1,
                preferred_bytes: export.preferred_bytes,
                maximum_bytes: export.maximum_bytes(),
            });
        }
        for fact in facts {
            reply(out, number, option_reply::INFO, &fact.encode());
        }
        reply(out, number, option_reply::ACK, &[]);
    }

    fn contexts(
        &mut self,
        number: u32,
        data: &[u8],
        exports: &Visible<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let request = understood(MetaRequest::decode(data))?;
        let sets = number == option::SET_META_CONTEXT;
        if sets {
            self.contexts = Default::default();
        }
        if !self.in_chunks() {
            return Err(Refusal {
                reply: option_reply::ERR_INVALID,
                message: "negotiate structured replies first".to_owned(),
            });
        }
        let export = exports.find(&request.name)?;
        let all = !sets && request.queries.is_empty();
        let mut chosen = Contexts::default();
        let known = [
            (
                ALLOCATION_ID,
                BASE_ALLOCATION,
                "base:",
                &mut chosen.allocation,
            ),
            (DEPTH_ID, ALLOCATION_DEPTH, "qemu:", &mut chosen.depth),
        ];
        for (id, name, space, is_chosen) in known {
            let is_asked = |query: &String| query == name || (!sets && query == space);
            if !all && !request.queries.iter().any(is_asked) {
                continue;
            }
            *is_chosen = true;
            let context = MetaContext {
                id: if sets { id } else { 0 },
                name: name.to_owned(),
            };
            reply(out, number, option_reply::META_CONTEXT, &context.encode());
        }
        if sets {
            self.contexts = (export.name, chosen);
        }
        reply(out, number, option_reply::ACK, &[]);
        Ok(())
    }
}

/// Flags of which the first two bytes are those of a TLS record.
fn tls(flags: u32) -> &'static str {
    if flags >> 16 == 0x1603 {
        " (a TLS hello: this port speaks plain NBD)"
    } else {
        ""
    }
}

fn understood<T>(decoded: Result<T, Error>) -> Result<T, Refusal> {
    decoded.map_err(|error| Refusal {
        reply: option_reply::ERR_INVALID,
        message: error.to_string(),
    })
}

fn reply(out: &mut Vec<u8>, option: u32, reply: u32, data: &[u8]) {
    let header = OptionReplyHeader {
        option,
        reply,
        length: data.len() as u32,
    };
    out.extend(header.encode());
    out.extend(data);
}

fn refuse(out: &mut Vec<u8>, option: u32, error: u32, message: &str) {
    let mut end = message.len().min(STRING_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    reply(out, option, error, &message.as_bytes()[..end]);
}
