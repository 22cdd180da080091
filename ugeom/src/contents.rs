//! The content of a target's providers, for listings: file systems, members of volumes, images,
//! partition tables.

use serde::Serialize;
use std::collections::BTreeMap;
use ugeom_classes::Target;
use ugeom_classes::part::edit::{EditError, found};
use ugeom_format::content::{Content, ContentUse};
use ugeom_stack::{Delta, ProviderId, Tree};

/// The tables whose partitions the classes list.
const LISTED: [&str; 11] = [
    "dos", "gpt", "bsd", "mac", "sun", "pc98", "bsd64", "ldm", "sgi", "amiga", "atari",
];

/// The content of each provider of a target, as far as it can be read.
pub type Contents = BTreeMap<ProviderId, Vec<Content>>;

/// Looks at every provider of a target, and writes what it carries into the tree: as the fact
/// `content`, and as a mark where it is a table that is not listed.
///
/// # Errors
/// A device is unreachable.
pub fn annotate(target: &Target, tree: &mut Tree) -> Result<Contents, EditError> {
    let mut all = Contents::new();
    let Ok(mut channel) = target.stack.channel(1) else {
        return Ok(all);
    };
    let geoms = tree.geoms.iter_mut().filter(|geom| geom.class != "DEV");
    for provider in geoms.flat_map(|geom| &mut geom.providers) {
        let opened = match target.stack.open(provider.id, Delta::READ) {
            Ok(opened) => opened,
            Err(_) => continue,
        };
        let contents = match found::glance(&mut channel, &opened) {
            Ok(contents) => contents,
            Err(error @ EditError::Io { .. }) => return Err(error),
            Err(_) => Vec::new(),
        };
        if let Some(text) = cell(&contents) {
            provider.config.push(("content", text));
        }
        if provider.mark.is_none() {
            provider.mark = contents.iter().find_map(not_listed);
        }
        all.insert(provider.id, contents);
    }
    Ok(all)
}

/// One cell of a listing: `ext4 "root"`, or several with commas.
pub fn cell(contents: &[Content]) -> Option<String> {
    let texts: Vec<String> = contents.iter().map(Content::summary).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn not_listed(content: &Content) -> Option<String> {
    // Neither a protective MBR nor a loop label has partitions of its own.
    let table = content.usage == ContentUse::Table && !["PMBR", "loop"].contains(&content.name);
    (table && !LISTED.contains(&content.name))
        .then(|| format!("carries {content}; its partitions are not listed"))
}

/// A structure that a provider carries, for programs.
#[derive(Serialize)]
pub struct Carried<'a> {
    /// libblkid's name where it has one.
    name: &'a str,
    /// As in the column CONTENT.
    summary: String,
    label: Option<&'a str>,
    uuid: Option<&'a str>,
    /// The size of the disk inside an image.
    inner_bytes: Option<u64>,
    /// Where its magic numbers stand.
    offsets_bytes: Vec<u64>,
}

/// A structure for programs.
pub fn carried(content: &Content) -> Carried<'_> {
    Carried {
        name: content.name,
        summary: content.summary(),
        label: content.label.as_deref(),
        uuid: content.uuid.as_deref(),
        inner_bytes: content.inner_bytes,
        offsets_bytes: content
            .places
            .iter()
            .map(|place| place.offset_bytes)
            .collect(),
    }
}
