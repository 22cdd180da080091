//! Opening a provider with the key that its options name.

use super::crypt::Crypt;
use super::error::EliKeyError;
use super::kdf::{KdfLimit, TIME_MAX};
use super::keys::{KeyComponents, MasterKey, open_slot};
use super::options::{OneTime, Settings};
use super::passphrase::{self, PassphraseError};
use crate::build::{BuildContext, BuildError};
use std::fs::File;
use std::io::{self, Read};
use ugeom_format::eli::{Authentication, EliFlags, METADATA_BYTES, Metadata};
use ugeom_machine::secret;
use ugeom_stack::{Delta, ProviderView};

/// A provider whose key is known.
pub(super) struct OpenedProvider {
    pub metadata: Metadata,
    pub slot: Option<usize>,
    pub crypt: Crypt,
}

/// Opens the provider below with the key that the settings name.
pub(super) fn open(
    context: &BuildContext<'_>,
    settings: &Settings,
    below: &ProviderView,
) -> Result<OpenedProvider, BuildError> {
    let refused = |problem: String| BuildError::refused(&below.name, problem);
    harden();
    let sizes = (below.mediasize_bytes, below.sectorsize_bytes);
    let (metadata, slot, master) = match settings.is_onetime {
        true => {
            let metadata = settings.onetime.metadata(below).map_err(&refused)?;
            let master = MasterKey::random().map_err(|error| refused(error.to_string()))?;
            (metadata, None, master)
        }
        false => {
            let metadata = read_metadata(context, settings, below).map_err(&refused)?;
            let components = components(context, settings, &metadata, &below.name);
            let components = components.map_err(|error| refused(error.to_string()))?;
            let limit = KdfLimit {
                time_max: context.kdf_time_max().unwrap_or(TIME_MAX),
                ..KdfLimit::default()
            };
            let opened = components
                .user_key(&metadata.salt, metadata.iterations, &limit)
                .and_then(|user| open_slot(&metadata, &user, settings.slot));
            let (slot, master) = opened.map_err(|error| match error {
                EliKeyError::WrongKey => refused(format!("Wrong key for {}.", below.name)),
                error => refused(error.to_string()),
            })?;
            (metadata, Some(slot), master)
        }
    };
    let crypt = Crypt::new(&metadata, sizes, &master, settings.order, settings.backend);
    let crypt = crypt.map_err(|error| refused(error.to_string()))?;
    drop(master);
    secret::scrub_stack();
    warn_of_swap();
    Ok(OpenedProvider {
        metadata,
        slot,
        crypt,
    })
}

/// Keys are not to end in a core.
fn harden() {
    if let Err(error) = secret::forbid_dumps() {
        log::warn!("core dumps cannot be disabled and may contain keys: {error}");
    }
}

fn warn_of_swap() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    if let Some(error) = secret::lock_error() {
        ONCE.call_once(|| {
            log::warn!(
                "keys cannot be locked in memory and may be swapped out: {error}; raise the \
                 limit of locked memory (ulimit -l)"
            );
        });
    }
}

impl OneTime {
    fn metadata(&self, below: &ProviderView) -> Result<Metadata, String> {
        let sector_bytes = self.sector_bytes.unwrap_or(below.sectorsize_bytes.into());
        let sector_bytes = u32::try_from(sector_bytes).unwrap_or(u32::MAX);
        let key_bits = self.key_bits.unwrap_or(self.cipher.default_key_bits());
        let number = self.cipher.number();
        let size = below.mediasize_bytes;
        let mut metadata = Metadata::one_time(number, key_bits, size, sector_bytes);
        metadata.flags = EliFlags::ONETIME
            .with(EliFlags::AUTH, self.authentication.is_some())
            .with(EliFlags::NODELETE, self.no_delete);
        metadata.authentication_number = self.authentication.map_or(0, Authentication::number);
        let layout = metadata.layout(below.mediasize_bytes, below.sectorsize_bytes);
        layout.map_err(|error| error.to_string())?;
        Ok(metadata)
    }
}

/// The beginning of a backup of metadata, which is all that counts: `/dev/zero` has no end.
///
/// # Errors
/// It cannot be opened or read.
pub fn read_backup(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(METADATA_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_metadata(
    context: &BuildContext<'_>,
    settings: &Settings,
    below: &ProviderView,
) -> Result<Metadata, String> {
    let metadata = match &settings.metadata {
        Some(path) => {
            let bytes = read_backup(path);
            let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
            Metadata::decode(&bytes).map_err(|error| format!("{path}: {error}"))?
        }
        None => {
            let sector = last_sector(context, below)?;
            Metadata::decode(&sector).map_err(|error| format!("Cannot read metadata: {error}"))?
        }
    };
    if metadata.provider_bytes != below.mediasize_bytes {
        return Err(format!(
            "Provider size mismatch: the metadata was written for {} bytes, and {} has {}; \
             `ugeom geli recover` looks for more",
            metadata.provider_bytes, below.name, below.mediasize_bytes
        ));
    }
    let layout = metadata.layout(below.mediasize_bytes, below.sectorsize_bytes);
    layout.map_err(|error| error.to_string())?;
    Ok(metadata)
}

fn last_sector(context: &BuildContext<'_>, below: &ProviderView) -> Result<Vec<u8>, String> {
    let sector = u64::from(below.sectorsize_bytes);
    let sectors = below.mediasize_bytes.checked_div(sector).unwrap_or(0);
    let stack = context.stack();
    let read = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let opened = stack.open(below.id, Delta::READ)?;
        let mut channel = stack.channel(1)?;
        let mut bytes = vec![0; below.sectorsize_bytes as usize];
        channel.read(&opened, sectors.saturating_sub(1) * sector, &mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| format!("Cannot read metadata: {error}"))
}

/// Keyfiles and passphrase, as the settings name them; a missing one is asked for.
fn components(
    context: &BuildContext<'_>,
    settings: &Settings,
    metadata: &Metadata,
    name: &str,
) -> Result<KeyComponents, PassphraseError> {
    let mut components = KeyComponents::new()?;
    for path in &settings.keyfiles {
        let read = File::open(path).and_then(|file| components.add_open_keyfile(file));
        read.map_err(|error| PassphraseError::Read {
            what: format!("keyfile {path}"),
            error,
        })?;
    }
    if settings.no_passphrase {
        return Ok(components);
    }
    if !settings.passfiles.is_empty() {
        let mut passphrase = passphrase::empty()?;
        for path in &settings.passfiles {
            let what = format!("passfile {path}");
            let file = File::open(path).map_err(|error| PassphraseError::Read {
                what: what.clone(),
                error,
            })?;
            passphrase::add_line(&mut passphrase, file, &what)?;
        }
        components.set_passphrase(passphrase);
    } else if metadata.iterations >= 0 {
        let passphrase = match context.passphrase_descriptor() {
            Some(number) => passphrase::from_descriptor(number)?,
            None => passphrase::ask(&format!("Enter passphrase for {name}: "), name)?,
        };
        components.set_passphrase(passphrase);
    }
    Ok(components)
}
