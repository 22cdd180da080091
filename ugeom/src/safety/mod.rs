//! What is in the way of writing: a mount, a partition table, a file system. Without `--destroy`
//! a command that writes stops here, and says what was found.

mod mounts;

use crate::opening;
use anyhow::{Result, anyhow, bail};
use mounts::System;
use std::path::Path;
use ugeom_classes::Target;
use ugeom_classes::part::edit::{EditError, Found, found};
use ugeom_stack::Delta;

/// Refuses a target whose file or block device the system has mounted, or uses as swap.
///
/// # Errors
/// Where it is mounted.
pub fn refuse_mounted(target: &str) -> Result<()> {
    let Some(path) = opening::file_below(target) else {
        return Ok(());
    };
    match System::default().use_of(Path::new(&path)) {
        Some(found) => bail!("{path} {found}: free it first; nothing was written"),
        None => Ok(()),
    }
}

/// Refuses a target whose provider carries something.
///
/// # Errors
/// What it carries, and where; what looking failed with.
pub fn refuse_content(target: &Target) -> Result<()> {
    let opened = target.stack.open(target.top, Delta::READ)?;
    let mut channel = target.stack.channel(1)?;
    let found = match found::look(&mut channel, &opened) {
        // Nothing known is made for such sectors.
        Err(EditError::SectorSize { .. }) => return Ok(()),
        found => found?,
    };
    match found.as_slice() {
        [] => Ok(()),
        found => Err(carries(&target.name, found)),
    }
}

/// The refusal to destroy what a provider carries.
pub fn carries(provider: &str, found: &[Found]) -> anyhow::Error {
    let found: Vec<String> = found.iter().map(Found::to_string).collect();
    anyhow!(
        "{provider} carries {}; nothing was written, --destroy overwrites it",
        found.join(", ")
    )
}
