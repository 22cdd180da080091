//! The options of `ugeom serve` that are about clients: TLS, and which exports they see.

use crate::failure::Usage;
use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use ugeom_serve::nbd::{Rule, ServerTls, Tls};

#[derive(Args)]
pub struct TlsArgs {
    /// TLS for NBD clients: off, on (optional), require
    #[arg(long, value_name = "MODE", default_value = "off")]
    tls: Mode,

    /// Directory with ca-cert.pem, server-cert.pem and server-key.pem
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    tls_certificates: Option<PathBuf>,

    /// Refuse TLS clients without a certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    tls_verify_peer: bool,

    /// Show an export to this client only, EXPORT=CLIENT; may be repeated. CLIENT is uid:N (Unix
    /// socket), cn:NAME or san:NAME (certificate, with --tls-verify-peer), or any. EXPORT `*` is
    /// every export, an empty one the default. With --allow, clients without a matching rule see no
    /// export
    #[arg(long, value_name = "EXPORT=CLIENT", conflicts_with = "fuse")]
    allow: Vec<String>,

    /// Pre-shared keys: not supported, since rustls has no external ones; use certificates
    #[arg(long, value_name = "FILE", hide = true)]
    tls_psk: Option<PathBuf>,
}

/// Whether clients can or must use TLS.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Off,
    On,
    Require,
}

impl TlsArgs {
    /// The export permissions.
    pub fn rules(&self) -> Result<Vec<Rule>> {
        let rules = self.allow.iter().map(|rule| {
            let rule: Result<Rule, _> = rule.parse();
            Ok(rule.map_err(|error| Usage(format!("--allow: {error}")))?)
        });
        let rules: Vec<Rule> = rules.collect::<Result<_>>()?;
        if !self.tls_verify_peer
            && let Some(rule) = rules.iter().find(|rule| rule.needs_certificate())
        {
            let message = format!("--allow {rule}: names in certificates need --tls-verify-peer");
            return Err(Usage(message).into());
        }
        Ok(rules)
    }

    /// The first option of TLS that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        match (self.tls, &self.tls_certificates) {
            (Mode::Off, None) => None,
            (Mode::Off, Some(_)) => Some("--tls-certificates"),
            _ => Some("--tls"),
        }
    }

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
                let server = ServerTls::open(folder, self.tls_verify_peer)?;
                Ok(Some(Tls { server, required }))
            }
        }
    }
}
