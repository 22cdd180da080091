//! `ugeom geli recover`: metadata that a new size has hidden.

use super::Ready;
use super::backup::{BackupArgs, Providers};
use super::key_args::{OldKeyArgs, limited};
use crate::opening;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use ugeom_classes::eli::admin::{self, AdminError, Candidate, EliDisk};
use ugeom_classes::eli::error::EliKeyError;
use ugeom_classes::eli::keys::{KeyComponents, open_slot};
use ugeom_classes::eli::read_backup;
use ugeom_format::eli::{Cipher, Metadata};
use ugeom_machine::interrupt;
use ugeom_stack::{Channel, Delta, Opened, ProviderView, Tree};

const LONG_ABOUT: &str = "\
Looks for the metadata of a provider that grew or shrank: in the last sector, where partitions of \
the target begin and end, at old sizes (-s, and those that backups name), and with --scan in every \
sector. Of a partition that shrank, the space behind it is searched, too. Backups (--from-backup) \
are tried as well. With a key it prints which slot the key opens.

Nothing is written unless --write is given: the one copy that was found (or that opens with the \
key) \
then goes into the last sector, with the present size. Old metadata there is saved first. A \
provider without metadata that carries something else is written to with --destroy only.";

const EXAMPLES: &str = "\
Examples:
  ugeom geli recover disk.img
  ugeom geli recover -s 1g -p -k geli.key disk.img
  ugeom geli recover --from-backup disk.eli -p -k geli.key --write disk.img";

/// Search for metadata at the end of a former size
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

    /// Search every sector
    #[arg(long)]
    scan: bool,

    /// Write what was found into the last sector
    #[arg(long)]
    write: bool,

    /// With --write: overwrite other content
    #[arg(long)]
    destroy: bool,

    #[command(flatten)]
    key: OldKeyArgs,

    #[command(flatten)]
    backup: BackupArgs,
}

/// Metadata, its origin, and the result with the key.
struct MetadataCopy {
    place: String,
    metadata: Metadata,
    slot: Option<usize>,
    key: Option<String>,
}

/// The provider below a partition: metadata of a partition that shrank lies behind its end.
struct Below {
    opened: Opened,
    channel: Channel,
    /// Where the partition begins, bytes.
    start: u64,
    /// The gap between the partition and the next one, bytes.
    behind: Range<u64>,
}

impl Below {
    /// `None` for a provider that is no partition, or ends where the one below it does.
    fn open(ready: &Ready, tree: &Tree) -> Result<Option<Self>> {
        let Some(own) = tree.provider(&ready.target.name) else { return Ok(None) };
        let below = tree
            .geom(own.geom)
            .and_then(|geom| geom.consumers.first()?.provider)
            .and_then(|id| tree.providers().find(|provider| provider.id == id));
        let (Some(below), Some(start)) = (below, place(own)) else { return Ok(None) };
        let end = start.saturating_add(own.mediasize_bytes);
        let beside = tree.providers().filter(|other| other.geom == own.geom);
        let next = beside.filter_map(place).filter(|begin| *begin >= end).min();
        let until = next.unwrap_or(below.mediasize_bytes);
        if below.sectorsize_bytes != own.sectorsize_bytes || below.mediasize_bytes <= end {
            return Ok(None);
        }
        Ok(Some(Self {
            opened: ready.target.stack.open(below.id, Delta::READ)?,
            channel: ready.target.stack.channel(1)?,
            start,
            behind: end..until,
        }))
    }

    /// Metadata behind the partition, with offsets that count from its beginning.
    fn candidates(&mut self, sizes: &[u64], scan: bool) -> Result<Vec<Candidate>> {
        let mut disk = EliDisk::new(&mut self.channel, &self.opened)?;
        let ends = sizes
            .iter()
            .filter_map(|size| self.start.checked_add(*size));
        let mut found = match scan {
            true => scanned(&mut disk, self.behind.clone())?,
            false => Vec::new(),
        };
        let ends = ends.filter(|end| *end > self.behind.start);
        for candidate in admin::candidates_at(&mut disk, ends)? {
            if !found.contains(&candidate) {
                found.push(candidate);
            }
        }
        for candidate in &mut found {
            candidate.offset -= self.start;
        }
        Ok(found)
    }
}

/// Looks into every sector of a range, until Ctrl-C.
fn scanned(disk: &mut EliDisk<'_>, range: Range<u64>) -> Result<Vec<Candidate>> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    let proceed = |_left: u64| !cancelled.load(Ordering::Relaxed);
    let found = admin::scan(disk, range, proceed)?;
    if cancelled.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(found)
}

/// The key that was given, which is read once for all copies.
struct Judge<'a> {
    key: &'a OldKeyArgs,
    made: OnceCell<KeyComponents>,
    sector_bytes: u32,
}

impl Judge<'_> {
    /// The slots that the key opens, if one was given.
    fn judged(&self, place: String, metadata: Metadata) -> Result<MetadataCopy> {
        let mut found = MetadataCopy {
            place,
            metadata,
            slot: None,
            key: None,
        };
        let sizes = (found.metadata.provider_bytes, self.sector_bytes);
        if let Err(error) = found.metadata.layout(sizes.0, sizes.1) {
            found.key = Some(error.to_string());
            return Ok(found);
        }
        if self.key.is_empty() {
            return Ok(found);
        }
        let iterations = found.metadata.iterations;
        if self.key.check(iterations).is_err() {
            found.key = Some("its key has no passphrase: -p tries it".to_owned());
            return Ok(found);
        }
        if self.made.get().is_none() {
            let _ = self.made.set(self.key.components(iterations)?);
        }
        let Some(components) = self.made.get() else {
            return Ok(found);
        };
        let opened = limited(&self.key.limit, |limit| {
            let user = components.user_key(&found.metadata.salt, iterations, limit);
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
}

impl Recover {
    pub fn run(&self) -> Result<()> {
        let mut ready = Ready::open(&self.target, Delta::of_user(self.write))?;
        if self.write && !self.destroy {
            ready.refuse_others()?;
        }
        let backups = self.backups()?;
        let tree = ready.target.stack.tree();
        let mut sizes = self.sizes(&tree, &ready.target.name);
        sizes.extend(backups.iter().map(|(_, metadata)| metadata.provider_bytes));
        let mut below = Below::open(&ready, &tree)?;
        let mut disk = ready.disk()?;
        let judge = Judge {
            key: &self.key,
            made: OnceCell::new(),
            sector_bytes: disk.sector_bytes,
        };
        let mut found = Vec::new();
        for one in self.candidates(&mut disk, &sizes)? {
            let place = match one.is_in_place(disk.sector_bytes) {
                true => format!("byte {}", one.offset),
                false => format!("byte {} (a copy, or left over)", one.offset),
            };
            found.push(judge.judged(place, one.metadata)?);
        }
        if let Some(below) = &mut below {
            for one in below.candidates(&sizes, self.scan)? {
                // That of another provider, which lies where it belongs.
                if !one.is_in_place(disk.sector_bytes) {
                    continue;
                }
                let place = format!("byte {} (past the current end)", one.offset);
                found.push(judge.judged(place, one.metadata)?);
            }
        }
        for (path, metadata) in backups {
            found.push(judge.judged(format!("backup {path}"), metadata)?);
        }
        let text: String = found.iter().map(|one| line(one, &disk)).collect();
        output::print(&text)?;
        if found.is_empty() {
            bail!(
                "no GELI metadata was found on {}; -s names an old size, \
                 --scan searches every sector",
                disk.name
            );
        }
        match self.write {
            true => self.restore(&mut disk, &found),
            false => Ok(()),
        }
    }

    /// The metadata of the backups, with their paths.
    fn backups(&self) -> Result<Vec<(&str, Metadata)>> {
        let mut backups = Vec::new();
        for path in &self.from_backup {
            let bytes = read_backup(path).with_context(|| format!("Cannot open {path}"))?;
            let metadata = Metadata::decode(&bytes);
            let metadata = metadata.map_err(|error| AdminError::of_format(error, path))?;
            backups.push((path.as_str(), metadata));
        }
        Ok(backups)
    }

    /// Sizes that the provider may have had: its own, those named, and the beginnings and ends of
    /// partitions of the same target, counted from its beginning.
    fn sizes(&self, tree: &Tree, name: &str) -> Vec<u64> {
        let mut sizes = self.old_sizes.clone();
        let Some(own) = tree.provider(name) else {
            return sizes;
        };
        let start = place(own).unwrap_or(0);
        for provider in tree.providers() {
            let size = provider.mediasize_bytes;
            sizes.push(size);
            sizes.extend(size.checked_sub(start));
            if let Some(offset) = place(provider) {
                sizes.extend(offset.checked_sub(start));
                sizes.extend(offset.saturating_add(size).checked_sub(start));
            }
        }
        sizes
    }

    fn candidates(&self, disk: &mut EliDisk<'_>, sizes: &[u64]) -> Result<Vec<Candidate>> {
        match self.scan {
            true => scanned(disk, 0..disk.media_bytes),
            false => Ok(admin::candidates_at(disk, sizes.iter().copied())?),
        }
    }

    fn restore(&self, disk: &mut EliDisk<'_>, found: &[MetadataCopy]) -> Result<()> {
        let opens: Vec<&MetadataCopy> = match self.key.is_empty() {
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
            return output::print("The last sector already has it.\n");
        }
        self.backup.save_before_change(disk, Providers::One)?;
        metadata.provider_bytes = disk.media_bytes;
        disk.store(&metadata)?;
        output::print(&format!(
            "Metadata written to the last sector of {}.\n",
            disk.name
        ))
    }
}

/// Where a partition begins, bytes, if it is one.
fn place(provider: &ProviderView) -> Option<u64> {
    provider.fact("offset")?.parse().ok()
}

fn line(one: &MetadataCopy, disk: &EliDisk<'_>) -> String {
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
