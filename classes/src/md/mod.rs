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
use crate::registry::{Build, ClassEntry, OptionDoc, Role};
use crate::spec::Options;
use std::sync::Arc;
use ugeom_machine::region::{MAX_LEN_BYTES, Region};
use ugeom_stack::{Cx, Geom, Next, Plan, ProviderPlan, Request};

/// The registry's line.
pub const ENTRY: ClassEntry = ClassEntry {
    name: "md",
    class: "MD",
    about: "a disk in memory, sparse",
    role: Role::Bottom,
    positional: &["size"],
    options: &[
        OptionDoc {
            name: "size",
            value: "SIZE",
            about: "size of the media, a multiple of the sector size, up to 64t",
        },
        OptionDoc {
            name: "sectorsize",
            value: "SIZE",
            about: "size of a sector, a power of two from 512 to 1m [512]",
        },
        OptionDoc {
            name: "name",
            value: "NAME",
            about: "name of the provider [md0, md1, ...]",
        },
    ],
    build: Build::Bottom(build),
    taste: None,
};

/// The sector size that is not asked for, bytes.
const SECTORSIZE_BYTES: u64 = 512;
/// The greatest sector size, bytes: GEOM's `maxphys`, beyond which no request goes.
pub(crate) const SECTORSIZE_BYTES_MAX: u64 = 1 << 20;

/// The geom of a memory disk.
pub struct Md {
    region: Region,
}

impl Md {
    /// A memory disk over a region, whose length is the size of the media.
    #[must_use]
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

fn build(context: &mut BuildContext<'_>, mut options: Options<'_>) -> Result<Plan, BuildError> {
    let sectorsize_bytes = sector_size(&mut options)?;
    let size = options.take_size_in_sectors_of(sectorsize_bytes, "size")?;
    let size_bytes = size.ok_or_else(|| options.missing("size"))?;
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
        return Err(options.invalid("size", problem).into());
    }
    let name = match options.take_str("name") {
        Some("") => return Err(options.invalid("name", "a provider needs a name").into()),
        Some(name) => name.to_owned(),
        None => context.next_name("md"),
    };
    options.finish()?;
    let region = Region::new(size_bytes).map_err(|error| BuildError::System {
        class: "md",
        operation: "mapping memory",
        error,
    })?;
    let provider = ProviderPlan {
        name: name.clone(),
        mediasize_bytes: size_bytes,
        sectorsize_bytes: sectorsize_bytes as u32,
        config: vec![
            ("length".into(), size_bytes.to_string()),
            ("access".into(), "read-write".into()),
            ("type".into(), "malloc".into()),
        ],
        ..ProviderPlan::default()
    };
    Ok(Plan {
        name,
        geom: Arc::new(Md::new(region)),
        providers: vec![provider],
    })
}

/// Reads the option `sectorsize` of a class that brings a device into being.
pub(crate) fn sector_size(options: &mut Options<'_>) -> Result<u64, BuildError> {
    let size = options.take_size("sectorsize")?.unwrap_or(SECTORSIZE_BYTES);
    if !size.is_power_of_two() || !(SECTORSIZE_BYTES..=SECTORSIZE_BYTES_MAX).contains(&size) {
        let message = "a sector size is a power of two from 512 to 1m";
        return Err(options.invalid("sectorsize", message).into());
    }
    Ok(size)
}
