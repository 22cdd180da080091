//! Names the metadata, without a key: a geom that has no provider, and the facts of the metadata.

use super::SUFFIX;
use crate::entry::Miss;
use std::sync::Arc;
use ugeom_format::eli::{Authentication, Cipher, EliError, Metadata, SLOTS};
use ugeom_stack::{Cx, Errno, Fact, Geom, Next, Plan, Request, Taster};

/// The geom of a provider that is not attached.
struct Locked {
    metadata: Metadata,
}

impl Geom for Locked {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.fail(Errno::OPNOTSUPP, "there is no key")
    }

    fn config(&self) -> Vec<Fact> {
        let slots: Vec<String> = (0..SLOTS)
            .filter(|slot| self.metadata.has_key(*slot))
            .map(|slot| slot.to_string())
            .collect();
        let mut facts = vec![
            ("Flags", self.metadata.flags.to_string()),
            ("Slots", slots.join(", ")),
        ];
        facts.extend(algorithms(&self.metadata));
        facts.push(("State", "LOCKED".to_owned()));
        facts
    }
}

/// The metadata lines of `geli list`: version and algorithms.
pub(super) fn algorithms(metadata: &Metadata) -> Vec<Fact> {
    let mut facts = vec![("Version", metadata.version.to_string())];
    let crypto = match ugeom_machine::aes::is_available() {
        true => "accelerated software",
        false => "software",
    };
    facts.push(("Crypto", crypto.to_owned()));
    if let Ok(Some(algorithm)) = metadata.authentication() {
        facts.push(("AuthenticationAlgorithm", algorithm.to_string()));
    }
    let cipher = Cipher::of_number(metadata.cipher_number);
    let cipher = cipher.map_or_else(|| metadata.cipher_number.to_string(), |c| c.to_string());
    facts.push(("KeyLength", metadata.key_bits.to_string()));
    facts.push(("EncryptionAlgorithm", cipher));
    facts
}

/// True for algorithms that FreeBSD has removed.
pub(super) fn is_legacy(metadata: &Metadata) -> bool {
    let cipher = metadata.cipher().is_ok_and(Cipher::is_legacy);
    let tags = metadata.authentication();
    cipher || tags.is_ok_and(|tags| tags.is_some_and(Authentication::is_legacy))
}

/// Recognises metadata in the last sector.
pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let sector = u64::from(taster.sectorsize_bytes());
    let size = taster.mediasize_bytes();
    let sectors = size.checked_div(sector).filter(|count| *count > 1);
    let sectors = sectors.ok_or(Miss::Elsewhere)?;
    // A provider that cannot be read is for others to complain about.
    let bytes = taster.sector(sectors - 1).map_err(|_| Miss::Elsewhere)?;
    let metadata = Metadata::decode(&bytes).map_err(|error| match error {
        EliError::Magic { .. } | EliError::Short { .. } => Miss::Elsewhere,
        error => Miss::unusable(error),
    })?;
    // The last sector of a partition may be that of its disk, too.
    if metadata.provider_bytes != size {
        return Err(Miss::Elsewhere);
    }
    metadata
        .layout(size, taster.sectorsize_bytes())
        .map_err(Miss::unusable)?;
    Ok(Plan {
        name: format!("{}{SUFFIX}", taster.name()),
        geom: Arc::new(Locked { metadata }),
        providers: Vec::new(),
    })
}
