//! `ugeom write`: bytes from stdin, to a provider.

use crate::failure::Interrupted;
use crate::opening::{self, TransferArgs};
use crate::output;
use crate::safety;
use crate::transfer::input::Input;
use crate::transfer::{self, write::End};
use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;
use std::ops::Range;
use ugeom_machine::interrupt;
use ugeom_measure::units::grouped;
use ugeom_stack::Delta;

const LONG_ABOUT: &str = "\
Writes bytes from stdin to a provider, and flushes them. Offset and length need not be multiples \
of the sector size: the other bytes of a sector stay as they are.

ugeom refuses a disk or image that is mounted or attached to a loop device and, without --destroy, \
a provider with a partition table or a file system; it names what it found. An addressed \
partition (disk.img@s1) without known content needs no option.

Without --length all of stdin is written, which must fit before the end of the media; with it \
exactly that many bytes. A file on stdin that is too long or too short is refused before the first \
byte is written. Ctrl-C flushes, reports the number of bytes written, and ends with exit code 130. \
Images are locked while they are written. Holes of a file on stdin become holes.";

const EXAMPLES: &str = "\
Examples:
  ugeom write disk.img@s1a < root.img             # copy a partition in
  printf x | ugeom write disk.img --offset 513    # change one byte
  ugeom write --destroy disk.img < /dev/zero --length 1m  # wipe the first MiB";

/// Write bytes from stdin to a provider
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Write {
    #[command(flatten)]
    to: TransferArgs,

    /// Exact number of bytes to write [default: all of stdin]
    #[arg(long, value_name = "SIZE", value_parser = opening::size)]
    length: Option<u64>,

    /// Overwrite a target with a partition table or a file system
    #[arg(long)]
    destroy: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    provider: &'a str,
    offset_bytes: u64,
    written_bytes: u64,
}

impl Write {
    pub fn run(&self) -> Result<()> {
        let target = if self.to.target.is_addressed() {
            self.to.target.open_writable()?
        } else {
            self.to.target.open_for_change()?
        };
        let provider = opening::top(&target)?;
        let range = transfer::range(&provider, self.to.offset, self.length)?;
        if !self.destroy {
            safety::refuse_content(&target)?;
        }
        let mut input = Input::new()?;
        refuse_misfit(&provider.name, &range, self.length, input.bytes_left())?;
        let opened = target.open(Delta::READ_WRITE)?;
        let channel = target.stack.channel(transfer::write::CHANNEL_DEPTH)?;
        let end = match self.length {
            Some(_) => End::AtTheEnd,
            None => End::Anywhere,
        };
        let written = transfer::write::copy(&opened, channel, range, end, &mut input);
        let written = written.map_err(|error| match interrupt::is_asked() {
            true => anyhow!(Interrupted(format!("interrupted: {error:#}"))),
            false => error,
        });
        let written = written.and_then(|so_far| {
            if !input.interrupted() {
                return Ok(so_far);
            }
            let text = format!(
                "interrupted: {} bytes from offset {} were written",
                grouped(so_far),
                grouped(self.to.offset)
            );
            Err(Interrupted(text).into())
        });
        let written = opening::close_written(&target.stack, opened, written)?;
        if self.json {
            output::print_json(&Done {
                provider: &provider.name,
                offset_bytes: self.to.offset,
                written_bytes: written,
            })?;
        }
        Ok(())
    }
}

/// Refuses a file on stdin that does not fit, before anything is written.
fn refuse_misfit(
    provider: &str,
    range: &Range<u64>,
    length: Option<u64>,
    bytes_left: Option<u64>,
) -> Result<()> {
    let room = range.end - range.start;
    let text = match (bytes_left, length) {
        (Some(left), None) if left > room => format!(
            "the input has {} bytes, but only {} are left in {provider} from offset {} on; \
             nothing was written",
            grouped(left),
            grouped(room),
            grouped(range.start)
        ),
        (Some(left), Some(length)) if left < length => format!(
            "the input has {} of {} bytes; nothing was written",
            grouped(left),
            grouped(length)
        ),
        _ => return Ok(()),
    };
    Err(anyhow!(text))
}
