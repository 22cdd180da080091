//! The options of `ugeom serve` that are about TLS.

use crate::failure::Usage;
use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use ugeom_serve::nbd::Tls;

#[derive(Args)]
pub struct TlsArgs {
    /// TLS for NBD clients: off, on (a client may use it), require (a client has to)
    #[arg(long, value_name = "MODE", default_value = "off")]
    tls: Mode,

    /// The folder with ca-cert.pem, server-cert.pem and server-key.pem
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    tls_certificates: Option<PathBuf>,

    /// Refuse clients without a certificate that ca-cert.pem has signed
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,

    /// Pre-shared keys: not supported, since rustls has no external ones; use certificates
    #[arg(long, value_name = "FILE", hide = true)]
    tls_psk: Option<PathBuf>,
}

/// Who uses TLS.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Off,
    On,
    Require,
}

impl TlsArgs {
    /// TLS as it is asked for.
    pub fn open(&self) -> Result<Option<Tls>> {
        let wrong = |message: &str| Err(Usage(message.to_owned()).into());
        if self.tls_psk.is_some() {
            return wrong(
                "pre-shared keys are not supported: the TLS library (rustls) has no external ones; \
                 use --tls-certificates",
            );
        }
        match (self.tls, &self.tls_certificates) {
            (Mode::Off, None) => Ok(None),
            (Mode::Off, Some(_)) => {
                wrong("--tls-certificates is for --tls on (may be used) or --tls require")
            }
            (_, None) => wrong("--tls needs certificates: --tls-certificates DIR"),
            (mode, Some(folder)) => {
                let required = mode == Mode::Require;
                Ok(Some(Tls::open(folder, self.tls_verify_peer, required)?))
            }
        }
    }
}
