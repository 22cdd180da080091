//! fio's job files: whatever is read, jobs or an error with a place come out.

use ugeom_job::{Environment, Loader, parse_arguments, understand};

struct Shelf<'a>(&'a [u8]);

impl Loader for Shelf<'_> {
    fn load(&mut self, name: &str, _: Option<&str>) -> std::io::Result<(Vec<u8>, String)> {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let border = self.0.windows(5).position(|bytes| bytes == b"=====");
        let (first, second) = match border {
            Some(at) => (&self.0[..at], Some(&self.0[at + 5..])),
            None => (self.0, None),
        };
        let part = match name {
            "a" => Some(first),
            "b" => second,
            _ => None,
        };
        part.map(|text| (text.to_vec(), name.to_owned()))
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
    let read = parse_arguments(&["a".to_owned()], &mut Shelf(data), &Variables);
    let jobs = read.and_then(|read| understand(&read.sections));
    if let Err(error) = jobs {
        assert!(error.is_usage() && !error.to_string().is_empty());
    }
}
