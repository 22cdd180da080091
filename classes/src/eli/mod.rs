//! `eli`: FreeBSD's encrypted providers (GELI), read and written.
//!
//! ```text
//!          caller                    caller                      caller
//!            |  READ                   |  WRITE                    |  READ, with tags
//!        disk.img.eli  done: decrypt   |  start: encrypt into      |  start: READ of the sectors
//!            |   in the caller's       |    a buffer of its own    |    below into a buffer;
//!            |   memory                |                           |  done: check, then decrypt
//!         disk.img                  disk.img                    disk.img
//!
//!   disk.img       [ ciphertext ................................ | metadata ]
//!   disk.img.eli   [ plaintext  ................................ ]
//! ```
//!
//! A geom of it is made with a key (`| eli:keyfile=k`); tasting only names the metadata. The key
//! comes from the metadata in the last sector ([`keys`]), sectors are worked on by [`crypt`], and
//! [`admin`] changes the metadata as geli(8) does. FreeBSD's counterpart is `sys/geom/eli`.

pub mod admin;
mod cipher;
mod cores;
pub mod crypt;
mod data_keys;
pub mod error;
mod hmac_sha512;
pub mod kdf;
pub mod keys;
mod open;
mod options;
pub mod passphrase;
mod pending;
pub mod random;
mod sealed;
mod start;
mod tag;
mod taste;
#[cfg(test)]
mod tests;

pub use crate::build::KeyOptions;
use crate::build::{BuildContext, BuildError};
use crate::entry::{Build, ClassEntry, Role};
use crate::physpath::{self, PHYSPATH};
use crate::spec::LayerArguments;
use crypt::Crypt;
pub use open::read_backup;
use options::Settings;
use pending::PendingBuffers;
use std::sync::Arc;
use ugeom_format::eli::{EliFlags, Metadata};
use ugeom_machine::secret;
use ugeom_stack::{
    AccessChange, AttributeValue, Cx, Delta, Errno, Fact, Geom, Next, Plan, ProviderPlan,
    ProviderView, Request,
};

/// GEOM's name of the class.
pub const NAME: &str = "ELI";
/// The suffix of a decrypted provider's name.
pub(crate) const SUFFIX: &str = ".eli";

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "eli",
    class: NAME,
    about: "encryption and authentication, as FreeBSD's geli has it",
    role: Role::Layer,
    positional: &[],
    options: &options::OPTIONS,
    build: Build::Layer(build),
    taste: Some(taste::taste),
};

/// The suffix that GELI appends to it.
const PHYSPATH_SUFFIX: &str = "/eli";

/// The geom of an opened provider.
pub struct Eli {
    name: String,
    metadata: Metadata,
    used_slot: Option<usize>,
    crypt: Crypt,
    tagged: bool,
    no_delete: bool,
    read_only: bool,
    pending: PendingBuffers,
    below_bytes: u64,
    /// The physical path, where the provider below has one.
    physpath: Option<String>,
}

impl Geom for Eli {
    #[inline]
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        start::start(self, request, cx)
    }

    fn attribute(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        physpath::answer(self.physpath.as_ref(), request, |it| self.start(it, cx))
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::done(self, request)
    }

    fn widest_fan_out(&self) -> usize {
        1
    }

    /// While it is open, no other consumer may write to the provider below.
    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        if self.read_only && change.delta.write > 0 {
            return Err(Errno::ROFS);
        }
        Ok(change.exclusive_while_open())
    }

    /// It keeps its size, as GELI does without the flag AUTORESIZE: the metadata lies where the
    /// provider below ended. One that has shrunk lacks data.
    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        let kept = self.crypt.layout().media_bytes;
        (mediasize_bytes >= self.below_bytes).then(|| vec![(kept, None)])
    }

    fn config(&self) -> Vec<Fact> {
        let (total, made) = self.crypt.key_counts();
        let mut facts = vec![
            ("KeysTotal", total.to_string()),
            ("KeysAllocated", made.to_string()),
        ];
        let flags = match self.read_only {
            true => self.metadata.flags.with(EliFlags::RO, true),
            false => self.metadata.flags,
        };
        facts.push(("Flags", flags.to_string()));
        if let Some(slot) = self.used_slot {
            facts.push(("UsedKey", slot.to_string()));
        }
        facts.extend(taste::algorithms(&self.metadata));
        facts.push(("State", "ACTIVE".to_owned()));
        facts
    }
}

impl Drop for Eli {
    fn drop(&mut self) {
        // Keys wipe themselves; this is for what the last calls left on the stack.
        secret::scrub_stack();
    }
}

/// The path of the provider below with `/eli` appended, as `g_eli_getattr_done` does.
fn physpath_of(context: &BuildContext<'_>, below: &ProviderView) -> Option<String> {
    let opened = context.stack().open(below.id, Delta::READ).ok()?;
    let mut channel = context.stack().channel(1).ok()?;
    match channel.attribute(&opened, PHYSPATH).ok()?? {
        AttributeValue::Text(path) if !path.is_empty() => Some(format!("{path}{PHYSPATH_SUFFIX}")),
        _ => None,
    }
}

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let settings = Settings::read(&arguments)?;
    let opened = open::open(context, &settings, below)?;
    let name = format!("{}{SUFFIX}", below.name);
    let layout = *opened.crypt.layout();
    let flags = opened.metadata.flags;
    let legacy = taste::is_legacy(&opened.metadata);
    let geom = Eli {
        name: name.clone(),
        tagged: layout.sub_sectors.is_some(),
        no_delete: flags.contains(EliFlags::NODELETE),
        read_only: settings.read_only
            || flags.contains(EliFlags::RO)
            || (legacy && !settings.legacy),
        metadata: opened.metadata,
        used_slot: opened.slot,
        crypt: opened.crypt,
        pending: PendingBuffers::default(),
        below_bytes: below.mediasize_bytes,
        physpath: physpath_of(context, below),
    };
    let provider = ProviderPlan {
        name,
        mediasize_bytes: layout.media_bytes,
        sectorsize_bytes: layout.sector_bytes,
        stripesize_bytes: if geom.tagged {
            0
        } else {
            below.stripesize_bytes
        },
        stripeoffset_bytes: if geom.tagged {
            0
        } else {
            below.stripeoffset_bytes
        },
        ..ProviderPlan::default()
    };
    Ok(Plan::of(provider, Arc::new(geom)))
}
