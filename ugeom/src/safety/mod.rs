//! What is in the way of writing: a mount, a partition table, a file system. Without `--destroy`
//! a command that writes stops here, and says what was found.

mod mounts;

use crate::opening;
use anyhow::{Result, bail};
use mounts::System;
use std::path::Path;
use ugeom_classes::{Role, Target, registry};
use ugeom_stack::Tree;

/// Refuses a target whose file or block device the system has mounted, or uses as swap.
///
/// # Errors
/// Where it is mounted.
pub fn refuse_mounted(target: &str) -> Result<()> {
    let Some(path) = opening::file_below(target) else {
        return Ok(());
    };
    match System::default().use_of(Path::new(&path)) {
        Some(found) => bail!("{path} {found}; unmount it, or write anyway with --destroy"),
        None => Ok(()),
    }
}

/// Refuses a target whose provider carries something.
///
/// # Errors
/// What it carries.
pub fn refuse_content(target: &Target) -> Result<()> {
    let found = tables(&target.stack.tree(), target);
    if found.is_empty() {
        return Ok(());
    }
    let (name, found) = (&target.name, found.join(", "));
    bail!(
        "{name} carries {found}, which writing would destroy; \
         address a partition (@NAME), or write anyway with --destroy"
    )
}

/// The partition tables that lie on a target's provider: `MBR with md0s1, md0s2`.
fn tables(tree: &Tree, target: &Target) -> Vec<String> {
    let is_table = |class: &str| {
        let mut tables = registry().iter().filter(|entry| entry.role == Role::Table);
        tables.any(|entry| entry.class == class)
    };
    let above = tree.above(target.top).filter(|geom| is_table(geom.class));
    let describe = above.map(|geom| {
        let names: Vec<&str> = geom.providers.iter().map(|p| p.name.as_str()).collect();
        let shown = names.len().min(LISTED_NAMES);
        let more = if shown < names.len() { ", ..." } else { "" };
        format!(
            "a partition table ({} with {}{more})",
            geom.class,
            names[..shown].join(", ")
        )
    });
    describe.collect()
}

/// How many partitions a refusal names.
const LISTED_NAMES: usize = 4;
