//! What is in the way of writing: a mount, a partition table, a file system, an image. Without
//! `--destroy` a command that writes stops here and names what was found.

mod mounts;

use anyhow::{Result, anyhow, bail};
use mounts::Uses;
use std::ops::Range;
use ugeom_classes::eli;
use ugeom_classes::part::edit::{EditError, found};
use ugeom_classes::{Target, TargetText, path_of};
use ugeom_format::content::{Content, ContentUse};
use ugeom_stack::{Delta, ProviderId, Tree};

/// Refuses a target whose file or block device the system has mounted, or uses as swap.
///
/// # Errors
/// Where it is mounted.
pub fn refuse_mounted(target: &str) -> Result<()> {
    // What cannot be read is refused when it is opened.
    let Ok(target) = TargetText::parse(target) else {
        return Ok(());
    };
    let Some(path) = target.bottom_path() else {
        return Ok(());
    };
    match Uses::default().use_of(&path_of(path)) {
        Some(found) => bail!("{path} {found}: free it first; nothing was written"),
        None => Ok(()),
    }
}

/// Refuses a target that carries something, and one that is a window into something: every provider
/// on the way to the medium is looked at.
///
/// # Errors
/// What was found, on which provider, and where; what looking failed with.
pub fn refuse_content(target: &Target) -> Result<()> {
    refuse(&target.name, look(target, target.top)?)?;
    refuse_content_below(target)
}

/// Refuses a target that shows bytes of a structure which a provider below it carries.
///
/// # Errors
/// As [`refuse_content`].
pub fn refuse_content_below(target: &Target) -> Result<()> {
    let tree = target.stack.tree();
    for (provider, name, range) in below(&tree, target.top) {
        // A layer that was opened with the key is what its metadata is for.
        let is_decrypted = tree
            .above(provider)
            .any(|geom| geom.class == eli::NAME && !geom.providers.is_empty());
        let contents = look(target, provider)?;
        // Signatures beside a table are often left over from an earlier use of the disk: only their
        // own bytes are in the way. Without a table they tell what the whole medium is.
        let table = contents.iter().any(|c| c.usage == ContentUse::Table);
        let in_the_way = |content: &Content| match table && content.usage != ContentUse::Image {
            _ if is_decrypted && content.usage == ContentUse::Encrypted => false,
            true => content.stands_in(&range),
            false => true,
        };
        refuse(&name, contents.into_iter().filter(in_the_way).collect())?;
    }
    Ok(())
}

fn look(target: &Target, provider: ProviderId) -> Result<Vec<Content>> {
    let opened = target.stack.open(provider, Delta::READ)?;
    let mut channel = target.stack.channel(1)?;
    match found::look(&mut channel, &opened) {
        // Nothing known is made for such sectors.
        Err(EditError::SectorSize { .. }) => Ok(Vec::new()),
        found => Ok(found?),
    }
}

/// The providers below one, from top to bottom, each with the range of its bytes that can be
/// reached.
fn below(tree: &Tree, top: ProviderId) -> Vec<(ProviderId, String, Range<u64>)> {
    let of = |id: ProviderId| tree.providers().find(|provider| provider.id == id);
    let mut found = Vec::new();
    let mut here: Vec<(ProviderId, Range<u64>)> = Vec::new();
    here.extend(of(top).map(|provider| (top, 0..provider.mediasize_bytes)));
    while let Some((id, range)) = here.pop() {
        let Some((provider, geom)) = of(id).and_then(|p| Some((p, tree.geom(p.geom)?))) else {
            continue;
        };
        for lower in geom
            .consumers
            .iter()
            .filter_map(|consumer| of(consumer.provider?))
        {
            let reached = match provider.position_bytes {
                Some(start) => start + range.start..start + range.end,
                None => 0..lower.mediasize_bytes,
            };
            if found.iter().all(|(known, _, _)| *known != lower.id) {
                found.push((lower.id, lower.name.clone(), reached.clone()));
                here.push((lower.id, reached));
            }
        }
    }
    found
}

fn refuse(provider: &str, contents: Vec<Content>) -> Result<()> {
    match contents.as_slice() {
        [] => Ok(()),
        found => Err(carries(provider, found)),
    }
}

/// The refusal to destroy what a provider carries.
pub fn carries(provider: &str, found: &[Content]) -> anyhow::Error {
    let found: Vec<String> = found.iter().map(Content::to_string).collect();
    anyhow!(
        "{provider} carries {}; nothing was written, --destroy overwrites it",
        found.join(", ")
    )
}
