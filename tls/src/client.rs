//! The client's part of TLS.

use super::{AUTHORITIES, TlsError, authorities, bad, certificates, private_key};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use std::path::Path;
use std::sync::Arc;

const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";

/// Where systems keep the authorities that they trust: Debian, Fedora, openSUSE.
const SYSTEM: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// The authorities that a client trusts, its certificate if it has one, and its server's name.
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server: ServerName<'static>,
}

impl ClientTls {
    /// TLS with the files of a folder: the server's certificate has to be signed by an authority of
    /// `ca-cert.pem`, and to be made out for the name `server`, a host's or an address; with
    /// `client-cert.pem` and `client-key.pem` the client has a certificate, too. Without a folder
    /// the authorities are those of the system.
    ///
    /// # Errors
    /// A file is missing, or is not what it should be; the name is none.
    pub fn open(folder: Option<&Path>, server: &str) -> Result<Self, TlsError> {
        let path = match folder {
            Some(folder) => folder.join(AUTHORITIES),
            None => {
                let mut known = SYSTEM.iter().map(Path::new);
                let found = known.find(|path| path.exists());
                found.unwrap_or(Path::new(SYSTEM[0])).to_owned()
            }
        };
        let name = ServerName::try_from(server.to_owned());
        let server = name.map_err(|_| bad(&path, &format!("`{server}` is no name of a host")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&path, &error))?
            .with_root_certificates(authorities(&path)?);
        let own = folder.map(|folder| (folder.join(CERTIFICATE), folder.join(KEY)));
        let mut config = match own {
            Some((path, key)) if path.exists() => builder
                .with_client_auth_cert(certificates(&path)?, private_key(&key)?)
                .map_err(|error| bad(&path, &error))?,
            _ => builder.with_no_client_auth(),
        };
        // Connections live long: there is nothing to resume.
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            server,
        })
    }
}
