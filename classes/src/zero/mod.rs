//! `zero`: a device of 2^60 bytes that reads as zeroes and discards writes.
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
use crate::entry::{Build, ClassEntry, Role};
use crate::set_field;
use crate::spec::OptionDefault::{Depends, Value};
use crate::spec::{LayerArguments, OptionTable, option, values};
use std::sync::Arc;
use ugeom_measure::units;
use ugeom_stack::{Cx, Geom, Next, Plan, ProviderPlan, Request};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "zero",
    class: "ZERO",
    about: "2^60 bytes that read as zeroes; writes are discarded",
    role: Role::Bottom,
    positional: &[],
    options: &OPTIONS,
    build: Build::Bottom(build),
    taste: None,
};

#[derive(Default)]
struct Wanted {
    clear: bool,
    byte: Option<u64>,
}

#[rustfmt::skip]
const OPTIONS: OptionTable<Wanted> = OptionTable(&[
    option("clear", "0|1", Value("1"), "fill the memory of a read; 0 leaves it as it is",
        set_field!(clear = units::truth)),
    option("byte", "0..255", Depends("0"), "the byte that reads are filled with; not with clear=0",
        set_field!(it, text => byte = Some(values::number_in(0..=255, text)?))),
]);

/// The size of the media, bytes (`g_zero_init`: 1152921504606846976).
pub(crate) const MEDIASIZE_BYTES: u64 = 1 << 60;
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

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
) -> Result<Plan, BuildError> {
    let Wanted { clear, byte } = arguments.read(&OPTIONS, Wanted::default())?;
    if !clear && byte.is_some() {
        let message = "with clear=0 no byte is filled in";
        return Err(arguments.invalid("byte", message).into());
    }
    let geom: Arc<dyn Geom> = if clear {
        let byte = byte.unwrap_or(0) as u8;
        Arc::new(Zero { byte })
    } else {
        Arc::new(Untouched)
    };
    let name = context.next_name("zero");
    let config = vec![
        ("clear", u8::from(clear).to_string()),
        ("byte", byte.unwrap_or(0).to_string()),
    ];
    let provider = ProviderPlan {
        name,
        mediasize_bytes: MEDIASIZE_BYTES,
        sectorsize_bytes: SECTORSIZE_BYTES,
        config,
        ..ProviderPlan::default()
    };
    Ok(Plan::of(provider, geom))
}
