//! Export permissions: the rules of `--allow`, and the identity of a client.
//!
//! A user of this machine is known by the uid that the kernel reports for its Unix socket, a client
//! with TLS by the names in its certificate. Those count only behind a verified chain: without
//! `--tls-verify-peer` clients are not even asked for a certificate.

use super::error::ServeError;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Error};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};

/// The attribute `commonName` of a subject (X.520, 6.2.2).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The export of a rule for all of them. No provider has this name.
const ALL: &str = "*";

/// One rule: this client sees this export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    export: String,
    client: Client,
}

/// The clients of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Client {
    Any,
    User(u32),
    /// A common name of the certificate's subject, exactly.
    CommonName(String),
    /// A DNS name, an e-mail address, a URI or an IP address of its subjectAltName.
    AlternativeName(String),
}

impl FromStr for Rule {
    type Err = ServeError;

    /// `EXPORT=CLIENT`. Names of exports may contain `=`: the first one before a client counts.
    fn from_str(text: &str) -> Result<Self, ServeError> {
        let refused = |problem: &str| ServeError::Rule {
            rule: text.to_owned(),
            problem: problem.to_owned(),
        };
        let signs = text.match_indices('=').map(|(at, _)| at);
        let mut found = signs.filter_map(|at| Some((&text[..at], client(&text[at + 1..])?)));
        let (export, client) = found.next().ok_or_else(|| {
            refused("write EXPORT=CLIENT; a client is any, uid:N, cn:NAME or san:NAME")
        })?;
        Ok(Self {
            export: export.to_owned(),
            client: client.map_err(refused)?,
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = &self.export;
        match &self.client {
            Client::Any => write!(f, "{export}=any"),
            Client::User(uid) => write!(f, "{export}=uid:{uid}"),
            Client::CommonName(name) => write!(f, "{export}=cn:{name}"),
            Client::AlternativeName(name) => write!(f, "{export}=san:{name}"),
        }
    }
}

/// The client that a rule names; `None` where the text is none.
fn client(text: &str) -> Option<Result<Client, &'static str>> {
    if text == "any" {
        return Some(Ok(Client::Any));
    }
    let (kind, name) = text.split_once(':')?;
    let named = |make: fn(String) -> Client| match name {
        "" => Err("the name is missing"),
        name => Ok(make(name.to_owned())),
    };
    match kind {
        "uid" => Some(match name.parse() {
            Ok(uid) => Ok(Client::User(uid)),
            Err(_) => Err("a uid is a number from 0 to 4294967295"),
        }),
        "cn" => Some(named(Client::CommonName)),
        "san" => Some(named(Client::AlternativeName)),
        _ => None,
    }
}

impl Rule {
    /// Whether it is about names in certificates.
    pub fn needs_certificate(&self) -> bool {
        matches!(
            self.client,
            Client::CommonName(_) | Client::AlternativeName(_)
        )
    }

    /// Whether it is for every client.
    pub(super) fn is_for_any(&self) -> bool {
        self.client == Client::Any
    }

    /// The export that it names: an empty name is that of `top`; `None` for all of them.
    pub(super) fn export<'a>(&'a self, top: &'a str) -> Option<&'a str> {
        match self.export.as_str() {
            ALL => None,
            "" => Some(top),
            name => Some(name),
        }
    }

    fn is_about(&self, client: &Identity) -> bool {
        match &self.client {
            Client::Any => true,
            Client::User(uid) => client.user == Some(*uid),
            Client::CommonName(name) => client.names.common.contains(name),
            Client::AlternativeName(name) => {
                let mut names = client.names.alternative.iter();
                names.any(|it| it.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// The identity of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    /// Its user on this machine, over a Unix socket.
    pub user: Option<u32>,
    /// The names in its certificate.
    pub names: CertificateNames,
}

impl Identity {
    /// Whether it sees an export. Without rules every client sees all of them.
    pub fn sees(&self, rules: &[Rule], export: &str, top: &str) -> bool {
        let about_it = |rule: &Rule| rule.export(top).is_none_or(|name| name == export);
        rules.is_empty()
            || rules
                .iter()
                .any(|rule| about_it(rule) && rule.is_about(self))
    }
}

/// The names of the subject of an X.509 certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// Each commonName of the subject (X.520, 6.2.2).
    pub common: Vec<String>,
    /// Each DNS name, e-mail address, URI and IP address of subjectAltName (RFC 5280, 4.2.1.6).
    pub alternative: Vec<String>,
}

impl CertificateNames {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// Where it is malformed, in plain words. Names with a malformed neighbour do not count either.
    pub fn decode(der: &[u8]) -> Result<Self, String> {
        Self::read(der).map_err(|error| format!("the certificate cannot be read: {error}"))
    }

    fn read(der: &[u8]) -> Result<Self, Error> {
        let certificate = Certificate::from_der(der)?;
        let about = certificate.tbs_certificate();
        let mut names = Self::default();
        for attribute in about.subject().iter().filter(|it| it.oid == COMMON_NAME) {
            let name = DirectoryString::try_from(&attribute.value)?;
            names.common.push(name.value().into_owned());
        }
        let Some((_, SubjectAltName(others))) = about.get_extension()? else {
            return Ok(names);
        };
        names.alternative = others.iter().filter_map(text_of).collect();
        Ok(names)
    }
}

/// A name that rules can name.
fn text_of(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name)
        | GeneralName::Rfc822Name(name)
        | GeneralName::UniformResourceIdentifier(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
