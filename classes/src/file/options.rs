//! The options of `file` and their checks.

use crate::image::{Backing, ImageFormat};
use crate::set_field;
use crate::spec::OptionDefault::{Absent, Depends, Required, Value};
use crate::spec::values::{choice, number_in, sector_size};
use crate::spec::{LayerArguments, OptionTable, SpecError, ValueError, option};
use ugeom_engine::{Choice, GuasiOptions};
use ugeom_measure::units::truth;

/// The options of the class.
#[rustfmt::skip]
pub(super) const OPTIONS: OptionTable<Settings> = OptionTable(&[
    option("path", "PATH", Required, "the image or block device", set_field!(path = path)),
    option("engine", "auto|io_uring|guasi|libaio|sync|seek|splice|mmap|simulated", Value("auto"),
        "I/O engine; auto: io_uring if the kernel allows it, else guasi",
        set_field!(engine = engine)),
    option("workers", "MIN..MAX|MAX", Depends("1..256"), "threads of engine=guasi",
        set_field!(it, text => guasi.workers = Some(text.parse()?))),
    option("backend", "workers|ring|auto", Depends("workers"),
        "backend of engine=guasi: threads or io_uring",
        set_field!(it, text => guasi.backend = text.parse()?)),
    option("direct", "0|1", Depends("the command's, else 0"), "direct I/O (O_DIRECT), not buffered",
        set_field!(direct = truth)),
    option("sectorsize", "SIZE", Depends("512, or the block device's"),
        "size of a sector of an image, a power of two from 512 to 1m",
        set_field!(it, text => sector_bytes = Some(sector_size(text)? as u32))),
    option("shared", "0|1", Value("0"), "open a block device or an image that is in use, read-only",
        set_field!(shared = truth)),
    option("format",
        "auto|raw|qcow2|vmdk|vdi|vhd|vhdx|dmg|cloop|gzip|xz|zstd|qed|qcow|parallels|bochs",
        Value("auto"),
        "format of the file; auto: by its signature, raw: its bytes are the disk",
        set_field!(format = format)),
    option("backing", "near|any", Value("near"),
        "allowed backing files (qcow2) and parents (vmdk): in its directory or below, or any file",
        set_field!(backing = backing)),
    option("fwsectors", "N", Absent, "sectors per track, as firmware reports them (mdconfig -x)",
        set_field!(it, text => fwsectors = number_in(0..=255, text)?)),
    option("fwheads", "N", Absent, "heads, as firmware reports them (mdconfig -y)",
        set_field!(it, text => fwheads = number_in(0..=65_535, text)?)),
]);

/// The user's options of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The format follows from the file's signature.
    #[default]
    Auto,
    /// Its bytes are those of the disk.
    Raw,
    Image(ImageFormat),
}

/// The values of the options.
#[derive(Default)]
pub(super) struct Settings {
    pub path: String,
    pub engine: Choice,
    pub guasi: GuasiOptions,
    /// As the command says unless set.
    pub direct: Option<bool>,
    pub sector_bytes: Option<u32>,
    pub shared: bool,
    pub format: Wanted,
    pub backing: Backing,
    pub fwsectors: u64,
    pub fwheads: u64,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(arguments: &LayerArguments<'_>) -> Result<Self, SpecError> {
        let settings = arguments.read(&OPTIONS, Self::default())?;
        let of_guasi = ["workers", "backend"];
        let given = of_guasi.into_iter().find(|key| arguments.is_given(key));
        match given {
            Some(key) if !matches!(settings.engine, Choice::Guasi | Choice::Auto) => {
                Err(arguments.invalid(key, format!("{key} is for engine=guasi")))
            }
            _ => Ok(settings),
        }
    }
}

fn path(text: &str) -> Result<String, ValueError> {
    if text.is_empty() {
        return Err(ValueError::new("a path is needed"));
    }
    Ok(text.to_owned())
}

fn format(text: &str) -> Result<Wanted, ValueError> {
    let known = [("auto", Wanted::Auto), ("raw", Wanted::Raw)];
    let images = ImageFormat::ALL.map(|format| (format.name(), Wanted::Image(format)));
    let all: Vec<_> = known.into_iter().chain(images).collect();
    choice(&all, text)
}

fn backing(text: &str) -> Result<Backing, ValueError> {
    choice(&[("near", Backing::Near), ("any", Backing::Any)], text)
}

fn engine(text: &str) -> Result<Choice, ValueError> {
    choice(&Choice::ALL.map(|choice| (choice.name(), choice)), text)
}
