//! The verbs of a running topology: attach, onetime, detach, suspend, resume. Each names the target
//! that does the same; `attach -C` tries a key.

use super::key_args::{OldKeyArgs, limited};
use super::{Ready, each};
use crate::output;
use anyhow::{Result, bail};
use clap::Args;
use std::cell::OnceCell;
use ugeom_classes::eli::admin::{AdminError, EliDisk};
use ugeom_classes::eli::error::EliKeyError;
use ugeom_classes::eli::keys::{KeyComponents, open_slot};
use ugeom_format::eli::SLOTS;
use ugeom_stack::Delta;

/// The last message of a command when one of several targets failed.
const ONE_FAILED: &str = "There was an error with at least one provider.";

/// A verb that ugeom cannot do, and the target that does the same.
fn refuse(verb: &str, instead: &str) -> Result<()> {
    bail!("geli {verb} needs a running topology, which ugeom does not have; {instead}")
}

/// The server that has the layer on a provider.
fn server(target: &str, writable: bool, options: &[String]) -> String {
    let rw = if writable { "--rw " } else { "" };
    let options = match options {
        [] => String::new(),
        options => format!(":{}", options.join(",")),
    };
    format!(
        "use the layer in a target: `ugeom serve {rw}--nbd unix:/tmp/s '{target} | eli{options}'`"
    )
}

const ATTACH_ABOUT: &str = "\
Tries a key (-C): the exit code is 0 if it opens a slot. Nothing is written.

Without -C it fails and prints the target that decrypts the provider, because ugeom has no running \
topology to attach it to: `disk.img | eli`.";

const ATTACH_EXAMPLES: &str = "\
Examples:
  ugeom geli attach -C -p -k geli.key disk.img
  ugeom geli attach -C -v -j pass.txt disk.img@p2 other.img@p2";

/// Try a key (-C)
#[derive(Args)]
#[command(long_about = ATTACH_ABOUT, after_help = ATTACH_EXAMPLES)]
pub struct Attach {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Try the key only
    #[arg(short = 'C')]
    dry_run: bool,

    /// Detach on last close
    #[arg(short = 'd')]
    detach: bool,

    /// Try this slot only, 0 or 1 [default: both]
    #[arg(short = 'n', value_name = "KEYNO")]
    slot: Option<usize>,

    /// Read-only
    #[arg(short = 'r')]
    read_only: bool,

    #[command(flatten)]
    key: OldKeyArgs,

    /// Print which slot the key opens
    #[arg(short = 'v')]
    verbose: bool,
}

impl Attach {
    pub fn run(&self) -> Result<()> {
        if self.detach && self.read_only {
            bail!("Options -d and -r are mutually exclusive.");
        }
        if self.slot.is_some_and(|slot| slot >= SLOTS) {
            bail!("Invalid 'keyno' argument.");
        }
        if !self.dry_run {
            let mut options = self.key.layer_options();
            options.extend(self.slot.map(|slot| format!("slot={slot}")));
            if self.read_only {
                options.push("readonly=1".to_owned());
            }
            let target = self.targets.first().map_or("disk.img", String::as_str);
            return refuse("attach", &server(target, !self.read_only, &options));
        }
        // One passphrase and one reading of stdin for all.
        let components = OnceCell::new();
        let one = |text: &str| {
            let mut ready = Ready::open(text, Delta::READ)?;
            let slot = self.open(&mut ready.disk()?, &components)?;
            match self.verbose {
                true => output::print(&format!("The key opens slot {slot} of {text}.\n")),
                false => Ok(()),
            }
        };
        each(&self.targets, one, ONE_FAILED)
    }

    fn open(&self, disk: &mut EliDisk<'_>, made: &OnceCell<KeyComponents>) -> Result<usize> {
        let metadata = disk.metadata()?;
        let layout = metadata.layout(disk.media_bytes, disk.sector_bytes);
        if metadata.provider_bytes != disk.media_bytes {
            bail!("Provider size mismatch.");
        }
        layout.map_err(|error| AdminError::Refused(error.to_string()))?;
        self.key.check(metadata.iterations)?;
        if made.get().is_none() {
            let _ = made.set(self.key.components(metadata.iterations)?);
        }
        let Some(components) = made.get() else {
            bail!("No key components given.");
        };
        limited(&self.key.limit, |limit| {
            let (salt, iterations) = (&metadata.salt, metadata.iterations);
            let user = components.user_key(salt, iterations, limit);
            let opened = user.and_then(|user| open_slot(&metadata, &user, self.slot));
            match opened {
                Ok((slot, _)) => Ok(slot),
                Err(EliKeyError::WrongKey) => bail!("Wrong key for {}.", disk.name),
                Err(EliKeyError::NoKeys) => bail!("No valid keys on {}.", disk.name),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// A provider with a new key that is stored nowhere
#[derive(Args)]
pub struct Onetime {
    /// Providers to encrypt
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Authentication algorithm
    #[arg(short = 'a', value_name = "AALGO")]
    authentication: Option<String>,

    /// Detach on last close
    #[arg(short = 'd')]
    _detach: bool,

    /// Encryption algorithm
    #[arg(short = 'e', value_name = "EALGO")]
    cipher: Option<String>,

    /// Key length in bits
    #[arg(short = 'l', value_name = "KEYLEN")]
    key_bits: Option<u16>,

    /// Do not follow a new size of the provider
    #[arg(short = 'R')]
    _no_autoresize: bool,

    /// Sector size, bytes
    #[arg(short = 's', value_name = "SECTORSIZE")]
    sector_size: Option<String>,

    /// Do not pass DELETE on
    #[arg(short = 'T')]
    no_delete: bool,

    /// Print what was done
    #[arg(short = 'v', id = "verbose")]
    _verbose: bool,
}

impl Onetime {
    pub fn run(&self) -> Result<()> {
        let given = [
            ("ealgo", self.cipher.clone()),
            ("keylen", self.key_bits.map(|bits| bits.to_string())),
            ("aalgo", self.authentication.clone()),
            ("sectorsize", self.sector_size.clone()),
            ("nodelete", self.no_delete.then(|| "1".to_owned())),
        ];
        let mut options = vec!["onetime=1".to_owned()];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
        options.extend(given);
        let target = self.targets.first().map_or("disk.img", String::as_str);
        refuse("onetime", &server(target, true, &options))
    }
}

/// What ends a provider that is attached, or stops it for a while
#[derive(Args)]
pub struct Running {
    /// What geli would be given
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
}

impl Running {
    fn target(&self) -> &str {
        self.arguments.last().map_or("disk.img", String::as_str)
    }

    pub fn detach(&self) -> Result<()> {
        let instead = format!("stop the `ugeom serve` that uses {}", self.target());
        refuse("detach", &instead)
    }

    pub fn suspend(&self) -> Result<()> {
        let instead = format!(
            "stop the `ugeom serve` that uses {}, which wipes its keys",
            self.target()
        );
        refuse("suspend", &instead)
    }

    pub fn resume(&self) -> Result<()> {
        refuse("resume", &server(self.target(), true, &[]))
    }
}
