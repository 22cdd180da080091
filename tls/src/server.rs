//! The server's part of TLS.

use super::{AUTHORITIES, TlsError, authorities, bad, certificates, private_key};
use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use std::path::Path;
use std::sync::Arc;

const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";

/// The certificates of a server, and its demands on clients.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    /// Clients without a certificate of the authorities are refused.
    pub verifies: bool,
}

impl ServerTls {
    /// TLS with the files of a folder: `server-cert.pem` and `server-key.pem`. With `verify_peer`
    /// clients need a certificate that an authority of `ca-cert.pem` has signed.
    ///
    /// # Errors
    /// A file is missing or invalid.
    pub fn open(folder: &Path, verify_peer: bool) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(folder, &error))?;
        let builder = if verify_peer {
            let path = folder.join(AUTHORITIES);
            let roots = Arc::new(authorities(&path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| bad(&path, &error))?)
        } else {
            builder.with_no_client_auth()
        };
        let key = private_key(&folder.join(KEY))?;
        let path = folder.join(CERTIFICATE);
        let mut config = builder
            .with_single_cert(certificates(&path)?, key)
            .map_err(|error| bad(&path, &error))?;
        // Connections live long: there is nothing to resume.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self {
            config: Arc::new(config),
            verifies: verify_peer,
        })
    }
}
