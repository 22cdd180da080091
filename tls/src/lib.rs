//! TLS over sockets that do not wait: the certificates of a server and of a client, the records of
//! one connection of either, and the stream that begins plain and may go on in records.
//!
//! The names of files are those of nbdkit-tls(1), which qemu and libnbd use, too.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod client;
mod records;
mod server;
mod stream;

pub use client::ClientTls;
pub use records::{ROOM_BYTES_MIN, Records};
pub use server::ServerTls;
pub use stream::Stream;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};

/// The certificates of the authorities that a peer's certificate has to be signed by.
const AUTHORITIES: &str = "ca-cert.pem";

/// A file that TLS needs and cannot use.
#[derive(Debug, thiserror::Error)]
#[error("TLS: {}: {problem}", path.display())]
pub struct TlsError {
    /// The file, or the folder.
    pub path: PathBuf,
    /// The defect.
    pub problem: String,
}

fn bad(path: &Path, problem: &dyn std::fmt::Display) -> TlsError {
    TlsError {
        path: PathBuf::from(path),
        problem: problem.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| bad(path, &error))?;
    if found.is_empty() {
        return Err(bad(path, &"there is no certificate in it"));
    }
    Ok(found)
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| bad(path, &error))?;
    }
    Ok(roots)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| bad(path, &error))
}
