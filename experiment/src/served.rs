//! Providers as other programs reach them: through a server.
//!
//! Experiments stand beside the servers and know none of them. The program, which knows both, hands
//! in how a provider is served; an experiment says what it wants served, and reads it.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, Run, RunResult};
use ugeom_load::cases;
use ugeom_stack::Stack;

/// How a provider that is served can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// As the bottom of another stack: a target, as users write it.
    Target(String),
    /// As a file of a mount.
    File(PathBuf),
}

/// A provider that is served until this is dropped.
pub struct Served {
    /// How programs reach the served provider.
    pub address: Address,
    /// Serves until it is dropped.
    pub server: Box<dyn Any>,
}

/// A kind of server.
#[derive(Clone, Copy)]
pub struct ServerKind {
    /// Its name in cases and reports: `NBD`.
    pub name: &'static str,
    /// Serves the provider of that name to readers, or says in words why it cannot.
    pub serve: fn(&Stack, &str) -> Result<Served, String>,
}

impl fmt::Debug for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Two ways of one name are the same.
impl PartialEq for ServerKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ServerKind {}

/// A provider that is served, for cases to read. The reader is dropped before the server.
pub struct Client {
    source: Source,
    _server: Box<dyn Any>,
}

/// How a case reaches the served provider.
pub enum Source {
    /// The top of a stack of its own.
    Stack(Target),
    /// A file of a mount.
    File(PathBuf),
}

impl Client {
    /// Serves a provider in some server.
    ///
    /// # Errors
    /// In words: why it cannot be served, or not be reached.
    pub fn open(server: &ServerKind, stack: &Stack, provider: &str) -> Result<Rc<Self>, String> {
        let served = (server.serve)(stack, provider)?;
        let source = match served.address {
            Address::File(path) => Source::File(path),
            Address::Target(text) => {
                let options = TargetOptions::untasted();
                let target = open_target(&text, &options).map_err(|error| error.to_string());
                Source::Stack(target?)
            }
        };
        Ok(Rc::new(Self {
            source,
            _server: served.server,
        }))
    }

    /// The stack or file to read.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// A case that reads the first bytes again and again, one request after the other: through the
    /// stack, or by lseek(2) and read(2).
    ///
    /// # Errors
    /// [`HarnessError`] when it cannot be opened or read.
    pub fn reading(
        self: &Rc<Self>,
        name: &str,
        read_bytes: u64,
    ) -> Result<Case<'static>, HarnessError> {
        let case = match &self.source {
            Source::Stack(target) => cases::reading(name, &target.stack, target.top, read_bytes)?,
            Source::File(path) => cases::calling(name, path, read_bytes)?,
        };
        Ok(self.kept_by(case))
    }

    /// The case, keeping the server for as long as it may be run.
    #[must_use]
    pub fn kept_by(self: &Rc<Self>, case: Case<'static>) -> Case<'static> {
        let mut kept = Kept {
            run: case.run,
            _client: Rc::clone(self),
        };
        Case {
            run: Box::new(move |iterations| kept.run(iterations)),
            ..case
        }
    }
}

/// The reader is dropped before its server.
struct Kept {
    run: Run<'static>,
    _client: Rc<Client>,
}

impl Kept {
    fn run(&mut self, iterations: u64) -> Result<RunResult, HarnessError> {
        (self.run)(iterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file of zeroes instead of a server.
    const FILE: ServerKind = ServerKind {
        name: "FILE",
        serve: |_, _| {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(&[0; 4096]).expect("written");
            Ok(Served {
                address: Address::File(file.path().to_owned()),
                server: Box::new(file),
            })
        },
    };
    const NONE: ServerKind = ServerKind {
        name: "NONE",
        serve: |_, _| Err("this program cannot serve it".to_owned()),
    };

    #[test]
    fn a_server_lasts_as_long_as_the_case_that_reads_through_it() {
        let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
        let client = Client::open(&FILE, &target.stack, "md0").expect("served");
        let Source::File(path) = client.source() else {
            panic!("no file");
        };
        let path = path.clone();
        let mut case = client.reading("x", 512).expect("a case");
        drop(client);
        assert!(path.exists());
        let result = (case.run)(10).expect("a run");
        assert!(result.ns_total > 0);
        drop(case);
        assert!(!path.exists());
        let error = Client::open(&NONE, &target.stack, "md0").err();
        assert_eq!(error.as_deref(), Some("this program cannot serve it"));
        assert!(FILE == FILE && FILE != NONE);
    }

    #[test]
    fn what_is_served_as_a_target_is_read_through_a_stack() {
        fn another(_: &Stack, _: &str) -> Result<Served, String> {
            Ok(Served {
                address: Address::Target("md:2m".to_owned()),
                server: Box::new(()),
            })
        }
        let server = ServerKind {
            name: "OTHER",
            serve: another,
        };
        let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
        let client = Client::open(&server, &target.stack, "md0").expect("served");
        let Source::Stack(served) = client.source() else {
            panic!("no stack");
        };
        let top = served.stack.tree().provider(&served.name).cloned();
        assert_eq!(top.expect("the top").mediasize_bytes, 2 << 20);
        let stack = served.stack.clone();
        let top = served.top;
        let mut case = client.reading("x", 512).expect("a case");
        (case.run)(10).expect("a run");
        let totals = stack.statistics(top).expect("statistics");
        assert_eq!(totals.operations[ugeom_stack::Command::Read as usize], 10);
    }
}
