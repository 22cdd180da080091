//! How experiments reach a provider through our servers. The bench stands beside the servers and
//! does not know them; this is where both meet.

use std::sync::Arc;
use ugeom_classes::path_of;
use ugeom_experiment::served::{Address, Served, ServerKind};
use ugeom_machine::cpu;
use ugeom_machine::temporary::PrivateFolder;
use ugeom_serve::ranges::Ranges;
use ugeom_serve::shown::Shown;
use ugeom_serve::{fuse, nbd};
use ugeom_stack::Stack;

/// All ways, in the order of reports.
pub const SERVERS: [ServerKind; 2] = [
    ServerKind {
        name: "NBD",
        serve: by_nbd,
    },
    ServerKind {
        name: "FUSE",
        serve: by_fuse,
    },
];

/// Threads of a server: one per core, as `ugeom serve` has them.
fn threads() -> usize {
    cpu::Affinity::current().map_or(1, |cores| cores.cores().len().max(1))
}

/// A Unix socket, and our own client.
fn by_nbd(stack: &Stack, name: &str) -> Result<Served, String> {
    let folder = PrivateFolder::create().map_err(|error| error.to_string())?;
    let socket = folder.socket("nbd").map_err(|error| error.to_string())?;
    let settings = nbd::Settings {
        addresses: vec![nbd::Address::Unix(socket)],
        threads: threads(),
        ..nbd::Settings::default()
    };
    let server = nbd::Server::start(stack, &Shown::only(name), &settings)
        .map_err(|error| error.to_string())?;
    let uri = server.uris().first().cloned().unwrap_or_default();
    Ok(Served {
        address: Address::Target(uri),
        server: Box::new((server, folder)),
    })
}

/// A file of a mount.
fn by_fuse(stack: &Stack, name: &str) -> Result<Served, String> {
    let folder = PrivateFolder::create().map_err(|error| error.to_string())?;
    let directory = folder.path().join("mnt");
    std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
    let settings = fuse::Settings {
        allow_other: false,
        directory: directory.clone(),
        writable: false,
        transport: fuse::Transport::Auto,
        threads: threads(),
        ranges: Ranges::default(),
        log: Arc::new(|_| {}),
        ended: Arc::new(|| {}),
    };
    let server = fuse::Server::start(stack, &Shown::only(name), &settings)
        .map_err(|error| error.to_string())?;
    Ok(Served {
        address: Address::File(directory.join(path_of(name))),
        server: Box::new((server, folder)),
    })
}
