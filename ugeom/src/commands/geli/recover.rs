//! `ugeom geli recover`: metadata that a new size has hidden.

use super::Ready;
use super::backup::BackupArgs;
use super::key_args::{OldKeyArgs, limited};
use crate::opening;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use std::sync::atomic::Ordering;
use ugeom_classes::eli::admin::{self, AdminError, Candidate, EliDisk};
use ugeom_classes::eli::error::EliKeyError;
use ugeom_classes::eli::keys::open_slot;
use ugeom_format::eli::{Cipher, Metadata};
use ugeom_machine::interrupt;
use ugeom_stack::Tree;

const LONG_ABOUT: &str = "\
Looks for the metadata of a provider that grew or shrank: in the last sector, where partitions of \
the target end, at old sizes (-s), and with --scan in every sector. Backups (-B) are tried as \
well. \
With a key it prints which slot the key opens.

Nothing is written unless --write is given: the one copy that was found (or that opens with the \
key) \
then goes into the last sector, with the present size. What is there is saved first.";

const EXAMPLES: &str = "\
Examples:
  ugeom geli recover disk.img
  ugeom geli recover -s 1g -p -k geli.key disk.img
  ugeom geli recover --from-backup disk.eli -p -k geli.key --write disk.img";

/// Look for metadata that a new size has hidden
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Recover {
    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// A size that it had before
    #[arg(short = 's', value_name = "OLDSIZE", value_parser = opening::size)]
    old_sizes: Vec<u64>,

    /// Try the metadata of this backup, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from_backup: Vec<String>,

    /// Look into every sector
    #[arg(long)]
    scan: bool,

    /// Write what was found into the last sector
    #[arg(long)]
    write: bool,

    #[command(flatten)]
    key: OldKeyArgs,

    #[command(flatten)]
    backup: BackupArgs,
}

/// Metadata, where it comes from, and what the key makes of it.
struct Found {
    place: String,
    metadata: Metadata,
    slot: Option<usize>,
    key: Option<String>,
}

impl Recover {
    pub fn run(&self) -> Result<()> {
        let mut ready = Ready::open(&self.target, self.write, false)?;
        let sizes = self.sizes(&ready.target.stack.tree(), &ready.target.name);
        let mut disk = ready.disk()?;
        let mut found = self.on_disk(&mut disk, sizes)?;
        for path in &self.from_backup {
            let bytes = std::fs::read(path).with_context(|| format!("Cannot open {path}"))?;
            let metadata = Metadata::decode(&bytes);
            let metadata = metadata.map_err(|error| AdminError::of_format(error, path))?;
            found.push(self.judged(format!("backup {path}"), metadata, &disk)?);
        }
        let text: String = found.iter().map(|one| line(one, &disk)).collect();
        output::print(&text)?;
        if found.is_empty() {
            bail!(
                "no GELI metadata was found on {}; -s names an old size, --scan looks everywhere",
                disk.name
            );
        }
        match self.write {
            true => self.restore(&mut disk, &found),
            false => Ok(()),
        }
    }

    /// Sizes that the provider may have had: its own, those named, and the ends of partitions of
    /// the same target, counted from its beginning.
    fn sizes(&self, tree: &Tree, name: &str) -> Vec<u64> {
        let mut sizes = self.old_sizes.clone();
        let Some(own) = tree.provider(name) else {
            return sizes;
        };
        sizes.push(own.mediasize_bytes);
        let start = place(own);
        for provider in tree.providers() {
            if let Some(offset) = place(provider) {
                let end = offset + provider.mediasize_bytes;
                sizes.extend(end.checked_sub(start.unwrap_or(0)));
            }
            sizes.push(provider.mediasize_bytes);
        }
        sizes
    }

    fn on_disk(&self, disk: &mut EliDisk<'_>, sizes: Vec<u64>) -> Result<Vec<Found>> {
        let mut candidates = admin::candidates_at(disk, sizes)?;
        if self.scan {
            let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
            let proceed = |_left: u64| !cancelled.load(Ordering::Relaxed);
            candidates = admin::scan(disk, proceed)?;
            if cancelled.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
        }
        let judge = |one: Candidate| {
            let place = match one.is_in_place(disk.sector_bytes) {
                true => format!("byte {}", one.offset),
                false => format!("byte {} (a copy, or left over)", one.offset),
            };
            self.judged(place, one.metadata, disk)
        };
        candidates.into_iter().map(judge).collect()
    }

    /// What the key opens, if one was given.
    fn judged(&self, place: String, metadata: Metadata, disk: &EliDisk<'_>) -> Result<Found> {
        let mut found = Found {
            place,
            metadata,
            slot: None,
            key: None,
        };
        let sizes = (found.metadata.provider_bytes, disk.sector_bytes);
        if let Err(error) = found.metadata.layout(sizes.0, sizes.1) {
            found.key = Some(error.to_string());
            return Ok(found);
        }
        if self.key.is_empty() {
            return Ok(found);
        }
        let components = self.key.components(found.metadata.iterations)?;
        let opened = limited(&self.key.limit, |limit| {
            let (salt, iterations) = (&found.metadata.salt, found.metadata.iterations);
            let user = components.user_key(salt, iterations, limit);
            Ok(user.and_then(|user| open_slot(&found.metadata, &user, None)))
        })?;
        match opened {
            Ok((slot, _)) => {
                found.slot = Some(slot);
                found.key = Some(format!("the key opens slot {slot}"));
            }
            Err(EliKeyError::WrongKey) => found.key = Some("the key opens no slot".to_owned()),
            Err(error) => found.key = Some(error.to_string()),
        }
        Ok(found)
    }

    fn restore(&self, disk: &mut EliDisk<'_>, found: &[Found]) -> Result<()> {
        let opens: Vec<&Found> = match self.key.is_empty() {
            true => found.iter().collect(),
            false => found.iter().filter(|one| one.slot.is_some()).collect(),
        };
        let mut metadata = match opens.as_slice() {
            [one] => one.metadata.clone(),
            [] => bail!("the key opens none of them; nothing was written"),
            [first, rest @ ..] if rest.iter().all(|one| one.metadata == first.metadata) => {
                first.metadata.clone()
            }
            several => bail!(
                "{} different copies fit; nothing was written: name a key, or the old size with -s",
                several.len()
            ),
        };
        if metadata.provider_bytes == disk.media_bytes
            && disk.metadata().is_ok_and(|there| there == metadata)
        {
            return output::print("The last sector holds it already.\n");
        }
        self.backup.save_before_change(disk, false)?;
        metadata.provider_bytes = disk.media_bytes;
        disk.store(&metadata)?;
        output::print(&format!(
            "Metadata written to the last sector of {}.\n",
            disk.name
        ))
    }
}

/// Where a partition begins, bytes, if it is one.
fn place(provider: &ugeom_stack::ProviderView) -> Option<u64> {
    let found = provider.config.iter().find(|(key, _)| key == "offset");
    found.and_then(|(_, value)| value.parse().ok())
}

fn line(one: &Found, disk: &EliDisk<'_>) -> String {
    let metadata = &one.metadata;
    let cipher = Cipher::of_number(metadata.cipher_number).map_or("unknown", Cipher::name);
    let size = match metadata.provider_bytes == disk.media_bytes {
        true => "for this size".to_owned(),
        false => format!("for {} bytes", metadata.provider_bytes),
    };
    let key = one
        .key
        .as_deref()
        .map(|key| format!(", {key}"))
        .unwrap_or_default();
    format!(
        "{}: version {}, {cipher} {}, {size}, slots 0x{:02x}{key}\n",
        one.place, metadata.version, metadata.key_bits, metadata.keys
    )
}
