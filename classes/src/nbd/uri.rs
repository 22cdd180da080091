//! URIs of exports: `nbd://HOST[:PORT]/EXPORT` and `nbd+unix:///EXPORT?socket=PATH`.
//!
//! Source: "The NBD Uniform Resource Indicator (URI) specification", `doc/uri.md` of
//! <https://github.com/NetworkBlockDevice/nbd>; escapes are those of RFC 3986, 2.1.

use super::connect::Place;

/// The port of NBD servers.
const PORT: u16 = 10_809;

/// Where the server is, and the name of the export.
///
/// # Errors
/// What is wrong, in plain words.
pub(super) fn parse(uri: &str, socket: Option<&str>) -> Result<(Place, String), String> {
    let (scheme, rest) = uri
        .split_once("://")
        .ok_or("a URI begins with nbd:// or nbd+unix://")?;
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    let export = unescaped(export)?;
    match scheme {
        "nbd" if socket.is_some() => Err("socket= belongs to nbd+unix://".to_owned()),
        "nbd" => Ok((tcp(host)?, export)),
        "nbd+unix" if !host.is_empty() => {
            Err("nbd+unix has no host: nbd+unix:///EXPORT?socket=PATH".to_owned())
        }
        "nbd+unix" => {
            let path = socket.ok_or("the server's socket is missing: ?socket=PATH")?;
            Ok((Place::Unix(unescaped(path)?.into()), export))
        }
        "nbds" | "nbds+unix" => Err("there is no TLS here: let ssh or stunnel carry it".to_owned()),
        _ => Err("a URI begins with nbd:// or nbd+unix://".to_owned()),
    }
}

fn tcp(host: &str) -> Result<Place, String> {
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
    Ok(Place::Tcp { host, port })
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
    String::from_utf8(bytes).map_err(|_| "what is escaped is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_understood_or_refused_with_a_reason() {
        let place = |uri, socket| parse(uri, socket).map(|(place, name)| (place.to_string(), name));
        let good = [
            ("nbd://host", None, "host:10809", ""),
            ("nbd://host:1/a/b", None, "host:1", "a/b"),
            ("nbd://[::1]/x", None, "[::1]:10809", "x"),
            ("nbd://[::1]:7/x%20y", None, "[::1]:7", "x y"),
            ("nbd+unix:///x", Some("/run/a%20b"), "/run/a b", "x"),
        ];
        for (uri, socket, at, name) in good {
            assert_eq!(place(uri, socket), Ok((at.to_owned(), name.to_owned())));
        }
        let bad = [
            ("host", None, "begins with"),
            ("nbd:///x", None, "host is missing"),
            ("nbd://h:x/", None, "a port"),
            ("nbd+unix:///x", None, "socket is missing"),
            ("nbd+unix://h/x", Some("/s"), "no host"),
            ("nbds://h/", None, "no TLS"),
            ("nbd://h/%zz", None, "hexadecimal"),
            ("nbd://h/", Some("/s"), "belongs to"),
        ];
        for (uri, socket, part) in bad {
            let error = place(uri, socket).unwrap_err();
            assert!(error.contains(part), "{uri}: {error}");
        }
    }
}
