//! The verbs that write: init, setkey, delkey, kill, resize, configure, clear.

use super::backup::{BackupArgs, LastSectorArgs, Providers};
use super::key_args::{NewKeyArgs, OldKeyArgs, limited};
use super::list::providers;
use super::{Ready, Verbose, each, open_target};
use crate::failure::Usage;
use crate::opening::{self, KeyArgs};
use crate::output;
use crate::safety;
use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use ugeom_classes::eli::admin::{self, EliDisk, InitSettings, KeyChange};
use ugeom_format::eli::{Authentication, Cipher, EliFlags, VERSION_MAX};
use ugeom_stack::Delta;

/// FreeBSD's page size on x86, from which on geli warns of a sector size.
const PAGE_BYTES: u64 = 4096;
/// The last message of a command when one of several targets failed.
const ONE_FAILED: &str = "There was an error with at least one provider.";
/// The same for verbs that geli ends with other words.
const NOT_FULLY: &str = "Not fully done.";

const INIT_ABOUT: &str = "\
Makes an encrypted provider: writes a new master key, encrypted with the given key, into the last \
sector. Several providers get the same key files and passphrase, and a salt and a master key each.

A target that carries a partition table, a file system or GELI's metadata is refused unless \
--destroy is given. The new metadata is saved to a file (-B).";

const INIT_EXAMPLES: &str = "\
Examples:
  ugeom geli init -s 4096 -J pass.txt disk.img
  ugeom geli init -P -K geli.key -e aes-xts -l 256 -a hmac/sha256 -s 4096 \\
      -B none disk.img@p2";

/// Make encrypted providers
#[derive(Args)]
#[command(long_about = INIT_ABOUT, after_help = INIT_EXAMPLES)]
pub struct Init {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Authentication algorithm: hmac/sha1, hmac/ripemd160, hmac/sha256, hmac/sha384, hmac/sha512
    #[arg(short = 'a', value_name = "AALGO")]
    authentication: Option<String>,

    /// Ask for the passphrase at boot
    #[arg(short = 'b')]
    boot: bool,

    /// Show the length of the passphrase at boot
    #[arg(short = 'd')]
    display_passphrase: bool,

    /// Encryption algorithm: aes-xts, aes-cbc, camellia-cbc, null [default: aes-xts]
    #[arg(short = 'e', value_name = "EALGO")]
    cipher: Option<String>,

    /// Let the boot loader ask for the passphrase
    #[arg(short = 'g')]
    geliboot: bool,

    /// Key length in bits [default: 128 for AES and Camellia]
    #[arg(short = 'l', value_name = "KEYLEN")]
    key_bits: Option<u16>,

    /// Do not follow a new size of the provider
    #[arg(short = 'R')]
    no_autoresize: bool,

    /// Sector size [default: that of the provider]
    #[arg(short = 's', value_name = "SECTORSIZE", value_parser = opening::size)]
    sector_bytes: Option<u64>,

    /// Do not pass DELETE on
    #[arg(short = 'T')]
    no_delete: bool,

    /// Metadata version, 0 to 7 [default: 7]
    #[arg(short = 'V', value_name = "VERSION")]
    version: Option<u32>,

    #[command(flatten)]
    key: NewKeyArgs,

    #[command(flatten)]
    backup: BackupArgs,

    #[command(flatten)]
    limit: KeyArgs,

    /// Allow 3DES, Blowfish and HMAC/MD5, which FreeBSD cannot read any more
    #[arg(long)]
    legacy: bool,

    /// Overwrite a table, a file system or metadata that is there
    #[arg(long)]
    destroy: bool,

    #[command(flatten)]
    verbose: Verbose,
}

impl Init {
    pub fn run(&self) -> Result<()> {
        let settings = self.settings()?;
        let components = self.key.components()?;
        let count = Providers::of(self.targets.len());
        let one = |text: &str| {
            let mut ready = Ready::open(text, Delta::READ_WRITE)?;
            if !self.destroy {
                safety::refuse_content(&ready.target)?;
            }
            let mut disk = ready.disk()?;
            self.backup.save_before_init(&mut disk, count)?;
            limited(&self.limit, |limit| {
                Ok(admin::initialize(&mut disk, &settings, &components, limit)?)
            })?;
            self.verbose
                .say(|| format!("Metadata value stored on {}.", disk.name))?;
            if let Some(path) = self.backup.save(&mut disk, count)? {
                output::print(&format!(
                    "\nMetadata backup for provider {text} can be found in {path}\n\
                     and can be restored with the following command:\n\
                     \n\t# ugeom geli restore {path} {text}\n\n"
                ))?;
            }
            Ok(())
        };
        each(&self.targets, one, ONE_FAILED)
    }

    fn settings(&self) -> Result<InitSettings> {
        let version = self.version.unwrap_or(VERSION_MAX);
        if version > VERSION_MAX {
            bail!("Invalid version specified should be between 0 and {VERSION_MAX}.");
        }
        let mut cipher = None;
        let mut authentication = None;
        if let Some(name) = &self.authentication {
            if version < 1 {
                bail!("Data authentication is supported starting from version 1.");
            }
            authentication = Authentication::parse(name);
            // Once -a named the cipher.
            cipher = Cipher::parse(name);
            if authentication.is_none() && cipher.is_none() {
                bail!("Invalid authentication algorithm.");
            }
            if cipher.is_some() {
                output::warn(
                    "The -e option, not the -a option is now used to specify encryption \
                     algorithm to use.",
                );
            }
        }
        let cipher = match (cipher, self.cipher.as_deref()) {
            (Some(cipher), _) => cipher,
            (None, Some(name)) => match Cipher::parse(name) {
                Some(cipher) => cipher,
                None => bail!("Invalid encryption algorithm."),
            },
            (None, None) if version < 5 => Cipher::AesCbc,
            (None, None) => Cipher::AesXts,
        };
        if version < cipher.since_version() {
            let (name, since) = (cipher.name(), cipher.since_version());
            bail!("{name} algorithm is supported starting from version {since}.");
        }
        let old = authentication.filter(|one| one.is_legacy());
        if !self.legacy && (cipher.is_legacy() || old.is_some()) {
            let name = old.map_or(cipher.name(), Authentication::name);
            bail!(
                "{name} is for reading old disks: FreeBSD 13 and later cannot read it (--legacy \
                   makes such a provider)"
            );
        }
        let key_bits = match self.key_bits {
            None | Some(0) => cipher.default_key_bits(),
            Some(bits) if cipher.allows_key_bits(bits) => bits,
            Some(_) => bail!("Invalid key length."),
        };
        let is_warned_of = |size: u64| size > PAGE_BYTES && size.is_power_of_two();
        if self.sector_bytes.is_some_and(is_warned_of) {
            output::warn("Using sectorsize bigger than the page size!");
        }
        let autoresize = version == VERSION_MAX && !self.no_autoresize;
        Ok(InitSettings {
            version,
            flags: EliFlags::default()
                .with(EliFlags::BOOT, self.boot)
                .with(EliFlags::GELIBOOT, self.geliboot)
                .with(EliFlags::GELIDISPLAYPASS, self.display_passphrase)
                .with(EliFlags::NODELETE, self.no_delete)
                .with(EliFlags::AUTORESIZE, autoresize),
            cipher,
            key_bits,
            authentication,
            sector_bytes: self.sector_bytes.filter(|size| *size > 0),
            iterations: self.key.iterations()?,
        })
    }
}

const SETKEY_ABOUT: &str = "\
Encrypts the master key with a new key, in the slot that the old key opens or in another one (-n). \
The data is not encrypted again. The old metadata is saved first (-B); that backup still opens \
with the old key.";

const SETKEY_EXAMPLES: &str = "\
Examples:
  ugeom geli setkey -j old.txt -J new.txt disk.img
  ugeom geli setkey -n 1 -p -k geli.key -P -K second.key disk.img  # a second";

/// Replace a key, or add a second one
#[derive(Args)]
#[command(long_about = SETKEY_ABOUT, after_help = SETKEY_EXAMPLES)]
pub struct Setkey {
    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// The slot to write, 0 or 1 [default: the one that the old key opens]
    #[arg(short = 'n', value_name = "KEYNO")]
    slot: Option<usize>,

    #[command(flatten)]
    old: OldKeyArgs,

    #[command(flatten)]
    new: NewKeyArgs,

    #[command(flatten)]
    backup: BackupArgs,

    #[command(flatten)]
    verbose: Verbose,
}

impl Setkey {
    pub fn run(&self) -> Result<()> {
        let mut ready = Ready::open(&self.target, Delta::READ_WRITE)?;
        let mut disk = ready.disk()?;
        let metadata = disk.metadata()?;
        if metadata.keys == 0 {
            bail!("No valid keys on {}.", disk.name);
        }
        let iterations = self.new.iterations()?;
        let old = self.old.components(metadata.iterations)?;
        let new = self.new.components()?;
        self.backup.save_before_change(&mut disk, Providers::One)?;
        let change = KeyChange {
            slot: self.slot,
            iterations,
        };
        let replaced = limited(&self.old.limit, |limit| {
            Ok(admin::replace_key(&mut disk, (&old, &new), change, limit)?)
        });
        let (opened, _) = replaced?;
        self.verbose
            .say(|| format!("Decrypted Master Key {opened}."))?;
        output::print(
            "Note, that the master key encrypted with old keys and/or passphrase may still exists \
             in a metadata backup file.\n",
        )
    }
}

const DELKEY_ABOUT: &str = "\
Destroys a key: its slot is overwritten several times, each durably. No backup is written unless \
-B \
names a file. The last key is destroyed only with -f, and all of them (-a) with --destroy.";

const DELKEY_EXAMPLES: &str = "\
Examples:
  ugeom geli delkey -n 1 disk.img
  ugeom geli delkey -f -n 0 disk.img      # the last one: the data is lost";

/// Destroy a key
#[derive(Args)]
#[command(long_about = DELKEY_ABOUT, after_help = DELKEY_EXAMPLES)]
pub struct Delkey {
    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// All keys
    #[arg(short = 'a')]
    all: bool,

    /// Also the last key
    #[arg(short = 'f')]
    force: bool,

    /// The slot, 0 or 1
    #[arg(short = 'n', value_name = "KEYNO")]
    slot: Option<usize>,

    /// Save the metadata to this file first
    #[arg(short = 'B', value_name = "BACKUPFILE")]
    backup: Option<String>,

    /// Confirm that all keys are to be destroyed
    #[arg(long)]
    destroy: bool,

    #[command(flatten)]
    verbose: Verbose,
}

impl Delkey {
    pub fn run(&self) -> Result<()> {
        let slot = match (self.all, self.slot) {
            (true, _) if !self.destroy && !self.force => bail!(
                "destroying all keys of {} makes its data unreadable for ever; nothing was \
                 written, --destroy does it",
                self.target
            ),
            (true, _) => None,
            (false, None) => bail!("Key number has to be specified."),
            (false, slot) => slot,
        };
        let mut ready = Ready::open(&self.target, Delta::READ_WRITE)?;
        let mut disk = ready.disk()?;
        if let Some(file) = &self.backup {
            BackupArgs::given(Some(file)).save_before_change(&mut disk, Providers::One)?;
        }
        admin::delete_key(&mut disk, slot, self.force || self.all)?;
        let name = &disk.name;
        self.verbose.say(|| match slot {
            None => format!("All keys removed from {name}."),
            Some(slot) => format!("Key {slot} removed from {name}."),
        })
    }
}

const KILL_ABOUT: &str = "\
Overwrites the metadata several times with random bytes and then with zeroes, each durably. \
Without \
a backup of the metadata the data is lost for ever. No backup is written unless -B names a file. A \
provider that carries something else and no metadata is refused.

With -a every GELI provider that a target holds is killed, such as all encrypted partitions of a \
disk.";

const KILL_EXAMPLES: &str = "\
Examples:
  ugeom geli kill --destroy disk.img@p2
  ugeom geli kill -a --destroy disk.img      # all its encrypted partitions";

/// Destroy the metadata, without which the data is unreadable
#[derive(Args)]
#[command(long_about = KILL_ABOUT, after_help = KILL_EXAMPLES)]
pub struct Kill {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// All GELI providers that the targets hold
    #[arg(short = 'a')]
    all: bool,

    /// Save the metadata to this file first, PROV replaced by the provider
    #[arg(short = 'B', value_name = "BACKUPFILE", value_hint = ValueHint::FilePath)]
    backup: Option<String>,

    /// Confirm that the metadata is lost
    #[arg(long)]
    destroy: bool,

    #[command(flatten)]
    verbose: Verbose,
}

impl Kill {
    pub fn run(&self) -> Result<()> {
        let count = Providers::of(self.targets.len());
        let one = |text: &str| {
            if !self.destroy {
                bail!(
                    "killing {text} makes its data unreadable for ever; nothing was written, \
                     --destroy does it"
                );
            }
            if !self.all {
                let mut ready = Ready::open(text, Delta::READ_WRITE)?;
                refuse_without_metadata(&mut ready)?;
                return self.kill(&mut ready.disk()?, count);
            }
            let target = open_target(text, Delta::READ_WRITE)?;
            let found = providers(&target.stack.tree());
            if found.is_empty() {
                bail!("no GELI provider was found on {text}");
            }
            let count = Providers::of(self.targets.len().max(found.len()));
            for provider in found {
                let opened = target.stack.open(provider, Delta::READ_WRITE)?;
                let mut channel = target.stack.channel(1)?;
                self.kill(&mut EliDisk::new(&mut channel, &opened)?, count)?;
            }
            Ok(())
        };
        each(&self.targets, one, NOT_FULLY)
    }

    fn kill(&self, disk: &mut EliDisk<'_>, count: Providers) -> Result<()> {
        if let Some(file) = &self.backup {
            BackupArgs::given(Some(file)).save_before_change(disk, count)?;
        }
        disk.kill()?;
        self.verbose
            .say(|| format!("{} has been killed.", disk.name))
    }
}

/// Refuses to kill what GELI does not own. A last sector that cannot be read, or that nothing is
/// known of, may hold the rest of a key.
fn refuse_without_metadata(ready: &mut Ready) -> Result<()> {
    if ready.disk()?.begins_as_metadata().unwrap_or(true) {
        return Ok(());
    }
    match ready.others()?.as_slice() {
        [] => Ok(()),
        found => bail!(
            "{} has no GELI metadata and carries {}; nothing was written",
            ready.target.name,
            safety::list(found)
        ),
    }
}

const RESIZE_ABOUT: &str = "\
Moves the metadata to the end of a provider that has grown, and overwrites it at the old place. \
The \
metadata is saved first (-B), and the new place is durable before the old one is touched.";

const RESIZE_EXAMPLES: &str = "\
Examples:
  ugeom geli resize -s 1g disk.img        # disk.img had 1 GiB and has more now";

/// Update the metadata of a provider that has grown
#[derive(Args)]
#[command(long_about = RESIZE_ABOUT, after_help = RESIZE_EXAMPLES)]
pub struct Resize {
    /// The provider: a path, or any target
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    target: String,

    /// Size of the provider before it was resized
    #[arg(short = 's', value_name = "OLDSIZE", value_parser = opening::size)]
    old_bytes: u64,

    #[command(flatten)]
    change: LastSectorArgs,
}

impl Resize {
    pub fn run(&self) -> Result<()> {
        let mut ready = Ready::open(&self.target, Delta::READ_WRITE)?;
        if !self.change.destroy {
            ready.refuse_last_sector()?;
        }
        let mut disk = ready.disk()?;
        let (place, _) = admin::metadata_at_old_size(&mut disk, self.old_bytes)?;
        self.change.backup.save_from(&mut disk, place)?;
        admin::resize(&mut disk, self.old_bytes)?;
        let name = &disk.name;
        self.change
            .verbose
            .say(|| format!("Metadata of {name} moved to its end."))
    }
}

const CONFIGURE_ABOUT: &str = "\
Sets and clears flags. -B clears the flag of -b, as for geli; the metadata is saved first to the \
file that --backup-file names.";

const CONFIGURE_EXAMPLES: &str = "\
Examples:
  ugeom geli configure -b disk.img        # ask for the passphrase at boot
  ugeom geli configure -T disk.img        # do not pass DELETE on";

/// Set and clear flags
#[derive(Args)]
#[command(long_about = CONFIGURE_ABOUT, after_help = CONFIGURE_EXAMPLES)]
pub struct Configure {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Ask for the passphrase at boot
    #[arg(short = 'b')]
    boot: bool,

    /// Do not ask at boot
    #[arg(short = 'B')]
    no_boot: bool,

    /// Show the length of the passphrase at boot
    #[arg(short = 'd')]
    display: bool,

    /// Do not show it
    #[arg(short = 'D')]
    no_display: bool,

    /// Let the boot loader ask for the passphrase
    #[arg(short = 'g')]
    geliboot: bool,

    /// Do not let it
    #[arg(short = 'G')]
    no_geliboot: bool,

    /// Follow a new size of the provider
    #[arg(short = 'r')]
    autoresize: bool,

    /// Do not follow it
    #[arg(short = 'R')]
    no_autoresize: bool,

    /// Pass DELETE on
    #[arg(short = 't')]
    delete: bool,

    /// Do not pass DELETE on
    #[arg(short = 'T')]
    no_delete: bool,

    /// Save the metadata to this file first, PROV replaced by the provider; none for no backup
    /// [default: /var/backups/PROV.eli]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    backup_file: Option<String>,

    #[command(flatten)]
    verbose: Verbose,
}

impl Configure {
    fn changes(&self) -> Result<Vec<(EliFlags, bool)>> {
        // The flag, set by the first letter and cleared by the second.
        let all = [
            (EliFlags::BOOT, self.boot, self.no_boot, "-b and -B"),
            (
                EliFlags::GELIDISPLAYPASS,
                self.display,
                self.no_display,
                "-d and -D",
            ),
            (
                EliFlags::GELIBOOT,
                self.geliboot,
                self.no_geliboot,
                "-g and -G",
            ),
            (
                EliFlags::AUTORESIZE,
                self.autoresize,
                self.no_autoresize,
                "-r and -R",
            ),
            (EliFlags::NODELETE, self.no_delete, self.delete, "-t and -T"),
        ];
        let mut changes = Vec::new();
        for (flag, set, clear, letters) in all {
            match (set, clear) {
                (true, true) => bail!("Options {letters} are mutually exclusive."),
                (false, false) => {}
                _ => changes.push((flag, set)),
            }
        }
        if changes.is_empty() {
            return Err(Usage("No option given.".to_owned()).into());
        }
        Ok(changes)
    }

    pub fn run(&self) -> Result<()> {
        let changes = self.changes()?;
        let backup = BackupArgs::given(self.backup_file.as_deref());
        let count = Providers::of(self.targets.len());
        let one = |text: &str| {
            let mut ready = Ready::open(text, Delta::READ_WRITE)?;
            let mut disk = ready.disk()?;
            if admin::would_change(&disk.metadata()?, &changes) {
                backup.save_before_change(&mut disk, count)?;
            }
            let changed = admin::configure(&mut disk, &changes)?;
            let name = &disk.name;
            self.verbose.say(|| match changed {
                true => format!("Flags of {name} changed."),
                false => format!("Flags already configured for {name}."),
            })
        };
        each(&self.targets, one, NOT_FULLY)
    }
}

const CLEAR_EXAMPLES: &str = "\
Examples:
  ugeom geli clear --destroy disk.img";

/// Zero the metadata
#[derive(Args)]
#[command(after_help = CLEAR_EXAMPLES)]
pub struct Clear {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    #[command(flatten)]
    backup: BackupArgs,

    /// Confirm that the metadata is lost
    #[arg(long)]
    destroy: bool,

    #[command(flatten)]
    verbose: Verbose,
}

impl Clear {
    pub fn run(&self) -> Result<()> {
        let count = Providers::of(self.targets.len());
        let one = |text: &str| {
            let mut ready = Ready::open(text, Delta::READ_WRITE)?;
            let mut disk = ready.disk()?;
            disk.metadata()?;
            if !self.destroy {
                bail!(
                    "clearing {text} makes its data unreadable; nothing was written, --destroy \
                     does it"
                );
            }
            self.backup.save_before_change(&mut disk, count)?;
            disk.clear()?;
            self.verbose
                .say(|| format!("Metadata cleared on {}.", disk.name))
        };
        each(&self.targets, one, NOT_FULLY)
    }
}
