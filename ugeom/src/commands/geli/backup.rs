//! Backups of metadata: `geli backup`, `geli restore`, and those before each change.

use super::{Ready, Verbose};
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use ugeom_classes::eli::admin::{self, EliDisk};
use ugeom_classes::eli::read_backup;
use ugeom_classes::result_file;
use ugeom_format::content::{Content, ContentUse};
use ugeom_machine::temporary::{NewFile, sync_folder_of};
use ugeom_stack::Delta;

/// Where backups go unless the user names a file, as for geli(8).
const FOLDER: &str = "/var/backups";
/// How many backups of one provider are kept beside each other.
const NUMBERS_MAX: u32 = 1000;

/// Where the metadata is saved before a change.
#[derive(Args)]
pub struct BackupArgs {
    /// Save the metadata to this file, PROV replaced by the provider; none for no backup
    /// [default: /var/backups/PROV.eli]
    #[arg(short = 'B', value_name = "BACKUPFILE", value_hint = ValueHint::FilePath)]
    backup_file: Option<String>,
}

/// How many providers a command changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Providers {
    One,
    Several,
}

impl Providers {
    pub fn of(count: usize) -> Self {
        match count {
            0 | 1 => Self::One,
            _ => Self::Several,
        }
    }
}

impl BackupArgs {
    /// To the file that the user gave by another option.
    pub fn given(file: Option<&str>) -> Self {
        Self {
            backup_file: file.map(str::to_owned),
        }
    }

    /// Saves the last sector as it is: the file, unless no backup is wanted. A file that is there
    /// is never overwritten, unless the user named it. One of several providers gets a file of its
    /// own.
    pub fn save(&self, disk: &mut EliDisk<'_>, providers: Providers) -> Result<Option<String>> {
        let place = disk.place(disk.media_bytes);
        self.save_sector(disk, place, (providers, ""))
    }

    /// The same, before a change: a provider without metadata has nothing to save.
    pub fn save_before_change(&self, disk: &mut EliDisk<'_>, providers: Providers) -> Result<()> {
        if disk.metadata().is_ok() {
            self.save(disk, providers)?;
        }
        Ok(())
    }

    /// The same, before new metadata is made, whose backup gets the name that the user gave: the
    /// old one's ends with `.old`.
    pub fn save_before_init(&self, disk: &mut EliDisk<'_>, providers: Providers) -> Result<()> {
        if disk.metadata().is_ok() {
            let place = disk.place(disk.media_bytes);
            self.save_sector(disk, place, (providers, ".old"))?;
        }
        Ok(())
    }

    /// Saves metadata that lies at another place than the last sector.
    pub fn save_from(&self, disk: &mut EliDisk<'_>, place: u64) -> Result<()> {
        self.save_sector(disk, place, (Providers::One, ""))
            .map(|_| ())
    }

    /// Saves a sector. `suffix` is for names that the user gave.
    fn save_sector(
        &self,
        disk: &mut EliDisk<'_>,
        place: u64,
        (providers, suffix): (Providers, &str),
    ) -> Result<Option<String>> {
        let name = disk.name.replace('/', "_");
        let sector = disk.sector(place)?;
        let path = match self.backup_file.as_deref() {
            Some("none") => return Ok(None),
            Some(file) if file.contains("PROV") => file.replacen("PROV", &name, 1),
            Some(file) if providers == Providers::Several => format!("{file}-{name}"),
            Some(file) => file.to_owned(),
            None => return numbered(&sector, &format!("{FOLDER}/{name}.eli")).map(Some),
        } + suffix;
        write(&path, &sector, false).with_context(|| unable(&path))?;
        Ok(Some(path))
    }
}

fn unable(path: &str) -> String {
    format!("Unable to write to {path}; nothing was changed (-B names another file, or none)")
}

/// Saves to that path, or to the first with a number behind it that is free.
fn numbered(sector: &[u8], path: &str) -> Result<String> {
    for number in 0..NUMBERS_MAX {
        let path = match number {
            0 => path.to_owned(),
            number => format!("{path}.{number}"),
        };
        match write(&path, sector, true) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| unable(&path)),
        }
    }
    anyhow::bail!("{path}: there are {NUMBERS_MAX} backups already; name a file with -B")
}

/// Writes a file that only its owner can read, durably. One that carries something is not
/// overwritten, unless it is a backup.
fn write(path: &str, bytes: &[u8], new: bool) -> std::io::Result<()> {
    // A backup begins with the metadata, a disk ends with it. Other containers begin with theirs.
    let is_backup = |found: &Content| {
        let first = found.places.first();
        let is_geli = found.name == "geom" && found.usage == ContentUse::Encrypted;
        is_geli && first.is_some_and(|place| place.offset_bytes == 0)
    };
    result_file::refuse_carrying(Path::new(path), is_backup)?;
    let path = Path::new(path);
    if !new {
        let mut file = NewFile::create_private(path)?;
        file.file.write_all(bytes)?;
        return file.keep();
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder_of(path)
}

/// How metadata is written into a last sector that may carry something else.
#[derive(Args)]
pub struct LastSectorArgs {
    /// Overwrite other metadata in the last sector
    #[arg(long)]
    pub destroy: bool,

    #[command(flatten)]
    pub backup: BackupArgs,

    #[command(flatten)]
    pub(super) verbose: Verbose,
}

const BACKUP_EXAMPLES: &str = "\
Examples:
  ugeom geli backup disk.img disk.eli
  ugeom geli dump disk.eli             # a backup can be dumped like a provider";

/// Save the metadata of a provider to a file
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// File to write the backup to
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: String,

    #[command(flatten)]
    verbose: Verbose,
}

impl Backup {
    pub fn run(&self) -> Result<()> {
        let mut ready = Ready::open(&self.target, Delta::READ)?;
        let mut disk = ready.disk()?;
        disk.metadata()?;
        let place = disk.place(disk.media_bytes);
        let sector = disk.sector(place)?;
        write(&self.file, &sector, false)
            .with_context(|| format!("Unable to write to {}", self.file))?;
        self.verbose
            .say(|| format!("Metadata of {} saved.", disk.name))
    }
}

const RESTORE_ABOUT: &str = "\
Writes the metadata from a backup to the last sector of a provider, and saves old metadata there \
first. A backup made for another size needs -f, which records the present size. A provider without \
metadata that carries a file system, or has something else in that sector, such as the second copy \
of a GPT, is written to with --destroy only.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  ugeom geli restore disk.eli disk.img
  ugeom geli restore -f disk.eli disk.img    # the disk has another size now";

/// Write the metadata from a backup to a provider
#[derive(Args)]
#[command(long_about = RESTORE_ABOUT, after_help = RESTORE_EXAMPLES)]
pub struct Restore {
    /// Backup to restore, written by `ugeom geli backup`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: String,

    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// Also to a provider of another size
    #[arg(short = 'f')]
    force: bool,

    #[command(flatten)]
    change: LastSectorArgs,
}

impl Restore {
    pub fn run(&self) -> Result<()> {
        let bytes = read_backup(&self.file);
        let bytes = bytes.with_context(|| format!("Cannot open {}", self.file))?;
        let mut ready = Ready::open(&self.target, Delta::READ_WRITE)?;
        if !self.change.destroy {
            ready.refuse_others()?;
        }
        let mut disk = ready.disk()?;
        self.change
            .backup
            .save_before_change(&mut disk, Providers::One)?;
        admin::restore(&mut disk, &bytes, &self.file, self.force)?;
        let name = &disk.name;
        self.change
            .verbose
            .say(|| format!("Metadata restored on {name}."))
    }
}
