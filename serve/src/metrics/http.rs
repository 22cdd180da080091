//! The part of HTTP/1.1 that one page needs.
//!
//! Source: RFC 9112 (messages) and RFC 9110 (methods and status codes).

use crate::control::Exposition;
use std::fmt::Write;

/// The longest request with its header, bytes. Prometheus sends some 300.
pub(super) const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The media type of OpenMetrics 1.0.
const OPENMETRICS: &str = "application/openmetrics-text";

/// The state of a client's request so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The header has not ended.
    Part,
    /// A request for the page.
    Page {
        exposition: Exposition,
        /// HEAD: the header of the answer only.
        head_only: bool,
    },
    /// A request that is answered by an error.
    Refused {
        refusal: Refusal,
        /// HEAD: the header of the answer only.
        head_only: bool,
    },
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Malformed,
    NotFound,
    Method,
    TooLong,
    Version,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Version => "505 HTTP Version Not Supported",
        }
    }
}

/// Parses the received bytes.
pub(super) fn parse(bytes: &[u8]) -> Received {
    // An empty line before the request is tolerated (RFC 9112, 2.2).
    let begin = bytes.iter().position(|byte| !b"\r\n".contains(byte));
    let bytes = begin.map_or(&[][..], |begin| &bytes[begin..]);
    let Some(header) = header(bytes) else {
        if begin.unwrap_or(0) + bytes.len() >= REQUEST_BYTES_MAX {
            return refused(Refusal::TooLong, false);
        }
        return Received::Part;
    };
    match std::str::from_utf8(header) {
        Ok(text) => request(text),
        Err(_) => refused(Refusal::Malformed, false),
    }
}

fn refused(refusal: Refusal, head_only: bool) -> Received {
    Received::Refused { refusal, head_only }
}

/// The lines before the first empty one, if that has arrived. A bare LF ends a line, too.
fn header(bytes: &[u8]) -> Option<&[u8]> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut ends = ends.map(|(at, _)| at);
    let end = ends.find(|at| {
        let rest = &bytes[at + 1..];
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    });
    end.map(|at| &bytes[..at])
}

fn request(text: &str) -> Received {
    let mut lines = text
        .split('\n')
        .map(|it| it.strip_suffix('\r').unwrap_or(it));
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return refused(Refusal::Malformed, false);
    };
    let head_only = method == "HEAD";
    let refused = |refusal| refused(refusal, head_only);
    let Some(version) = version.strip_prefix("HTTP/") else {
        return refused(Refusal::Malformed);
    };
    if !["1.0", "1.1"].contains(&version) {
        return refused(Refusal::Version);
    }
    let mut hosts = 0;
    let mut exposition = Exposition::Text;
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or_default();
        // A folded line and a space before the colon are refused (RFC 9112, 5.1 and 5.2).
        if name.is_empty() || name.contains(|it: char| it.is_whitespace() || it.is_control()) {
            return refused(Refusal::Malformed);
        }
        hosts += usize::from(name.eq_ignore_ascii_case("host"));
        if name.eq_ignore_ascii_case("accept") && accepts_openmetrics(value) {
            exposition = Exposition::OpenMetrics;
        }
    }
    // RFC 9112, 3.2.
    if hosts > 1 || (hosts == 0 && version == "1.1") {
        return refused(Refusal::Malformed);
    }
    if method != "GET" && !head_only {
        return refused(Refusal::Method);
    }
    if path(target) != "/metrics" {
        return refused(Refusal::NotFound);
    }
    Received::Page {
        exposition,
        head_only,
    }
}

/// Whether a value of Accept names OpenMetrics (RFC 9110, 12.5.1), as Prometheus does. Other
/// clients get the older format, which all of them parse.
fn accepts_openmetrics(value: &str) -> bool {
    value.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let refused = |part: &str| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        kind.eq_ignore_ascii_case(OPENMETRICS) && !parts.any(refused)
    })
}

/// The path of a request's target, in the origin or the absolute form (RFC 9112, 3.2).
fn path(target: &str) -> &str {
    let absolute = target.strip_prefix("http://");
    let target = absolute.map_or(target, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    target.split('?').next().unwrap_or_default()
}

/// The answer with the page.
pub(super) fn page(exposition: Exposition, text: &str, head_only: bool) -> String {
    let content_type = match exposition {
        Exposition::OpenMetrics => &format!("{OPENMETRICS}; version=1.0.0; charset=utf-8"),
        Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
    };
    answer("200 OK", content_type, text, head_only)
}

/// The answer without it.
pub(super) fn refusal(refusal: Refusal, head_only: bool) -> String {
    let status = refusal.status();
    let text = format!("{status}\nThe metrics are at /metrics.\n");
    answer(status, "text/plain; charset=utf-8", &text, head_only)
}

fn answer(status: &str, content_type: &str, text: &str, head_only: bool) -> String {
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n",
        text.len()
    );
    if status.starts_with("405") {
        answer.push_str("Allow: GET, HEAD\r\n");
    }
    // Writing to a String cannot fail.
    let _ = write!(answer, "\r\n{}", if head_only { "" } else { text });
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_told_apart() {
        let page = |head_only| Received::Page {
            exposition: Exposition::Text,
            head_only,
        };
        let refused = |refusal| super::refused(refusal, false);
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", page(false)),
            ("GET /metrics HTTP/1.1\nhost: a\n\n", page(false)),
            ("\r\nGET /metrics?a=b HTTP/1.0\r\n\r\n", page(false)),
            (
                "HEAD http://a:1/metrics HTTP/1.1\r\nHost: a\r\n\r\nbody",
                page(true),
            ),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", Received::Part),
            ("", Received::Part),
            ("GET / HTTP/1.0\r\n\r\n", refused(Refusal::NotFound)),
            (
                "GET http://metrics HTTP/1.0\r\n\r\n",
                refused(Refusal::NotFound),
            ),
            ("GET /metrics/ HTTP/1.0\r\n\r\n", refused(Refusal::NotFound)),
            ("POST /metrics HTTP/1.0\r\n\r\n", refused(Refusal::Method)),
            ("GET /metrics HTTP/2.0\r\n\r\n", refused(Refusal::Version)),
            ("GET /metrics HTTP/1.1\r\n\r\n", refused(Refusal::Malformed)),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                refused(Refusal::Malformed),
            ),
            (
                "GET /metrics HTTP/1.0\r\n folded\r\n\r\n",
                refused(Refusal::Malformed),
            ),
            (
                "GET /metrics HTTP/1.0\r\na : b\r\n\r\n",
                refused(Refusal::Malformed),
            ),
            (
                "GET  /metrics HTTP/1.0\r\n\r\n",
                refused(Refusal::Malformed),
            ),
            ("GET /metrics\r\n\r\n", refused(Refusal::Malformed)),
        ] {
            assert_eq!(parse(request.as_bytes()), expected, "{request:?}");
        }
        assert_eq!(parse(b"\xff\r\n\r\n"), refused(Refusal::Malformed));
        let endless = vec![b'a'; REQUEST_BYTES_MAX];
        assert_eq!(parse(&endless), refused(Refusal::TooLong));
        assert_eq!(parse(&endless[1..]), Received::Part);
        let lines = vec![b'\n'; REQUEST_BYTES_MAX];
        assert_ne!(parse(&lines), page(false));
    }

    #[test]
    fn openmetrics_is_for_clients_that_accept_it() {
        // The second is what Prometheus 2.42 sends.
        for (accept, expected) in [
            ("Accept: */*", Exposition::Text),
            (
                "accept: application/openmetrics-text;version=1.0.0,\
                 application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5",
                Exposition::OpenMetrics,
            ),
            (
                "Accept: text/plain, Application/OpenMetrics-Text",
                Exposition::OpenMetrics,
            ),
            (
                "Accept: application/openmetrics-text; q=0",
                Exposition::Text,
            ),
            ("X-Accept: application/openmetrics-text", Exposition::Text),
        ] {
            let request = format!("GET /metrics HTTP/1.0\r\n{accept}\r\n\r\n");
            let page = Received::Page {
                exposition: expected,
                head_only: false,
            };
            assert_eq!(parse(request.as_bytes()), page, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_and_a_decision_is_final(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b':'), any::<u8>()], 0..300),
            more in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let before = parse(&bytes);
            if before != Received::Part {
                let all = [bytes, more].concat();
                prop_assert_eq!(parse(&all), before);
            }
        }
    }
}
