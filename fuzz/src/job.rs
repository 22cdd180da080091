//! fio's job files: whatever is read, jobs or an error with a place come out.

use ugeom_fio::{Environment, Loader, parse_arguments, understand};

struct Shelf<'a>(&'a str);

impl Loader for Shelf<'_> {
    fn load(&mut self, name: &str, _: Option<&str>) -> std::io::Result<(String, String)> {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let mut parts = self.0.split("=====");
        let part = match name {
            "a" => parts.next(),
            "b" => parts.nth(1),
            _ => None,
        };
        part.map(|text| (text.to_owned(), name.to_owned()))
            .ok_or_else(missing)
    }
}

struct Variables;

impl Environment for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "LONG").then(|| "x".repeat(10_000))
    }

    fn keyword(&self, name: &str) -> Option<String> {
        (name == "ncpus").then(|| "2".to_owned())
    }
}

/// Understands a job file, or says in which line it is wrong.
pub fn parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let read = parse_arguments(&["a".to_owned()], &mut Shelf(text), &Variables);
    let jobs = read.and_then(|read| understand(&read.sections));
    if let Err(error) = jobs {
        assert!(error.is_usage() && !error.to_string().is_empty());
    }
}
