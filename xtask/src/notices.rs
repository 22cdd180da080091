//! The copyright notices and licences of the crates that are linked into a binary. MIT, ISC, BSD
//! and Zlib want them in every copy; `deny.toml` has the licences that are allowed.
//!
//! `cargo metadata` names the crates, and the texts are the files of their sources, as they are
//! published. The same lock file gives the same bytes.

use crate::run;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// How the names of files with licences and notices begin, in capitals.
const BEGINNINGS: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// The longest file that is taken for a licence, in bytes. The longest of the tree has 12 KB.
const MAX_BYTES: u64 = 256 << 10;

/// A crate from a registry.
struct Crate {
    /// Name and version, as `serde 1.0.1`.
    name: String,
    /// As its `Cargo.toml` has it.
    licence: String,
    authors: String,
    /// Its folder of sources.
    folder: PathBuf,
}

/// The notices of all that is linked into `package` when it is built for `target`; `arguments` are
/// those that cargo is to have besides (`--locked`, `--offline`).
///
/// # Errors
/// cargo fails, or a crate has no licence file and is not under the Apache licence.
pub fn of(package: &str, target: &str, arguments: &[String]) -> Result<String> {
    let crates = linked(package, target, arguments)?;
    let mut text =
        String::from("Notices of the software that is linked into this program or library.\n");
    let mut fixed = vec!["rust.txt"];
    if target.contains("musl") {
        fixed.push("musl.txt");
    }
    for file in fixed {
        let path = run::root().join("dist/notices").join(file);
        let notice = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        section(&mut text, notice.trim_end());
    }
    // Many crates share a text; it is printed once, below the names of all of them.
    let mut order: Vec<String> = Vec::new();
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for it in &crates {
        for licence in texts(it)? {
            let users = names.entry(licence.clone()).or_default();
            if users.is_empty() {
                order.push(licence);
            }
            users.insert(described(it));
        }
    }
    for licence in order {
        let users: Vec<&str> = names[&licence].iter().map(String::as_str).collect();
        section(&mut text, &format!("{}\n\n{licence}", users.join("\n")));
    }
    Ok(text)
}

fn section(text: &mut String, content: &str) {
    let _ = write!(text, "\n{}\n\n{content}\n", "=".repeat(80));
}

fn described(it: &Crate) -> String {
    match it.authors.is_empty() {
        true => format!("{} ({})", it.name, it.licence),
        false => format!("{} ({}) by {}", it.name, it.licence, it.authors),
    }
}

/// The texts of a crate's licence files, without differences in white space at their ends.
fn texts(it: &Crate) -> Result<Vec<String>> {
    let mut files = Vec::new();
    licence_files(&it.folder, &mut files)?;
    // Some crates are published without the files; Apache-2.0 names no holder in its text.
    if files.is_empty() {
        if !it.licence.contains("Apache-2.0") {
            bail!(
                "{} ({}) is published without a licence file",
                it.name,
                it.licence
            );
        }
        files.push(run::root().join("LICENSE-APACHE"));
    }
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_matches('\n').to_owned())
    };
    let mut texts = files.iter().map(read).collect::<Result<Vec<String>>>()?;
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

/// Adds the licence files in `folder` and below, in the order of their paths.
fn licence_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let data = entry.metadata()?;
        if data.is_dir() {
            licence_files(&entry.path(), files)?;
            continue;
        }
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let named = BEGINNINGS.iter().any(|start| name.starts_with(start));
        if named && !name.ends_with(".RS") && data.len() <= MAX_BYTES {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The crates of registries that are linked into `package`, by name. Procedural macros and what
/// build scripts need stay outside.
fn linked(package: &str, target: &str, arguments: &[String]) -> Result<Vec<Crate>> {
    let mut cargo = run::cargo();
    cargo.args(["metadata", "--format-version", "1"]);
    cargo.args(["--filter-platform", target]).args(arguments);
    let metadata = run::json(&mut cargo)?;
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let items = list.as_array().into_iter().flatten();
        let named = items.filter_map(|item| Some((item["id"].as_str()?.to_owned(), item.clone())));
        named.collect()
    };
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let root = packages.iter().find(|(_, it)| it["name"] == package);
    let (root, _) = root.with_context(|| format!("cargo knows no package {package}"))?;
    let (mut seen, mut left) = (BTreeSet::new(), vec![root.as_str()]);
    while let Some(id) = left.pop() {
        if is_macro(&packages[id]) || !seen.insert(id) {
            continue;
        }
        for edge in nodes[id]["deps"].as_array().into_iter().flatten() {
            let kinds = edge["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|kind| kind["kind"].is_null()) {
                left.extend(edge["pkg"].as_str());
            }
        }
    }
    let foreign = seen.into_iter().map(|id| &packages[id]);
    let foreign = foreign.filter(|it| !it["source"].is_null());
    let mut crates = foreign.map(described_by).collect::<Result<Vec<_>>>()?;
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let mut kinds = targets.flat_map(|it| it["kind"].as_array().into_iter().flatten());
    kinds.any(|kind| kind == "proc-macro")
}

fn described_by(package: &Value) -> Result<Crate> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let authors = package["authors"].as_array().into_iter().flatten();
    let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
    let manifest = Path::new(text("manifest_path"));
    Ok(Crate {
        name: format!("{} {}", text("name"), text("version")),
        licence: text("license").to_owned(),
        authors: authors.join(", "),
        folder: manifest
            .parent()
            .with_context(|| format!("the folder of {}", text("name")))?
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That every crate which `cargo tree` finds in the static program is named.
    #[test]
    fn every_crate_of_the_static_program_is_named_with_a_licence() {
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let offline = ["--offline".to_owned(), "--locked".to_owned()];
        let notices = of("ugeom", &target, &offline).unwrap();
        let mut tree = run::cargo();
        tree.args([
            "tree",
            "--package",
            "ugeom",
            "--edges",
            "normal,no-proc-macro",
        ]);
        tree.args(["--target", &target, "--prefix", "none", "--format", "{p}"]);
        let tree = tree.args(&offline).output().unwrap();
        assert!(tree.status.success());
        let tree = String::from_utf8(tree.stdout).unwrap();
        let mut crates = BTreeSet::new();
        for line in tree.lines().filter(|line| !line.contains("(/")) {
            let mut words = line.split(' ');
            let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
            crates.insert(format!("\n{name} {} (", version.trim_start_matches('v')));
        }
        assert!(crates.len() > 50, "{crates:?}");
        let missing: Vec<_> = crates.iter().filter(|it| !notices.contains(*it)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        for holder in [
            "Rich Felker",
            "the fiat-crypto authors",
            "Isis Agora Lovecruft",
        ] {
            assert!(notices.contains(holder), "{holder} is not named");
        }
        // A macro is run by the compiler and not linked.
        assert!(!notices.contains("\nserde_derive "), "{notices}");
        assert_eq!(of("ugeom", &target, &offline).unwrap(), notices);
    }

    #[test]
    fn a_crate_without_a_licence_file_needs_the_apache_licence() {
        let folder = tempfile::tempdir().unwrap();
        let mut it = Crate {
            name: "a 1.0.0".into(),
            licence: "MIT".into(),
            authors: String::new(),
            folder: folder.path().to_owned(),
        };
        let error = texts(&it).unwrap_err().to_string();
        assert_eq!(error, "a 1.0.0 (MIT) is published without a licence file");
        it.licence = "MIT OR Apache-2.0".into();
        assert!(texts(&it).unwrap()[0].contains("Apache License"));
        fs::write(folder.path().join("license.rs"), "fn main() {}").unwrap();
        fs::create_dir(folder.path().join("part")).unwrap();
        fs::write(folder.path().join("part/COPYING"), "\nCopyright A \r\n").unwrap();
        assert_eq!(texts(&it).unwrap(), ["Copyright A"]);
    }
}
