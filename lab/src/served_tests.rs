//! Ways for tests to read a provider: a server that works, and one that does not.

use std::io::Write;
use ugeom_experiment::served::{Address, Served, ServerKind};
use ugeom_stack::{Delta, Stack};

/// A server of files that holds the bytes of the provider; one that never serves.
pub const SERVERS: [ServerKind; 2] = [
    ServerKind {
        name: "COPY",
        serve: copy,
    },
    ServerKind {
        name: "NONE",
        serve: |_, _| Err("this program cannot serve it".to_owned()),
    },
];

fn copy(stack: &Stack, name: &str) -> Result<Served, String> {
    let provider = stack.find(name).map_err(|error| error.to_string())?;
    let opened = stack.open(provider, Delta::READ).expect("open");
    let tree = stack.tree();
    let size = tree.provider(name).map_or(0, |it| it.mediasize_bytes);
    let mut bytes = vec![0; size as usize];
    let mut channel = stack.channel(1).expect("a channel");
    let got = channel.read(&opened, 0, &mut bytes).expect("read");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&bytes[..got]).expect("written");
    Ok(Served {
        address: Address::File(file.path().to_owned()),
        server: Box::new(file),
    })
}
