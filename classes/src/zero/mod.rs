//! `zero`: a device of 2^60 bytes that reads as zeroes and forgets what is written to it.
//!
//! ```text
//!            caller
//!              |  READ
//!            zero0        start: fill the memory with one byte, or (clear=0) do not touch it
//! ```
//!
//! GEOM's counterpart is `gzero` (`sys/geom/zero/g_zero.c`), which was made to measure GEOM
//! itself: with `clear=0` nothing on the way touches data.

mod start;
#[cfg(test)]
mod tests;

use crate::build::{BuildContext, BuildError};
use crate::registry::{Build, ClassEntry, OptionDoc, Role};
use crate::spec::Options;
use std::sync::Arc;
use ugeom_stack::{Cx, Geom, Next, Plan, ProviderPlan, Request};

/// The registry's line.
pub const ENTRY: ClassEntry = ClassEntry {
    name: "zero",
    class: "ZERO",
    about: "2^60 bytes that read as zeroes; writes are forgotten",
    role: Role::Bottom,
    positional: &[],
    options: &[
        OptionDoc {
            name: "clear",
            value: "0|1",
            about: "fill the memory of a read; with 0 it stays as it is [1]",
        },
        OptionDoc {
            name: "byte",
            value: "0..255",
            about: "the byte that reads are filled with [0]",
        },
    ],
    build: Build::Bottom(build),
    taste: None,
};

/// The size of the media, bytes (`g_zero_init`: 1152921504606846976).
pub const MEDIASIZE_BYTES: u64 = 1 << 60;
/// The size of a sector, bytes.
const SECTORSIZE_BYTES: u32 = 512;

/// The geom that fills reads with one byte.
pub struct Zero {
    byte: u8,
}

impl Geom for Zero {
    #[inline]
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::filled(self.byte, request)
    }
}

/// The geom that touches no data (`clear=0`).
pub struct Untouched;

impl Geom for Untouched {
    #[inline]
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::untouched(request)
    }
}

fn build(context: &mut BuildContext<'_>, mut options: Options<'_>) -> Result<Plan, BuildError> {
    let clear = options.take_bool("clear")?.unwrap_or(true);
    let byte = options.take_u64_in(0..=255, "byte")?;
    if !clear && byte.is_some() {
        return Err(options
            .invalid("byte", "with clear=0 no byte is filled in")
            .into());
    }
    options.finish()?;
    let geom: Arc<dyn Geom> = if clear {
        let byte = byte.unwrap_or(0) as u8;
        Arc::new(Zero { byte })
    } else {
        Arc::new(Untouched)
    };
    let name = context.next_name("zero");
    let config = vec![
        ("clear".into(), u8::from(clear).to_string()),
        ("byte".into(), byte.unwrap_or(0).to_string()),
    ];
    let provider = ProviderPlan {
        name: name.clone(),
        mediasize_bytes: MEDIASIZE_BYTES,
        sectorsize_bytes: SECTORSIZE_BYTES,
        config,
        ..ProviderPlan::default()
    };
    Ok(Plan {
        name,
        geom,
        providers: vec![provider],
    })
}
