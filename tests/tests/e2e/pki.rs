//! Certificates for tests of TLS, made by certtool.

use crate::disks;
use crate::run::{other, words_of};
use std::path::Path;
use tempfile::TempDir;
use ugeom_testkit::program;

/// Certificates of the authority, by whose they are, with what certtool is to write into them.
const SIGNED: [(&str, &str); 3] = [
    (
        "server",
        "cn = localhost\ndns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\n",
    ),
    (
        "client",
        "cn = client\ndns_name = client.test\ntls_www_client\n",
    ),
    (
        "second",
        "cn = second\ndns_name = second.test\ntls_www_client\n",
    ),
];

/// Folders with certificates, as libnbd and qemu look for them: `pki` for server and client,
/// `second` for another client of its authority, `bare` for one without a certificate, `stranger`
/// for those of another authority; `None` without certtool.
pub fn certificates() -> Option<TempDir> {
    let certtool = program("certtool")?;
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["pki", "stranger"] {
        authority(&certtool, &folder.path().join(name));
    }
    let (pki, own) = (folder.path().join("pki"), "ca-cert.pem");
    for (name, files) in [
        ("bare", &[(own, own)][..]),
        (
            "second",
            &[
                (own, own),
                ("second-cert.pem", "client-cert.pem"),
                ("second-key.pem", "client-key.pem"),
            ],
        ),
    ] {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).expect("a folder");
        for (from, to) in files {
            std::fs::copy(pki.join(from), place.join(to)).expect("a copy");
        }
    }
    Some(folder)
}

/// An authority, and what it has signed.
fn authority(certtool: &Path, place: &Path) {
    std::fs::create_dir(place).expect("a folder");
    let file = |name: &str| disks::text(&place.join(name));
    let template = |name: &str, text: &str| {
        std::fs::write(place.join(name), text).expect("a template");
        file(name)
    };
    let make = |arguments: &[&str]| other(certtool, arguments);
    let key = |name: &str| {
        let key = file(name);
        make(&["--generate-privkey", "--bits=2048", "--outfile", &key]);
        key
    };
    let (authority_key, authority) = (key("ca-key.pem"), file("ca-cert.pem"));
    let about = "cn = Test\nca\ncert_signing_key\nexpiration_days = 9\n";
    make(&words_of(&format!(
        "--generate-self-signed --load-privkey {authority_key} --template {} --outfile {authority}",
        template("ca.info", about)
    )));
    for (who, about) in SIGNED {
        let own = key(&format!("{who}-key.pem"));
        let about = format!("{about}signing_key\nencryption_key\nexpiration_days = 9\n");
        make(&[
            "--generate-certificate",
            "--load-ca-certificate",
            &authority,
            "--load-ca-privkey",
            &authority_key,
            "--load-privkey",
            &own,
            "--template",
            &template(&format!("{who}.info"), &about),
            "--outfile",
            &file(&format!("{who}-cert.pem")),
        ]);
    }
}
