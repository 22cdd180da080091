//! `ugeom geli`: encrypted providers, made and changed in the manner of geli(8).

mod attach;
mod backup;
mod change;
mod key_args;
mod list;
mod recover;

use crate::opening;
use crate::output;
use crate::safety;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use std::ops::Range;
use ugeom_classes::eli::admin::EliDisk;
use ugeom_classes::{Target, TargetOptions};
use ugeom_format::content::{Content, ContentUse};
use ugeom_stack::{Channel, Delta, Opened};

/// The name of content that is GEOM's, of which GELI's is encrypted.
const GEOM: &str = "geom";

const LONG_ABOUT: &str = "\
Makes, changes and shows encrypted providers, with the verbs and options of FreeBSD's geli. To \
read and write the data, put the layer eli on the provider: `disk.img | eli:keyfile=k` is a target \
of every command, and `ugeom serve` exports it.

Each change is one durable write of the metadata. The old metadata is saved to a file first, \
except by kill and delkey, which exist to make keys unreadable: they save it only to a file that \
-B names.";

const EXAMPLES: &str = "\
Examples:
  dd if=/dev/random of=geli.key bs=64 count=1
  ugeom geli init -P -K geli.key -s 4096 -B disk.eli disk.img
  ugeom geli dump disk.img
  ugeom geli setkey -n 1 -p -k geli.key -J pass.txt disk.img  # a passphrase
  ugeom serve --rw --nbd unix:/tmp/s \\
      'disk.img | eli:keyfile=geli.key,nopassphrase=1'";

/// Make, change and show encrypted providers, as geli does
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Geli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(visible_alias = "label")]
    Init(change::Init),
    Setkey(change::Setkey),
    Delkey(change::Delkey),
    Kill(change::Kill),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Resize(change::Resize),
    Configure(change::Configure),
    Clear(change::Clear),
    Dump(list::Dump),
    Version(list::Version),
    List(list::List),
    Status(list::Status),
    Recover(recover::Recover),
    Attach(attach::Attach),
    #[command(hide = true)]
    Onetime(attach::Onetime),
    #[command(hide = true, alias = "stop")]
    Detach(attach::Running),
    #[command(hide = true)]
    Suspend(attach::Running),
    #[command(hide = true)]
    Resume(attach::Running),
}

impl Geli {
    pub fn run(&self) -> Result<()> {
        run_each!(
            &self.verb,
            Verb: Init Setkey Delkey Kill Backup Restore Resize Configure Clear Dump Version List
                Status Recover Attach Onetime,
            Verb::Detach(running) => running.detach(),
            Verb::Suspend(running) => running.suspend(),
            Verb::Resume(running) => running.resume()
        )
    }
}

/// `-v`, as of geli.
#[derive(Args)]
struct Verbose {
    /// Print what was done
    #[arg(short = 'v')]
    verbose: bool,
}

impl Verbose {
    /// Prints a line, with `-v`.
    fn say(&self, done: impl FnOnce() -> String) -> Result<()> {
        match self.verbose {
            true => output::print(&format!("{}\n", done())),
            false => Ok(()),
        }
    }
}

/// A provider that is open, with a channel.
struct Ready {
    opened: Opened,
    channel: Channel,
    target: Target,
}

impl Ready {
    fn open(text: &str, delta: Delta) -> Result<Self> {
        let target = open_target(text, delta)?;
        Ok(Self {
            opened: target.open(delta)?,
            channel: target.stack.channel(1)?,
            target,
        })
    }

    /// The last sector, where the metadata goes: a range of bytes.
    fn last_sector(&self) -> Result<Range<u64>> {
        let view = opening::top(&self.target)?;
        let sector_bytes = u64::from(view.sectorsize_bytes.max(1));
        let end = view.mediasize_bytes / sector_bytes * sector_bytes;
        Ok(end.saturating_sub(sector_bytes)..end)
    }

    /// Refuses a provider with something else where the metadata goes.
    fn refuse_last_sector(&self) -> Result<()> {
        let last = self.last_sector()?;
        let found = safety::contents(&self.target, |found| {
            found.usage != ContentUse::Encrypted && found.stands_in(&last)
        })?;
        safety::refuse(&self.target.name, found)
    }

    /// Refuses a provider that carries something else and no metadata.
    fn refuse_others(&mut self) -> Result<()> {
        match self.disk()?.begins_as_metadata() {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => safety::refuse(&self.target.name, self.others()?),
        }
    }

    /// What else stands in the last sector, or owns the whole medium.
    fn others(&self) -> Result<Vec<Content>> {
        let last = self.last_sector()?;
        safety::contents(&self.target, |found| match found.usage {
            ContentUse::Encrypted => found.name != GEOM,
            ContentUse::FileSystem | ContentUse::Volume | ContentUse::Image => true,
            ContentUse::Table | ContentUse::Other => found.stands_in(&last),
        })
    }

    fn disk(&mut self) -> Result<EliDisk<'_>> {
        Ok(EliDisk::new(&mut self.channel, &self.opened)?)
    }
}

/// Opens a target without a provider of it.
fn open_target(text: &str, delta: Delta) -> Result<Target> {
    let options = TargetOptions {
        writable: delta.write > 0,
        ..TargetOptions::default()
    };
    opening::open(text, &options)
}

/// Does something to each of several targets; one that fails does not stop the others.
fn each(targets: &[String], mut with: impl FnMut(&str) -> Result<()>, end: &str) -> Result<()> {
    let mut failed = false;
    for target in targets {
        match with(target) {
            Ok(()) => {}
            // The one error is the command's.
            Err(error) if targets.len() == 1 => return Err(error),
            Err(error) => {
                crate::output::complain(&crate::failure::text(&error));
                failed = true;
            }
        }
    }
    if failed {
        bail!("{end}");
    }
    Ok(())
}
