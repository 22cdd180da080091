//! `ugeom serve --allow`: which clients see which exports, by uid and by certificate, as libnbd's
//! and qemu's programs find it.

use crate::disks;
use crate::pki::certificates;
use crate::run::{Ended, UGEOM, command, json_of, run};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use ugeom_testkit::has;
use ugeom_testkit::{Server, program};

/// The names of the exports that a client is told of, sorted.
fn listed(info: &Path, uri: &str) -> Vec<String> {
    let ended = run(command(info, &["--list", "--json", uri]), b"");
    if ended.code != 0 {
        // nbdinfo fails on an empty list.
        return Vec::new();
    }
    let found = json_of(&ended.stdout);
    let exports = found["exports"].as_array().expect("exports");
    let name = |export: &serde_json::Value| export["export-name"].as_str().expect("one").to_owned();
    let mut names: Vec<String> = exports.iter().map(name).collect();
    names.sort();
    names
}

/// A server with rules about certificates and users, over TCP and a Unix socket.
struct Ruled {
    _server: Server,
    folder: TempDir,
    port: String,
}

impl Ruled {
    fn start(folder: TempDir) -> Self {
        let path = |name: &str| disks::at(&folder, name);
        let own = rustix::process::geteuid().as_raw();
        let (address, own) = (format!("unix:{}", path("socket")), format!("md0=uid:{own}"));
        let pki = path("pki");
        let mut all = vec!["serve", "md:1m | nop | nop", "--nbd", "tcp:localhost:0"];
        all.extend(["--nbd", &address, "--tls", "on", "--tls-certificates", &pki]);
        all.push("--tls-verify-peer");
        for rule in [
            "md0.nop=cn:client",
            "md0.nop.nop=san:SECOND.test",
            "md0.nop=san:second.test",
            &own,
        ] {
            all.extend(["--allow", rule]);
        }
        let mut serve = command(UGEOM, &all);
        serve.env("XDG_RUNTIME_DIR", folder.path());
        let mut server = Server(serve.stderr(Stdio::null()).spawn().expect("a server"));
        let mut lines = BufReader::new(server.0.stdout.take().expect("stdout")).lines();
        let uri = lines.next().expect("a line").expect("text");
        let port = uri.rsplit(':').next().expect("a port");
        let port = port.trim_end_matches('/').to_owned();
        lines.next().expect("a line").expect("the socket's");
        Self {
            _server: server,
            folder,
            port,
        }
    }

    fn path(&self, name: &str) -> String {
        disks::at(&self.folder, name)
    }

    /// URIs over TCP and the socket, with the certificates of a folder.
    fn uris(&self, client: Option<&str>, export: &str) -> [String; 2] {
        let (port, socket) = (&self.port, self.path("socket"));
        match client.map(|name| self.path(name)) {
            None => [
                format!("nbd://localhost:{port}/{export}"),
                format!("nbd+unix:///{export}?socket={socket}"),
            ],
            Some(pki) => [
                format!("nbds://localhost:{port}/{export}?tls-certificates={pki}"),
                format!(
                    "nbds+unix:///{export}?socket={socket}&tls-certificates={pki}&\
                     tls-hostname=localhost"
                ),
            ],
        }
    }

    fn qemu(&self, qemu: &Path, client: Option<&str>, export: &str) -> Ended {
        let mut all = vec!["info".to_owned(), "--image-opts".to_owned()];
        let port = &self.port;
        let mut image = format!("driver=nbd,host=localhost,port={port},export={export}");
        if let Some(of) = client {
            let object = format!("tls-creds-x509,id=t,endpoint=client,dir={}", self.path(of));
            all.extend(["--object".to_owned(), object]);
            image.push_str(",tls-creds=t");
        }
        all.push(image);
        run(command(qemu, &all), b"")
    }
}

#[test]
fn certificates_and_users_decide_which_exports_a_client_sees() {
    let (Some(info), Some(qemu)) = (program("nbdinfo"), program("qemu-img")) else { return };
    let Some(folder) = certificates() else { return };
    let server = Ruled::start(folder);
    for (client, tcp) in [
        (None, &[][..]),
        (Some("pki"), &["md0.nop"]),
        (Some("second"), &["md0.nop", "md0.nop.nop"]),
    ] {
        let [over_tcp, over_unix] = server.uris(client, "");
        assert_eq!(listed(&info, &over_tcp), tcp, "{client:?}");
        let unix = [&["md0"], tcp].concat();
        assert_eq!(listed(&info, &over_unix), unix, "{client:?}");
        for name in ["", "md0.nop.nop", "md0.nop", "md0"] {
            let seen = tcp.contains(&if name.is_empty() { "md0.nop.nop" } else { name });
            let [uri, _] = server.uris(client, name);
            let ended = run(command(&info, &["--size", &uri]), b"");
            assert_eq!(ended.code == 0, seen, "{client:?} {name}: {}", ended.stderr);
            let ended = server.qemu(&qemu, client, name);
            assert_eq!(ended.code == 0, seen, "{client:?} {name}: {}", ended.stderr);
        }
    }
}

#[test]
fn passed_sockets_and_stdio_follow_the_rules() {
    let Some(nbdsh) = program("nbdsh") else { return };
    let own = rustix::process::geteuid().as_raw();
    for (uid, seen) in [(own, true), (own ^ 1, false)] {
        for (connect, stdio) in [
            ("connect_systemd_socket_activation", ""),
            ("connect_command", "--stdio"),
        ] {
            // The handle is deleted in any case: that ends the server.
            let script = format!(
                "serve = ['{UGEOM}', 'serve', 'md:1m', '--allow', '=uid:{uid}', '{stdio}']\n\
                 try:\n    h.{connect}([it for it in serve if it])\n    print(h.get_size())\n\
                 except nbd.Error as error:\n    print(error.string)\n\
                 del h"
            );
            let mut shell = command(&nbdsh, &["-c", &script]);
            // The module belongs to Debian's python3.
            shell
                .env("PATH", "/usr/bin:/bin")
                .env_remove("PYENV_VERSION");
            let ended = run(shell, b"");
            let expected = if seen {
                "1048576"
            } else {
                "server has no export named"
            };
            assert!(ended.text().contains(expected), "{ended:?}");
        }
    }
}

#[test]
fn wrong_rules_are_usage() {
    let serve = |arguments: &[&str]| {
        let all = [&["serve", "md:1m", "--run", "true"], arguments].concat();
        run(command(UGEOM, &all), b"").failed(2)
    };
    for (rule, part) in [
        ("md0", "EXPORT=CLIENT"),
        ("md0=uid:root", "a uid is a number"),
        ("md0=cn:laptop", "--tls-verify-peer"),
    ] {
        let usage = serve(&["--allow", rule]);
        assert!(usage.contains(part) && usage.contains(rule), "{usage}");
    }
    let usage = serve(&["--allow", "md0=any", "--fuse", "/nowhere"]);
    has(&usage, "--fuse");
    has(&usage, "--allow");
}
