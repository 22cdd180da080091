//! The changes: init, setkey, delkey, configure, resize, restore; and dump.

use super::{AdminError, EliDisk, OVERWRITES};
use crate::eli::error::EliKeyError;
use crate::eli::kdf::{self, KdfLimit};
use crate::eli::keys::{KeyComponents, MasterKey, fill_slot, open_slot};
use crate::eli::random;
use std::fmt::Write;
use std::time::Duration;
use ugeom_format::eli::{
    Authentication, Cipher, EliFlags, MASTER_KEYS_BYTES, Metadata, SALT_BYTES, SLOTS,
};
use ugeom_format::text::hex;

/// How long a new passphrase takes to try, when the user names no number of iterations.
const CHOSEN_TIME: Duration = Duration::from_secs(2);

/// The parameters of a new provider.
#[derive(Clone, Copy, Debug)]
pub struct InitSettings {
    /// Metadata version, 0 to 7: see docs/formats.
    pub version: u32,
    /// Flags; AUTH follows from `authentication`.
    pub flags: EliFlags,
    /// How sectors are encrypted (`-e`).
    pub cipher: Cipher,
    /// Length of the data key in bits (`-l`).
    pub key_bits: u16,
    /// How sectors are authenticated (`-a`); `None` without tags.
    pub authentication: Option<Authentication>,
    /// Sector size, bytes; `None` for that of the provider.
    pub sector_bytes: Option<u64>,
    /// Rounds of PBKDF2; `None` to choose.
    pub iterations: Option<i32>,
}

/// Makes new metadata with a new master key, and stores it. The old data of the provider cannot be
/// read any more.
///
/// # Errors
/// `Refused`, `Key`, `Write`.
pub fn initialize(
    disk: &mut EliDisk<'_>,
    settings: &InitSettings,
    components: &KeyComponents,
    limit: &KdfLimit<'_>,
) -> Result<Metadata, AdminError> {
    let refused = |text: &str| AdminError::Refused(text.to_owned());
    let sector_bytes = settings.sector_bytes.unwrap_or(disk.sector_bytes.into());
    let sector_bytes = u32::try_from(sector_bytes)
        .ok()
        .filter(|size| size.is_power_of_two() && size.is_multiple_of(disk.sector_bytes));
    let sector_bytes = sector_bytes.ok_or_else(|| refused("Invalid sector size."))?;
    let flags = settings.flags;
    let mut metadata = Metadata {
        version: settings.version,
        flags: flags.with(EliFlags::AUTH, settings.authentication.is_some()),
        cipher_number: settings.cipher.number(),
        key_bits: settings.key_bits,
        authentication_number: settings.authentication.map_or(0, Authentication::number),
        provider_bytes: disk.media_bytes,
        sector_bytes,
        keys: 0,
        iterations: settings.iterations.unwrap_or(-1),
        salt: [0; SALT_BYTES],
        master_keys: [0; MASTER_KEYS_BYTES],
    };
    let layout = metadata.layout(disk.media_bytes, disk.sector_bytes);
    layout.map_err(|error| AdminError::Refused(error.to_string()))?;
    let random = |bytes: &mut [u8]| random::fill(bytes).map_err(EliKeyError::from);
    let made = random(&mut metadata.salt).and_then(|()| random(&mut metadata.master_keys));
    made.map_err(AdminError::Key)?;
    let master = MasterKey::random().map_err(|error| AdminError::Key(error.into()))?;
    choose_iterations(&mut metadata, components)?;
    let user = components.user_key(&metadata.salt, metadata.iterations, limit);
    let user = user.map_err(|error| AdminError::of_key(error, &disk.name))?;
    let filled = fill_slot(&mut metadata, &user, &master, 0);
    filled.map_err(AdminError::Key)?;
    disk.store(&metadata)?;
    Ok(metadata)
}

/// A passphrase without a number of iterations gets one that takes two seconds here.
fn choose_iterations(
    metadata: &mut Metadata,
    components: &KeyComponents,
) -> Result<(), AdminError> {
    if components.has_passphrase() && metadata.iterations == -1 {
        let rounds = kdf::rounds_within(CHOSEN_TIME).map_err(AdminError::Key)?;
        metadata.iterations = i32::try_from(rounds).unwrap_or(i32::MAX);
    }
    Ok(())
}

/// How a key is replaced.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyChange {
    /// The slot to write; `None` for the one that the old key opens.
    pub slot: Option<usize>,
    /// A new number of iterations.
    pub iterations: Option<i32>,
}

/// Writes the master key for a new key, and stores it: which slot the old key opened, and which
/// was written.
///
/// # Errors
/// `NoKeys`, `WrongKey`, `Refused`, `Key`, `Write`.
pub fn replace_key(
    disk: &mut EliDisk<'_>,
    (old, new): (&KeyComponents, &KeyComponents),
    change: KeyChange,
    limit: &KdfLimit<'_>,
) -> Result<(usize, usize), AdminError> {
    let mut metadata = disk.metadata()?;
    let name = disk.name.clone();
    let failed = |error| AdminError::of_key(error, &name);
    if metadata.keys == 0 {
        return Err(failed(EliKeyError::NoKeys));
    }
    let user = old.user_key(&metadata.salt, metadata.iterations, limit);
    let opened = user.and_then(|user| open_slot(&metadata, &user, None));
    let (opened, master) = opened.map_err(failed)?;
    let slot = change.slot.unwrap_or(opened);
    if slot >= SLOTS {
        return Err(AdminError::Refused("Invalid 'keyno' argument.".to_owned()));
    }
    if let Some(iterations) = change.iterations {
        let differs = metadata.iterations != -1 && iterations != metadata.iterations;
        if differs && metadata.keys.count_ones() != 1 {
            let text = "To be able to use '-i' option, only one key can be defined.";
            return Err(AdminError::Refused(text.to_owned()));
        }
        if differs && metadata.keys != 1 << slot {
            let text = "Only already defined key can be changed when '-i' option is used.";
            return Err(AdminError::Refused(text.to_owned()));
        }
        metadata.iterations = iterations;
    }
    choose_iterations(&mut metadata, new)?;
    let user = new.user_key(&metadata.salt, metadata.iterations, limit);
    let user = user.map_err(failed)?;
    fill_slot(&mut metadata, &user, &master, slot).map_err(failed)?;
    disk.store(&metadata)?;
    Ok((opened, slot))
}

/// Destroys the key of a slot, or with `None` of all: overwritten several times, each flushed.
///
/// # Errors
/// `Refused` for a slot that is not in use or the last one, unless `force` is set; `Write`.
pub fn delete_key(
    disk: &mut EliDisk<'_>,
    slot: Option<usize>,
    force: bool,
) -> Result<(), AdminError> {
    let mut metadata = disk.metadata()?;
    let refused = |text: String| Err(AdminError::Refused(text));
    match slot {
        None => metadata.keys = 0,
        Some(slot) => {
            if slot >= SLOTS {
                return refused("Invalid 'keyno' argument.".to_owned());
            }
            if !metadata.has_key(slot) && !force {
                return refused(format!("Master Key {slot} is not set."));
            }
            metadata.keys &= !(1 << slot);
            if metadata.keys == 0 && !force {
                let text = "This is the last Master Key. Use '-f' option if you really want to \
                            remove it.";
                return refused(text.to_owned());
            }
        }
    }
    let slots = slot.map_or(0..SLOTS, |slot| slot..slot + 1);
    for time in 0..=OVERWRITES {
        for slot in slots.clone() {
            let bytes = metadata.slot_mut(slot);
            bytes.fill(0);
            if time < OVERWRITES {
                random::fill(bytes).map_err(|error| AdminError::Key(error.into()))?;
            }
        }
        disk.store(&metadata)?;
    }
    Ok(())
}

fn changed_flags(metadata: &Metadata, changes: &[(EliFlags, bool)]) -> EliFlags {
    let change = |flags: EliFlags, (flag, set): &(EliFlags, bool)| flags.with(*flag, *set);
    changes.iter().fold(metadata.flags, change)
}

/// True when [`configure`] would change anything.
pub fn would_change(metadata: &Metadata, changes: &[(EliFlags, bool)]) -> bool {
    changed_flags(metadata, changes) != metadata.flags
}

/// Sets and clears flags: true when anything was changed.
///
/// # Errors
/// `Read`, `Write`.
pub fn configure(disk: &mut EliDisk<'_>, changes: &[(EliFlags, bool)]) -> Result<bool, AdminError> {
    let mut metadata = disk.metadata()?;
    let changed = would_change(&metadata, changes);
    if changed {
        metadata.flags = changed_flags(&metadata, changes);
        disk.store(&metadata)?;
    }
    Ok(changed)
}

/// The metadata of a provider that had another size, and where it lies.
///
/// # Errors
/// `Refused`, `Read`, `Inconsistent`, `TooNew`.
pub fn metadata_at_old_size(
    disk: &mut EliDisk<'_>,
    old_bytes: u64,
) -> Result<(u64, Metadata), AdminError> {
    let refused = |text: &str| Err(AdminError::Refused(text.to_owned()));
    let sector = u64::from(disk.sector_bytes);
    if old_bytes < sector || old_bytes > disk.media_bytes || !old_bytes.is_multiple_of(sector) {
        return refused("Invalid oldsize: Out of range.");
    }
    if old_bytes == disk.media_bytes {
        return refused("Size hasn't changed.");
    }
    let old_place = disk.place(old_bytes);
    let bytes = disk.sector(old_place)?;
    let decoded = Metadata::decode(&bytes);
    let metadata = decoded.map_err(|error| AdminError::of_format(error, &disk.name))?;
    if metadata.provider_bytes != old_bytes {
        return refused("Provider size mismatch at oldsize.");
    }
    Ok((old_place, metadata))
}

/// Moves the metadata of a provider that had another size to its end. The new place is durable
/// before the old one is overwritten.
///
/// # Errors
/// As [`metadata_at_old_size`], and `Write`.
pub fn resize(disk: &mut EliDisk<'_>, old_bytes: u64) -> Result<(), AdminError> {
    let (old_place, mut metadata) = metadata_at_old_size(disk, old_bytes)?;
    metadata.provider_bytes = disk.media_bytes;
    disk.store(&metadata)?;
    disk.trash(old_place)
}

/// Writes metadata from a backup. With `force` also to a provider of another size.
///
/// # Errors
/// `Refused`, `Inconsistent`, `TooNew`, `Write`.
pub fn restore(
    disk: &mut EliDisk<'_>,
    backup: &[u8],
    file: &str,
    force: bool,
) -> Result<(), AdminError> {
    let decoded = Metadata::decode(backup);
    let mut metadata = decoded.map_err(|error| AdminError::of_format(error, file))?;
    if metadata.provider_bytes != disk.media_bytes {
        if !force {
            let text = "Provider size mismatch: wrong backup file?";
            return Err(AdminError::Refused(text.to_owned()));
        }
        metadata.provider_bytes = disk.media_bytes;
    }
    disk.store(&metadata)
}

/// The lines of `geli dump`. Nothing in metadata is secret: slots are encrypted.
pub fn dump(metadata: &Metadata) -> String {
    let cipher = Cipher::of_number(metadata.cipher_number).map_or("unknown", Cipher::name);
    let mut text = String::from("     magic: GEOM::ELI\n");
    // Writing to a string does not fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name}{value}");
    };
    line("   version: ", metadata.version.to_string());
    line("     flags: ", format!("0x{:x}", metadata.flags.0));
    line("     ealgo: ", cipher.to_owned());
    line("    keylen: ", metadata.key_bits.to_string());
    if metadata.flags.contains(EliFlags::AUTH) {
        let number = metadata.authentication_number;
        let name = Authentication::of_number(number).map_or("unknown", Authentication::name);
        line("     aalgo: ", name.to_owned());
    }
    line("  provsize: ", metadata.provider_bytes.to_string());
    line("sectorsize: ", metadata.sector_bytes.to_string());
    line("      keys: ", format!("0x{:02x}", metadata.keys));
    line("iterations: ", metadata.iterations.to_string());
    line("      Salt: ", hex(&metadata.salt));
    line("Master Key: ", hex(&metadata.master_keys));
    line("  MD5 hash: ", hex(&metadata.checksum()));
    text
}
