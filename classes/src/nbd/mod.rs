//! `nbd`: a disk that another machine or program serves over NBD, as the bottom of a stack (GEOM
//! has `ggate(8)` for that).
//!
//! ```text
//!        caller                              its thread sleeps on the link's descriptor
//!          | READ 4096 at 512                                ^
//!        nbd0                start: park the bio, queue it   |
//!          |                 poll:  send all that is queued, take all replies
//!     link (one a thread where the server allows it, else one with a thread of its own)
//!          |
//!     socket to the server
//! ```
//!
//! A server that says `CAN_MULTI_CONN` gets a connection from each thread that uses the provider;
//! no request changes threads then. For any other server there is one connection, which a thread of
//! its own looks after: requests travel to it, and home again, through mailboxes.
//!
//! A connection that no thread uses any more is kept for the next one ([`spare`]).
//!
//! A FLUSH goes over every connection that has acknowledged writes to be flushed ([`links`]).
//!
//! When a connection breaks, or the server is silent for too long, it is made again, and requests
//! that were not answered are sent once more, in the order in which they were made: reads, and
//! writes of the same data to the same place, may be done twice. `docs/classes/nbd.md` says what
//! that can and cannot promise.

mod answer_timeout;
mod connect;
mod durability;
mod link;
mod links;
mod route;
mod service;
mod shake;
mod spare;
mod start;
mod state;
#[cfg(test)]
mod tests;
mod together;

use crate::build::{BuildContext, BuildError, mark_of_padding};
use crate::entry::{Build, ClassEntry, Role};
use crate::presence::Presence;
use crate::spec::OptionDefault::{Absent, Depends, Required, Value};
use crate::spec::{LayerArguments, OptionTable, ValueError, option, values};
use crate::{set_choice, set_field};
use connect::FirstConnection;
use links::Flusher;
use route::Route;
use service::Service;
use shake::Facts;
use spare::Spare;
use state::ThreadLink;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use together::Together;
use ugeom_format::wire::nbd::export_flag;
use ugeom_format::wire::nbd::uri::{self, ServerAddress, Uri};
use ugeom_stack::{
    AccessChange, Cx, Delta, Errno, Fact, Geom, LocalKey, Losses, Next, Plan, ProviderPlan,
    Request, ThreadState,
};
use ugeom_tls::ClientTls;

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "nbd",
    class: "NBD",
    about: "a disk that another program or machine serves over NBD",
    role: Role::Bottom,
    positional: &["uri"],
    options: &OPTIONS,
    build: Build::Bottom(build),
    taste: None,
};

/// The options as they are written.
#[derive(Default)]
struct Wanted {
    uri: String,
    socket: Option<String>,
    certificates: Option<String>,
    hostname: Option<String>,
    sector_bytes: Option<u64>,
    timeout_ns: u64,
    retry_ns: u64,
    only_one: bool,
    name: Option<String>,
}

const NO_KEYS: &str = "pre-shared keys are not supported: the TLS library (rustls) has none; use \
                       tls-certificates";

#[rustfmt::skip]
const OPTIONS: OptionTable<Wanted> = OptionTable(&[
    option("uri", "URI", Required,
        "nbd://HOST[:PORT]/EXPORT, or nbd+unix:///EXPORT with socket=PATH; nbds for TLS",
        set_field!(uri = values::text)),
    option("socket", "PATH", Absent, "the server's socket, for nbd+unix and nbds+unix",
        set_field!(socket = values::text)),
    option("tls-certificates", "DIR", Depends("the system's authorities"),
        "folder with ca-cert.pem, and client-cert.pem and client-key.pem for servers that ask",
        set_field!(certificates = values::text)),
    option("tls-hostname", "NAME", Depends("the host, or localhost"),
        "the name that the server's certificate must have", set_field!(hostname = values::text)),
    option("tls-psk-file", "FILE", Absent, "refused: pre-shared keys are not supported",
        |_, _| Err(ValueError::new(NO_KEYS))),
    option("sectorsize", "SIZE", Depends("512, or the server's minimum"),
        "size of a sector, a power of two from 512 to 1m",
        set_field!(sector_bytes = values::sector_size)),
    option("timeout", "TIME", Value("30s"),
        "reconnect when a server that owes replies has sent nothing of use for this long",
        set_field!(timeout_ns = values::duration_ns)),
    option("retry", "TIME", Value("1m"),
        "fail requests when no server has answered for this long",
        set_field!(retry_ns = values::duration_ns)),
    option("connections", "auto|1", Value("auto"),
        "auto: one a thread if the server declares them coherent; 1: one for all threads",
        set_choice!(only_one = [("auto", false), ("1", true)])),
    option("name", "NAME", Depends("nbd0, nbd1, ..."), "name of the provider",
        set_field!(name = values::provider_name)),
]);

/// Where the export is, and its known properties.
pub(super) struct Remote {
    route: Route,
    export: String,
    tls: Option<ClientTls>,
    facts: Facts,
    spare: Spare,
    sector_bytes: u32,
    /// Silence of a server that owes answers.
    timeout: Duration,
    /// Absence of a server.
    retry: Duration,
    /// Connections that may break over one request.
    breaks_max: u32,
    /// One connection for all threads, even if the server allows more.
    only_one: bool,
    /// Why requests fail without a server, where another reason is true than that it is
    /// unreachable.
    absent: Option<&'static str>,
    /// Acknowledged writes that are lost, of all links.
    losses: Arc<Losses>,
    together: Arc<Together>,
}

impl Remote {
    /// Each thread has a connection of its own.
    fn many(&self) -> bool {
        self.has(export_flag::CAN_MULTI_CONN) && !self.only_one
    }

    fn has(&self, flag: u16) -> bool {
        self.facts.flags & flag != 0
    }
}

/// The geom of a remote disk.
pub struct NbdGeom {
    remote: Arc<Remote>,
    writable: bool,
    key: LocalKey,
    ways: Ways,
    /// The image of a private server.
    presence: Option<Presence>,
    _keeps: Option<Keeps>,
}

/// How requests get to the server.
enum Ways {
    /// It allows one connection only.
    One(Service),
    /// Each thread has its own; a FLUSH visits all that have something to flush.
    Many(Flusher),
}

impl Geom for NbdGeom {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        match &self.ways {
            Ways::One(_) => Err(Errno::NXIO),
            Ways::Many(flusher) => Ok(Box::new(ThreadLink::new(&self.remote, &flusher.links)?)),
        }
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.key)
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if change.delta.write > 0 && !self.writable {
            return Err(Errno::ROFS);
        }
        Ok(Vec::new())
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.remote.losses)
    }

    fn ends_with_process(&self) -> Option<&'static str> {
        self.presence.as_ref()?.lost()
    }

    /// Each connection has an account of its writes ([`durability`]): without a write before it, a
    /// FLUSH that fails has lost nothing.
    fn notes_each_loss(&self) -> bool {
        true
    }

    fn config(&self) -> Vec<Fact> {
        let connections = match &self.ways {
            Ways::One(_) if self.remote.only_one => "one: connections=1",
            Ways::One(_) => "one: the server promises nothing for more",
            Ways::Many(flusher) if flusher.links.is_shared() => "one: the server admits no more",
            Ways::Many(_) => "one a thread",
        };
        vec![("connections", connections.into())]
    }
}

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
) -> Result<Plan, BuildError> {
    let wanted = arguments.read(&OPTIONS, Wanted::default())?;
    let parsed = match uri::parse(&wanted.uri, wanted.socket.as_deref()) {
        Ok(parsed) => parsed,
        Err(problem) => return Err(arguments.invalid("uri", problem).into()),
    };
    let tls = tls(&parsed, &wanted, &arguments)?;
    let Uri { server, export, .. } = parsed;
    let timeout = Duration::from_nanos(wanted.timeout_ns);
    let retry = Duration::from_nanos(wanted.retry_ns);
    let name = wanted.name.unwrap_or_else(|| context.next_name("nbd"));
    let refused = |problem: String| BuildError::Refused {
        path: match export.is_empty() {
            true => server.to_string(),
            false => format!("{server}, export `{export}`"),
        },
        problem,
    };
    let connected = connect::first(server.clone(), &export, tls.as_ref(), timeout);
    let FirstConnection {
        facts,
        stream,
        route,
    } = connected.map_err(refused)?;
    let spare = Spare::new(stream, facts.allocation);
    let sector_bytes = wanted.sector_bytes.unwrap_or(512);
    let sector_bytes = sector_of(&facts, sector_bytes).map_err(refused)?;
    let losses = Arc::default();
    let remote = Arc::new(Remote {
        route,
        export,
        tls,
        facts,
        spare,
        sector_bytes,
        timeout,
        retry,
        breaks_max: u32::MAX,
        only_one: wanted.only_one,
        absent: None,
        together: Together::new(&losses, timeout),
        losses,
    });
    let mut config = vec![
        ("server", remote.route.server().to_string()),
        ("export", remote.export.clone()),
    ];
    if remote.tls.is_some() {
        let verified = "on, the server's certificate is verified";
        config.push(("tls", verified.into()));
    }
    if !remote.facts.description.is_empty() {
        config.push(("description", remote.facts.description.clone()));
    }
    plan(name, remote, context.writable(), (config, None, None))
}

/// The sector size of an export.
fn sector_of(facts: &Facts, wanted: u64) -> Result<u32, String> {
    let sectorsize = wanted.max(u64::from(facts.minimum_bytes));
    let size = facts.size_bytes;
    if size == 0 {
        return Err("the export is empty (0 bytes)".to_owned());
    }
    let sectors = size.checked_next_multiple_of(sectorsize);
    if !sectorsize.is_power_of_two() || sectors.is_none() {
        let minimum = facts.minimum_bytes;
        return Err(format!(
            "{size} bytes in blocks of {minimum} make no sector of {sectorsize}"
        ));
    }
    Ok(sectorsize as u32)
}

/// A server that was started for one geom, and ends with it.
pub(crate) struct Private {
    pub name: String,
    pub socket: std::path::PathBuf,
    pub sector_bytes: u32,
    pub writable: bool,
    /// Facts of the provider.
    pub config: Vec<Fact>,
    /// The image, where it is open for writing.
    pub presence: Option<Presence>,
    /// Dropped when the last connection is closed.
    pub keeps: Keeps,
}

/// How long a server that was started here may take to answer: it may work on a slow disk.
const PRIVATE_TIMEOUT: Duration = Duration::from_secs(600);
/// A server that was started here does not come back.
const PRIVATE_RETRY: Duration = Duration::from_millis(100);
/// Why requests fail that it would have to answer.
const PRIVATE_ABSENT: &str = "qemu-nbd, which reads this image, has ended";
/// qemu-nbd breaks the connection where the image cannot be read: trying for longer would only make
/// each look at a damaged image take longer.
const PRIVATE_BREAKS_MAX: u32 = 3;

/// The default export of a server that was started for this geom.
///
/// # Errors
/// It cannot be reached, or its disk cannot be used like this.
pub(crate) fn private(private: Private) -> Result<Plan, String> {
    let server = ServerAddress::Unix(private.socket);
    let FirstConnection {
        facts,
        stream,
        route,
    } = connect::first(server, "", None, PRIVATE_TIMEOUT)?;
    let spare = Spare::new(stream, facts.allocation);
    let wanted = u64::from(private.sector_bytes);
    let sector_bytes = sector_of(&facts, wanted)?;
    let losses = Arc::default();
    let remote = Arc::new(Remote {
        route,
        export: String::new(),
        tls: None,
        facts,
        spare,
        sector_bytes,
        timeout: PRIVATE_TIMEOUT,
        retry: PRIVATE_RETRY,
        breaks_max: PRIVATE_BREAKS_MAX,
        only_one: false,
        absent: Some(PRIVATE_ABSENT),
        together: Together::new(&losses, PRIVATE_TIMEOUT),
        losses,
    });
    let more = (private.config, private.presence, Some(private.keeps));
    plan(private.name, remote, private.writable, more).map_err(|error| error.to_string())
}

/// Something that lives as long as a geom.
type Keeps = Box<dyn Any + Send + Sync>;

/// The TLS configuration of the connection, if the URI asks for TLS.
fn tls(
    parsed: &Uri,
    wanted: &Wanted,
    arguments: &LayerArguments<'_>,
) -> Result<Option<ClientTls>, BuildError> {
    if !parsed.tls {
        for option in ["tls-certificates", "tls-hostname"] {
            if arguments.is_given(option) {
                let problem = "it belongs to nbds:// and nbds+unix://";
                return Err(arguments.invalid(option, problem).into());
            }
        }
        return Ok(None);
    }
    let host = match &parsed.server {
        ServerAddress::Tcp { host, .. } => host,
        ServerAddress::Unix(_) => "localhost",
    };
    let name = wanted.hostname.as_deref().unwrap_or(host);
    let tls = ClientTls::open(wanted.certificates.as_deref().map(Path::new), name);
    tls.map(Some)
        .map_err(|error| BuildError::refused(&parsed.server.to_string(), error.to_string()))
}

fn plan(
    name: String,
    remote: Arc<Remote>,
    writable: bool,
    (mut config, presence, keeps): (Vec<Fact>, Option<Presence>, Option<Keeps>),
) -> Result<Plan, BuildError> {
    let sectorsize = u64::from(remote.sector_bytes);
    let writable = writable && !remote.has(export_flag::READ_ONLY);
    let ways = if remote.many() {
        Flusher::start(&remote).map(Ways::Many)
    } else {
        Service::start(&remote).map(Ways::One)
    };
    let ways = ways.map_err(BuildError::system("nbd", "starting a thread"))?;
    let access = if writable { "read-write" } else { "read-only" };
    config.push(("access", access.into()));
    let size_bytes = remote.facts.size_bytes;
    let mediasize_bytes = size_bytes.next_multiple_of(sectorsize);
    let padding_bytes = (mediasize_bytes - size_bytes) as u32;
    let provider = ProviderPlan {
        name: name.clone(),
        mediasize_bytes,
        padding_bytes,
        mark: (padding_bytes > 0).then(|| mark_of_padding(size_bytes, padding_bytes)),
        sectorsize_bytes: sectorsize as u32,
        stripesize_bytes: if u64::from(remote.facts.preferred_bytes) > sectorsize {
            remote.facts.preferred_bytes.into()
        } else {
            0
        },
        config,
        ..ProviderPlan::default()
    };
    let key = LocalKey::new();
    Ok(Plan {
        name,
        geom: Arc::new(NbdGeom {
            remote,
            writable,
            key,
            ways,
            presence,
            _keeps: keeps,
        }),
        providers: vec![provider],
    })
}
