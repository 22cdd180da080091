//! URIs of exports: `nbd://HOST[:PORT]/EXPORT` and `nbd+unix:///EXPORT?socket=PATH`, and with TLS
//! `nbds://` and `nbds+unix://`.
//!
//! Source: "The NBD Uniform Resource Indicator (URI) specification", `doc/uri.md` of
//! <https://github.com/NetworkBlockDevice/nbd>; escapes are those of RFC 3986, 2.1.

use std::fmt;
use std::path::PathBuf;

/// The port of NBD servers.
const PORT: u16 = 10_809;

const SCHEMES: &str = "a URI begins with nbd://, nbds://, nbd+unix:// or nbds+unix://";

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A host, by its name or address, and a port.
    Tcp {
        /// Without the brackets of an IPv6 address.
        host: String,
        /// 10809 where the URI has none.
        port: u16,
    },
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The parts of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Where the server listens.
    pub server: ServerAddress,
    /// Its export, without escapes.
    pub export: String,
    /// The connection is to use TLS.
    pub tls: bool,
}

/// Reads a URI. The path of a Unix socket may also be given by itself, as `socket`.
///
/// # Errors
/// What is wrong, in plain words.
pub fn parse(uri: &str, socket: Option<&str>) -> Result<Uri, String> {
    let (scheme, rest) = uri.split_once("://").ok_or(SCHEMES)?;
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    // A URI in quotes has the query that otherwise stands behind it.
    let (export, socket) = match (export.rsplit_once("?socket="), socket) {
        (Some((export, path)), None) if scheme.ends_with("+unix") => (export, Some(path)),
        _ => (export, socket),
    };
    let export = unescaped(export)?;
    let (tls, unix) = match scheme {
        "nbd" => (false, false),
        "nbds" => (true, false),
        "nbd+unix" => (false, true),
        "nbds+unix" => (true, true),
        _ => return Err(SCHEMES.to_owned()),
    };
    if host.contains('@') {
        let why = "a user name is for pre-shared keys, which are not supported: the TLS library \
                   (rustls) has none; use certificates";
        return Err(why.to_owned());
    }
    let server = match (unix, socket) {
        (false, Some(_)) => return Err(format!("socket= belongs to {scheme}+unix://")),
        (false, None) => tcp(host)?,
        (true, _) if !host.is_empty() => {
            return Err(format!(
                "{scheme} has no host: {scheme}:///EXPORT?socket=PATH"
            ));
        }
        (true, None) => return Err("the server's socket is missing: ?socket=PATH".to_owned()),
        (true, Some(path)) => ServerAddress::Unix(unescaped(path)?.into()),
    };
    Ok(Uri {
        server,
        export,
        tls,
    })
}

fn tcp(host: &str) -> Result<ServerAddress, String> {
    let (host, port) = match host.rsplit_once(':') {
        // In brackets, the colons are those of an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let port = match port {
        Some(port) => port
            .parse()
            .map_err(|_| "a port is a number from 0 to 65535")?,
        None => PORT,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("the host is missing: nbd://HOST/EXPORT".to_owned());
    }
    let host = host.to_owned();
    Ok(ServerAddress::Tcp { host, port })
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = rest
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.ok_or("`%` is followed by two hexadecimal digits")?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the escaped bytes are not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_understood_or_refused_with_a_reason() {
        let good = [
            ("nbd://host", None, "host:10809", "", false),
            ("nbd://host:1/a/b", None, "host:1", "a/b", false),
            ("nbd://[::1]/x", None, "[::1]:10809", "x", false),
            ("nbd://[::1]:7/x%20y", None, "[::1]:7", "x y", false),
            ("nbd+unix:///x", Some("/run/a%20b"), "/run/a b", "x", false),
            ("nbds://host/x", None, "host:10809", "x", true),
            ("nbds+unix:///", Some("/s"), "/s", "", true),
            ("nbd+unix:///x?socket=/s%20", None, "/s ", "x", false),
        ];
        for (uri, socket, at, name, tls) in good {
            let parsed = parse(uri, socket).expect(uri);
            assert_eq!(parsed.server.to_string(), at);
            assert_eq!((parsed.export.as_str(), parsed.tls), (name, tls));
        }
        let bad = [
            ("host", None, "begins with"),
            ("nbd:///x", None, "host is missing"),
            ("nbd://h:x/", None, "a port"),
            ("nbd+unix:///x", None, "socket is missing"),
            ("nbd+unix://h/x", Some("/s"), "no host"),
            ("nbds://me@h/", None, "pre-shared keys"),
            ("nbds+unix:///x", None, "socket is missing"),
            ("nbdx://h/", None, "begins with"),
            ("nbd://h/%zz", None, "hexadecimal"),
            ("nbd://h/", Some("/s"), "belongs to"),
        ];
        for (uri, socket, part) in bad {
            let error = parse(uri, socket).unwrap_err();
            assert!(error.contains(part), "{uri}: {error}");
        }
    }
}
