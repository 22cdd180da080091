//! `md`: a disk in memory, sparse, of any size up to 64 TiB.
//!
//! ```text
//!            caller
//!              |  READ 512 at 4096
//!            md0                       start: Region::read(4096, piece) for each piece
//!              |
//!   Region   [....|data|......|data|]  granules of 4 KiB; what was never written reads as zero
//! ```
//!
//! A read and a write copy and are done, in the thread that asked; nothing is locked. DELETE and
//! ZERO give whole granules back to the system. GEOM's counterpart is `md(4)` of type `malloc`,
//! whose facts (unit, type, access, length) it shows.

mod start;
#[cfg(test)]
mod tests;

use crate::build::{BuildContext, BuildError};
use crate::entry::{Build, ClassEntry, Role};
use crate::set_field;
use crate::spec::OptionDefault::{Depends, Required, Value};
use crate::spec::{LayerArguments, OptionTable, option, values};
use std::sync::Arc;
use ugeom_machine::region::{MAX_LEN_BYTES, Region};
use ugeom_stack::{Cx, Geom, Next, Plan, ProviderPlan, Request};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "md",
    class: "MD",
    about: "a disk in memory, sparse",
    role: Role::Bottom,
    positional: &["size"],
    options: &OPTIONS,
    build: Build::Bottom(build),
    taste: None,
};

#[derive(Default)]
struct Wanted {
    sector_bytes: u64,
    size_bytes: u64,
    name: Option<String>,
}

/// The size is read after the sector size, in whose sectors it may be given.
#[rustfmt::skip]
const OPTIONS: OptionTable<Wanted> = OptionTable(&[
    option("sectorsize", "SIZE", Value("512"), "size of a sector, a power of two from 512 to 1m",
        set_field!(sector_bytes = values::sector_size)),
    option("size", "SIZE", Required,
        "size of the media, a multiple of the sector size, at most 64t",
        set_field!(it, text => size_bytes = values::size_in_sectors_of(it.sector_bytes, text)?)),
    option("name", "NAME", Depends("md0, md1, ..."), "name of the provider",
        set_field!(name = values::provider_name)),
]);

/// The geom of a memory disk.
pub struct Md {
    region: Region,
}

impl Md {
    /// A memory disk over a region, whose length is the size of the media.
    pub const fn new(region: Region) -> Self {
        Self { region }
    }
}

impl Geom for Md {
    #[inline]
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::start(&self.region, request)
    }
}

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
) -> Result<Plan, BuildError> {
    let wanted = arguments.read(&OPTIONS, Wanted::default())?;
    let (size_bytes, sectorsize_bytes) = (wanted.size_bytes, wanted.sector_bytes);
    let problem = if size_bytes == 0 {
        Some("a disk needs at least one sector".to_owned())
    } else if size_bytes > MAX_LEN_BYTES {
        Some(format!("md holds at most 64t ({MAX_LEN_BYTES} bytes)"))
    } else if !size_bytes.is_multiple_of(sectorsize_bytes) {
        Some(format!(
            "{size_bytes} bytes are no whole number of {sectorsize_bytes}-byte sectors"
        ))
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(arguments.invalid("size", problem).into());
    }
    let name = wanted.name.unwrap_or_else(|| context.next_name("md"));
    let region = Region::new(size_bytes).map_err(BuildError::system("md", "mapping memory"))?;
    let provider = ProviderPlan {
        name,
        mediasize_bytes: size_bytes,
        sectorsize_bytes: sectorsize_bytes as u32,
        config: vec![
            ("length", size_bytes.to_string()),
            ("access", "read-write".into()),
            ("type", "malloc".into()),
        ],
        ..ProviderPlan::default()
    };
    Ok(Plan::of(provider, Arc::new(Md::new(region))))
}
