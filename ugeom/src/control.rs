//! How a command that serves lets others of the same user look at it: its control socket.

use crate::failure::Usage;
use crate::output;
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::sync::Arc;
use ugeom_serve::control::{Client, Control, ControlSettings, default_path, running};
use ugeom_serve::fuse;
use ugeom_serve::shown::Shown;
use ugeom_stack::Stack;
use ugeom_trace::session::Session;

/// Where the control socket lies.
#[derive(Args)]
pub struct ControlArgs {
    /// Control socket of `ugeom stat`, or `none` [default: a socket in $XDG_RUNTIME_DIR/ugeom, or
    /// in ugeom-UID in $TMPDIR or /tmp, where `ugeom stat` finds it]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// Lets others look at a stack until the result is dropped. Without a good place for the socket
    /// there is none, and a warning; a place that was asked for has to do.
    ///
    /// # Errors
    /// There can be no socket where it was asked for.
    pub fn start(
        &self,
        (stack, shown): (&Stack, &Shown),
        target: &str,
        files: &Option<fuse::Server>,
    ) -> Result<Option<Control>> {
        let settings = |path| ControlSettings {
            path,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: target.to_owned(),
            passages: files.as_ref().map(fuse::Server::passages),
            log: Arc::new(|line| output::remark(&output::printable(line))),
        };
        match &self.control {
            Some(path) if path.as_os_str() == "none" => Ok(None),
            Some(path) if path.as_os_str().is_empty() => {
                Err(Usage("--control needs a path, or `none`".to_owned()).into())
            }
            Some(path) => Ok(Some(Control::start(stack, shown, &settings(path.clone()))?)),
            None => {
                let started =
                    default_path().and_then(|path| Control::start(stack, shown, &settings(path)));
                Ok(started.map_or_else(
                    |error| {
                        let text = output::printable(&error.to_string());
                        output::warn(&format!("ugeom stat cannot watch this server: {text}"));
                        None
                    },
                    Some,
                ))
            }
        }
    }
}

/// Lets the servers of this user tell a trace when they had the requests of its FUSE mounts. One
/// that cannot is traced from outside only, as those of others are.
pub fn ask_servers(session: &mut Session) {
    let connections = session.scope().connections.clone();
    if connections.is_empty() {
        return;
    }
    for found in running() {
        let Some((facts, connection)) = found.facts.ok().and_then(|facts| {
            let connection = facts.connection?;
            Some((facts, connection))
        }) else {
            continue;
        };
        if !connections.contains(&connection) {
            continue;
        }
        let client = Client::connect(&found.path).and_then(|mut client| {
            // The first question lets it begin.
            client.passages()?;
            Ok(client)
        });
        let Ok(mut client) = client else { continue };
        let name = format!("ugeom {} ({})", facts.target, facts.pid);
        let passages = move || client.passages().map_err(std::io::Error::other);
        session.ask(connection, output::printable(&name), Box::new(passages));
    }
}
