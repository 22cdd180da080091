//! Keyfiles, passfiles and passphrases, as the options of geli(8) name them.

use crate::failure::Usage;
use crate::opening::KeyArgs;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use ugeom_classes::eli::kdf::{KdfLimit, TIME_MAX};
use ugeom_classes::eli::keys::{KeyComponents, Passphrase};
use ugeom_classes::eli::passphrase;
use ugeom_machine::interrupt;
use ugeom_machine::secret::{self, Secret};

/// Runs something that derives keys: within the time that the user allows, and until Ctrl-C.
pub fn limited<R>(args: &KeyArgs, work: impl FnOnce(&KdfLimit<'_>) -> Result<R>) -> Result<R> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    let limit = KdfLimit {
        time_max: args.max_kdf_time.unwrap_or(TIME_MAX),
        is_cancelled: &|| cancelled.load(Ordering::Relaxed),
    };
    work(&limit)
}

/// The key that is there: `-p`, `-j`, `-k`.
#[derive(Args)]
pub struct OldKeyArgs {
    /// Passfile of the key, up to its first newline; - is stdin; several are joined
    #[arg(short = 'j', value_name = "PASSFILE", value_hint = ValueHint::FilePath)]
    passfiles: Vec<String>,

    /// Keyfile of the key; - is stdin; several are joined
    #[arg(short = 'k', value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    keyfiles: Vec<String>,

    /// The key has no passphrase
    #[arg(short = 'p')]
    no_passphrase: bool,

    #[command(flatten)]
    pub limit: KeyArgs,
}

impl OldKeyArgs {
    /// True when nothing was given.
    pub fn is_empty(&self) -> bool {
        self.passfiles.is_empty() && self.keyfiles.is_empty() && !self.no_passphrase
    }

    /// A provider without a passphrase takes a key without one.
    pub fn check(&self, iterations: i32) -> Result<()> {
        if !self.no_passphrase && iterations == -1 {
            bail!("Missing -p flag.");
        }
        Ok(())
    }

    /// The options of the layer `eli` that name the same key.
    pub fn layer_options(&self) -> Vec<String> {
        let files = |name: &str, paths: &[String]| match paths {
            [] => None,
            paths => Some(format!("{name}={}", paths.join(":"))),
        };
        let mut options = Vec::new();
        options.extend(files("keyfile", &self.keyfiles));
        options.extend(files("passfile", &self.passfiles));
        if self.no_passphrase {
            options.push("nopassphrase=1".to_owned());
        }
        options
    }

    /// The components, for a provider with that number of iterations.
    pub fn components(&self, iterations: i32) -> Result<KeyComponents> {
        self.check(iterations)?;
        let source = Source {
            passfiles: &self.passfiles,
            keyfiles: &self.keyfiles,
            no_passphrase: self.no_passphrase,
            letters: ('j', 'p'),
        };
        source.components(|| match self.limit.passphrase_fd {
            Some(number) => Ok(passphrase::from_descriptor(number)?),
            None => Ok(passphrase::ask("Enter passphrase: ", "the key")?),
        })
    }
}

/// The key that is to be: `-P`, `-J`, `-K`.
#[derive(Args)]
pub struct NewKeyArgs {
    /// Passfile of the new key, up to its first newline; - is stdin; several are joined
    #[arg(short = 'J', value_name = "NEWPASSFILE", value_hint = ValueHint::FilePath)]
    new_passfiles: Vec<String>,

    /// Keyfile of the new key; - is stdin; several are joined
    #[arg(short = 'K', value_name = "NEWKEYFILE", value_hint = ValueHint::FilePath)]
    new_keyfiles: Vec<String>,

    /// The new key has no passphrase
    #[arg(short = 'P')]
    no_new_passphrase: bool,

    /// Rounds of PBKDF2 for the passphrase; 0 for a salted one [default: what takes 2 s]
    #[arg(short = 'i', value_name = "ITERATIONS", allow_negative_numbers = true)]
    iterations: Option<i32>,
}

impl NewKeyArgs {
    /// The number of iterations that was asked for.
    pub fn iterations(&self) -> Result<Option<i32>> {
        match self.iterations {
            Some(-1) | None => Ok(None),
            Some(_) if self.no_new_passphrase => {
                bail!("Options -i and -P are mutually exclusive.")
            }
            Some(iterations) if iterations < 0 => {
                Err(Usage("the number of iterations is -1, 0, or above".to_owned()).into())
            }
            Some(iterations) => Ok(Some(iterations)),
        }
    }

    /// The components of the new key.
    pub fn components(&self) -> Result<KeyComponents> {
        let source = Source {
            passfiles: &self.new_passfiles,
            keyfiles: &self.new_keyfiles,
            no_passphrase: self.no_new_passphrase,
            letters: ('J', 'P'),
        };
        source.components(|| {
            loop {
                let first = passphrase::ask("Enter new passphrase: ", "the new key")?;
                let again = passphrase::ask("Reenter new passphrase: ", "the new key")?;
                if secret::equal(first.bytes(), again.bytes()) {
                    return Ok(first);
                }
                eprintln!("They didn't match.");
            }
        })
    }
}

struct Source<'a> {
    passfiles: &'a [String],
    keyfiles: &'a [String],
    no_passphrase: bool,
    /// Those of the passfile and of "no passphrase".
    letters: (char, char),
}

impl Source<'_> {
    fn components(
        &self,
        ask: impl FnOnce() -> Result<Secret<Passphrase>>,
    ) -> Result<KeyComponents> {
        if let Err(error) = secret::forbid_dumps() {
            log::warn!("core dumps cannot be disabled and may contain keys: {error}");
        }
        let mut components = KeyComponents::new()?;
        for path in self.keyfiles {
            let read = match path.as_str() {
                "-" => components.add_open_keyfile(io::stdin().lock()),
                path => {
                    let file = File::open(path);
                    let file = file.with_context(|| format!("Cannot open keyfile {path}"))?;
                    components.add_open_keyfile(file)
                }
            };
            read.with_context(|| format!("Cannot read keyfile {path}"))?;
        }
        let (file, none) = self.letters;
        if self.no_passphrase {
            if !self.passfiles.is_empty() {
                bail!("Options -{file} and -{none} are mutually exclusive.");
            }
            if self.keyfiles.is_empty() {
                bail!("No key components given.");
            }
            return Ok(components);
        }
        if self.passfiles.is_empty() {
            components.set_passphrase(ask()?);
            return Ok(components);
        }
        let mut passphrase = passphrase::empty()?;
        for path in self.passfiles {
            let what = format!("passfile {path}");
            match path.as_str() {
                "-" => passphrase::add_line(&mut passphrase, io::stdin().lock(), &what)?,
                path => {
                    let file = File::open(path);
                    let file = file.with_context(|| format!("Cannot open passfile {path}"))?;
                    passphrase::add_line(&mut passphrase, file, &what)?;
                }
            }
        }
        components.set_passphrase(passphrase);
        Ok(components)
    }
}
