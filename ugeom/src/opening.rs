//! How a command opens its target.

use crate::failure;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use std::path::Path;
use std::time::Duration;
use ugeom_classes::eli::KeyOptions;
use ugeom_classes::spec::{self, DeclaredOptions, SETTINGS};
use ugeom_classes::{Target, TargetError, TargetOptions, TargetText, open_target, text_of};
use ugeom_measure::units::{self, SizeUnits, TimeUnit};
use ugeom_stack::{Opened, ProviderView, Stack, StackError, StackKnobs, TasteError, Tree};

/// The target, as every command that works on one takes it.
#[derive(Args)]
pub struct TargetArgs {
    /// A path, `md:64m`, layers joined by `|`, or `disk.img@s1a` for a partition (see ugeom --help)
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath, value_parser = word())]
    pub target: String,

    #[command(flatten)]
    pub opening: OpeningArgs,
}

/// How targets are opened.
#[derive(Args, Clone)]
pub struct OpeningArgs {
    /// Open only the layers in TARGET, without tasting
    #[arg(long, help_heading = "Advanced")]
    no_taste: bool,

    #[command(flatten)]
    set: SetArgs,

    #[command(flatten)]
    keys: KeyArgs,
}

impl OpeningArgs {
    /// The same, as targets are opened with it.
    pub fn options(&self) -> TargetOptions {
        TargetOptions {
            set: self.set.settings(),
            keys: self.keys.options(),
            knobs: StackKnobs {
                taste: !self.no_taste,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        }
    }
}

/// A word of the command line that may name a file, and need not be UTF-8 then.
pub fn word() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(text_of)
}

/// A target, and where in it a transfer begins.
#[derive(Args)]
pub struct TransferArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Start offset: 0, 4k, 1.5g, 8s (sectors of 512 bytes)
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub offset: u64,
}

/// Several targets, for commands that do the same with each.
#[derive(Args)]
pub struct TargetsArgs {
    /// Paths, `md:64m`, layers joined by `|`, or `disk.img@s1a` for a partition (see ugeom --help)
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath, required = true,
          value_parser = word())]
    pub targets: Vec<String>,

    #[command(flatten)]
    pub opening: OpeningArgs,
}

impl TargetsArgs {
    /// The arguments of each target, as if it had been given alone.
    pub fn each(&self) -> impl Iterator<Item = TargetArgs> {
        self.targets.iter().map(|target| TargetArgs {
            target: target.clone(),
            opening: self.opening.clone(),
        })
    }
}

/// How encrypted layers of a target get their passphrases.
#[derive(Args, Clone, Default)]
pub struct KeyArgs {
    /// Read passphrases of encrypted layers from this open descriptor, one per line
    #[arg(long, value_name = "N", help_heading = "Advanced")]
    pub passphrase_fd: Option<u32>,

    /// Time limit for deriving a key from a passphrase [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Advanced")]
    pub max_kdf_time: Option<Duration>,
}

impl KeyArgs {
    /// The same, as targets are opened with it.
    pub fn options(&self) -> KeyOptions {
        KeyOptions {
            passphrase_descriptor: self.passphrase_fd,
            kdf_time_max: self.max_kdf_time,
        }
    }
}

/// Reads a time from an argument: `500ms`, `2s`, `1m`.
pub fn time(text: &str) -> Result<Duration, String> {
    let ns = units::duration_ns(text, TimeUnit::Seconds).map_err(|error| error.with_help())?;
    Ok(Duration::from_nanos(ns))
}

/// [`time`] for a length that cannot be 0.
pub fn time_above_0(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    (!time.is_zero())
        .then_some(time)
        .ok_or_else(|| "write a time above 0".to_owned())
}

/// How the stack of a target works, to measure or to avoid one way of it.
#[derive(Args, Clone, Default)]
pub struct SetArgs {
    // The help is made from the declared settings.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help = set_help(),
          help_heading = "Advanced")]
    settings: Vec<(String, spec::Settings)>,
}

/// A setting with its text, which other processes are given.
///
/// # Errors
/// There is no such key, or the value is none of its values.
pub fn setting(text: &str) -> Result<(String, spec::Settings), String> {
    let settings = spec::Settings::parse(text).map_err(|error| error.in_one_line())?;
    Ok((text.to_owned(), settings))
}

/// The help of `--set`: all settings and their values.
fn set_help() -> String {
    let keys = SETTINGS.docs().into_iter();
    let keys: Vec<String> = keys
        .map(|doc| format!("{}={}", doc.name, doc.value))
        .collect();
    let keys = keys.join(", ");
    format!("Setting of the stack: {keys} (docs/stack-language.md)")
}

impl SetArgs {
    /// All that was set; the later of two that say different things is meant.
    pub fn settings(&self) -> spec::Settings {
        let start = spec::Settings::default();
        self.settings
            .iter()
            .fold(start, |below, (_, one)| one.over(below))
    }

    /// The settings as they were written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().map(|(text, _)| text.as_str())
    }
}

impl TargetArgs {
    /// Opens the target for looking.
    pub fn open(&self) -> Result<Target> {
        open(&self.target, &self.opening.options())
    }

    /// Opens the target; files are opened for writing, too.
    pub fn open_writable(&self) -> Result<Target> {
        let options = TargetOptions {
            writable: true,
            ..self.opening.options()
        };
        open(&self.target, &options)
    }

    /// Whether the target names a provider inside (disk.img@s1) and not a whole disk.
    pub fn is_addressed(&self) -> bool {
        TargetText::parse(&self.target).is_ok_and(|text| text.is_addressed())
    }

    /// Opens the target to change its partition table: refused while another process has it open,
    /// and where the disk ends within a sector, since tables have a copy in the last one.
    pub fn open_for_table(&self) -> Result<Target> {
        let target = self.open_for_change()?;
        let view = top(&target)?;
        let (bytes, sector_bytes) = (view.content_bytes(), u64::from(view.sectorsize_bytes));
        if view.padding_bytes > 0 {
            bail!(
                "{} cannot have its table changed: it has {bytes} bytes, and the last {} make no \
                 whole sector of {sector_bytes} (`truncate --size=%{sector_bytes}` appends zeroes \
                 to a file)",
                view.name,
                bytes % sector_bytes,
            );
        }
        Ok(target)
    }

    /// Opens the target to change anything of it: refused while another process has it open.
    pub fn open_for_change(&self) -> Result<Target> {
        let options = TargetOptions {
            writable: true,
            relayout: true,
            ..self.opening.options()
        };
        open(&self.target, &options)
    }
}

/// Opens a target, and prints unusable damaged metadata on stderr.
pub fn open(text: &str, options: &TargetOptions) -> Result<Target> {
    let target = open_target(text, options).map_err(|error| with_file_hint(text, error))?;
    tell(&target.stack, std::slice::from_ref(&target));
    Ok(target)
}

/// Opens several targets in one stack, each as its options say.
///
/// # Errors
/// As [`open`], for the first that cannot be opened.
pub fn open_together(wanted: &[(&str, TargetOptions)]) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for (text, options) in wanted {
        let opened = match targets.first() {
            None => open_target(text, options),
            Some(first) => TargetText::parse(text)
                .map_err(TargetError::from)
                .and_then(|text| text.open_beside(first, options)),
        };
        let opened = opened.map_err(|error| with_file_hint(text, error));
        targets.push(match opened {
            // The others name what they are about.
            Err(error @ TargetError::Stack(_)) => {
                Err(error).with_context(|| output::printable(text))?
            }
            opened => opened?,
        });
    }
    if let Some(first) = targets.first() {
        tell(&first.stack, &targets);
    }
    Ok(targets)
}

/// Prints warnings about opened targets on stderr.
fn tell(stack: &Stack, targets: &[Target]) {
    let tree = stack.tree();
    for provider in tree.providers() {
        let (size, sector) = (provider.mediasize_bytes, provider.sectorsize_bytes);
        let name = output::printable(&provider.name);
        log::debug!("opened {name}: {size} bytes, {sector}-byte sectors");
    }
    warn_of_damage(&stack.taste_errors());
    for target in targets {
        warn_of_padding(&tree, target);
    }
    warn_of_assumptions(&tree);
}

/// The warnings about a disk's facts that a class assumed.
fn warn_of_assumptions(tree: &Tree) {
    for geom in &tree.geoms {
        if let Some(assumed) = geom.fact("hint") {
            output::warn(&output::printable(&format!(
                "{} on {}: {assumed}",
                geom.class, geom.name
            )));
        }
    }
}

/// Tells how to write the name of a file that is there and reads as something else.
fn with_file_hint(text: &str, error: TargetError) -> TargetError {
    let TargetError::Spec(error) = error else { return error };
    if text.contains(['"', '\\']) || !Path::new(text).exists() {
        return (*error).into();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let written = match text.chars().all(is_word) {
        true => format!("./{text}"),
        false => format!("\"{text}\""),
    };
    let help = format!("the file of this name is written as '{written}'");
    error.with_help(help).into()
}

fn warn_of_damage(errors: &[TasteError]) {
    for error in errors {
        output::warn(&output::printable(&error.to_string()));
    }
}

/// An image whose last sector is not whole: the bytes after its end are zeroes.
fn warn_of_padding(tree: &Tree, target: &Target) {
    let bottom = tree.providers().find(|view| view.id == target.bottom);
    if let Some(view) = bottom.filter(|view| view.padding_bytes > 0) {
        output::warn(&output::printable(&format!(
            "{} has {} bytes, not a multiple of its sector size, {}: the last sector is padded \
             with {} zero bytes",
            view.name,
            view.content_bytes(),
            view.sectorsize_bytes,
            view.padding_bytes
        )));
    }
}

/// Closes the targets that a command has written, and reports lost writes.
///
/// # Errors
/// The command's own, failed writes at the end, or lost data, which comes last.
pub fn close_written<T>(stack: &Stack, opened: Opened, outcome: Result<T>) -> Result<T> {
    let closed = opened.close();
    let outcome = outcome.and_then(|value| {
        closed?;
        Ok(value)
    });
    ended(stack, outcome)
}

/// The end of a command that has written to a stack, whose handles are closed: what has become of
/// it, but for data that is lost.
///
/// # Errors
/// That of the outcome, or [`ugeom_stack::LostAtTheEnd`], which is printed last.
pub fn ended<T>(stack: &Stack, outcome: Result<T>) -> Result<T> {
    let Err(lost) = stack.finish() else {
        return outcome;
    };
    if let Err(error) = outcome {
        output::complain(&failure::text(&error));
    }
    Err(lost.into())
}

/// The provider of a target as it is now.
pub fn top(target: &Target) -> Result<ProviderView, StackError> {
    view(&target.stack, &target.name)
}

fn view(stack: &Stack, name: &str) -> Result<ProviderView, StackError> {
    let tree = stack.tree();
    let known = || {
        tree.providers()
            .map(|provider| provider.name.clone())
            .collect()
    };
    let missing = || StackError::NoProvider {
        name: name.to_owned(),
        known: known(),
    };
    tree.provider(name).cloned().ok_or_else(missing)
}

/// Reads a size in bytes from an argument: `512`, `4k`, `1.5g`, `8s` (sectors of 512 bytes).
pub fn size(text: &str) -> Result<u64, String> {
    units::size_bytes(text, SizeUnits::USUAL).map_err(|error| error.with_help())
}
