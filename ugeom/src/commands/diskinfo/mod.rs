//! `ugeom diskinfo`: the lines of FreeBSD's diskinfo(8), one for each provider, and its
//! measurements.
//!
//! Source: `usr.sbin/diskinfo/diskinfo.c` of FreeBSD for the formats; the recorded listings of
//! 2002, which had no stripes yet, for `--classic`.

mod layout;
mod measure;
mod timing;

use crate::contents::{self, Contents};
use crate::failure::{self, Reported};
use crate::opening::{self, OpeningArgs};
use crate::output;
use anyhow::Result;
use clap::{Args, ValueHint};
use measure::MeasureArgs;
use serde::Serialize;
use std::fmt::Write;
use ugeom_classes::physpath::PHYSPATH;
use ugeom_measure::units::diskinfo_size;
use ugeom_stack::{AttributeValue, Channel, Delta, IoError, Opened, ProviderView, Stack};

const LONG_ABOUT: &str = "\
Prints FreeBSD's diskinfo line for each provider of the targets, sorted by name: name, sector \
size, media size, sectors, stripe size and stripe offset, and, where the drive reports them, \
cylinders, heads and sectors, separated by tabs. An address (disk.img@s1) selects one provider.

With -c, -t, -i or -wS it measures instead, as diskinfo(8) does, with direct I/O (O_DIRECT). It \
measures the top layer of the target, or the addressed provider, and prints -v first. Ctrl-C ends \
early and prints what was measured.";

const EXAMPLES: &str = "\
Examples:
  ugeom diskinfo disk.img           # one line for each provider
  ugeom diskinfo -v zero            # every attribute with its label
  ugeom diskinfo disk.img@s1a | cut -f3  # size of a partition in bytes
  ugeom diskinfo -c -t /dev/sda     # overhead, seek times, transfer rates
  ugeom diskinfo -i 'disk:preset=ata2004'  # random reads of a disk of 2004
  ugeom diskinfo -wS scratch.img    # synchronous random writes: overwrites it
  ugeom diskinfo -t --json 'disk.img?direct=0'  # JSON, buffered (page cache)";

/// Print FreeBSD's diskinfo lines for the providers of targets
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Diskinfo {
    /// Targets: paths, `md:64m`, `disk.img@s1a` (see ugeom --help)
    #[arg(value_name = "TARGET", required = true, value_hint = ValueHint::FilePath,
          value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Print every attribute with its label
    #[arg(short, group = "form")]
    verbose: bool,

    /// Print the lines of 2002, without stripe size and offset
    #[arg(long, group = "form")]
    classic: bool,

    /// Print the physical path only
    #[arg(short = 'p', group = "form")]
    physical_path: bool,

    /// Print the identification (serial number) only
    #[arg(short = 's', group = "form")]
    ident: bool,

    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,

    #[command(flatten)]
    opening: OpeningArgs,

    #[command(flatten)]
    measure: MeasureArgs,
}

/// The facts about a provider.
#[derive(Serialize)]
struct ProviderFacts {
    name: String,
    sectorsize_bytes: u32,
    mediasize_bytes: u64,
    sectors: u64,
    stripesize_bytes: u64,
    stripeoffset_bytes: u64,
    /// Its content; looked for only where it is printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(flatten)]
    attributes: Attributes,
}

/// The facts that the drive reports, if it does.
#[derive(Default, Serialize)]
struct Attributes {
    firmware: Option<Firmware>,
    description: Option<String>,
    ident: Option<String>,
    attachment: Option<String>,
    physical_path: Option<String>,
    can_delete: bool,
    rotation_rate_rpm: Option<i64>,
}

/// The geometry according to the firmware.
#[derive(Serialize)]
struct Firmware {
    cylinders: u64,
    heads: u64,
    sectors: u64,
}

impl Diskinfo {
    pub fn run(&self) -> Result<()> {
        if self.measure.settings().any() {
            return measure::run(self);
        }
        self.measure.refuse_alone()?;
        let mut infos = Vec::new();
        let mut failed = false;
        for target in &self.targets {
            match self.look_at(target) {
                Ok(found) => infos.extend(found),
                // As diskinfo does: the others are printed all the same.
                Err(error) if self.targets.len() > 1 => {
                    output::complain(&failure::text(&error));
                    failed = true;
                }
                Err(error) => return Err(error),
            }
        }
        let mut text = String::new();
        for info in &infos {
            match self.form(info) {
                Some(form) => text.push_str(&form),
                None => failed = true,
            }
        }
        if self.json {
            output::print_json(&infos)?;
        } else {
            output::print(&text)?;
        }
        if failed {
            return Err(Reported.into());
        }
        Ok(())
    }

    fn look_at(&self, text: &str) -> Result<Vec<ProviderFacts>> {
        let target = opening::open(text, &self.opening.options())?;
        let mut tree = target.stack.tree();
        let contents = match self.verbose || self.json {
            true => contents::annotate(&target, &mut tree)?,
            false => Contents::new(),
        };
        let wanted = |provider: &&ProviderView| !target.addressed || provider.id == target.top;
        let mut providers: Vec<&ProviderView> = tree.providers().filter(wanted).collect();
        providers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut infos = Vec::new();
        for provider in providers {
            let opened = target.stack.open(provider.id, Delta::READ)?;
            let attributes = Attributes::of(&target.stack, provider, &opened)?;
            let content = contents
                .get(&provider.id)
                .and_then(|all| contents::cell(all));
            infos.push(ProviderFacts::new(provider, attributes, content));
        }
        Ok(infos)
    }

    /// The output about a provider; nothing, after a message on stderr, when it does not know the
    /// requested facts.
    fn form(&self, info: &ProviderFacts) -> Option<String> {
        let only = |value: &Option<String>, what: &str| match value {
            Some(value) => Some(format!("{}\n", output::printable(value))),
            None => {
                output::complain(&format!(
                    "{}: it has no {what}",
                    output::printable(&info.name)
                ));
                None
            }
        };
        if self.physical_path {
            return only(&info.attributes.physical_path, "physical path");
        }
        if self.ident {
            return only(&info.attributes.ident, "identification");
        }
        Some(if self.verbose {
            info.verbose()
        } else {
            info.line(self.classic)
        })
    }
}

impl ProviderFacts {
    fn new(provider: &ProviderView, attributes: Attributes, content: Option<String>) -> Self {
        let sector = u64::from(provider.sectorsize_bytes);
        Self {
            name: provider.name.clone(),
            sectorsize_bytes: provider.sectorsize_bytes,
            mediasize_bytes: provider.mediasize_bytes,
            sectors: provider.mediasize_bytes.checked_div(sector).unwrap_or(0),
            stripesize_bytes: provider.stripesize_bytes,
            stripeoffset_bytes: provider.stripeoffset_bytes,
            attributes,
            content,
        }
    }

    fn line(&self, classic: bool) -> String {
        let mut fields = vec![
            output::printable(&self.name),
            self.sectorsize_bytes.to_string(),
            self.mediasize_bytes.to_string(),
            self.sectors.to_string(),
        ];
        if !classic {
            fields.push(self.stripesize_bytes.to_string());
            fields.push(self.stripeoffset_bytes.to_string());
        }
        if let Some(firmware) = &self.attributes.firmware {
            let Firmware {
                cylinders,
                heads,
                sectors,
            } = firmware;
            fields.extend([cylinders, heads, sectors].map(u64::to_string));
        }
        format!("{}\n", fields.join("\t"))
    }

    /// Each block ends with an empty line, as FreeBSD's does.
    fn verbose(&self) -> String {
        let mut text = format!("{}\n", output::printable(&self.name));
        let mut line = |value: &dyn std::fmt::Display, label: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\t{:<12}\t# {label}", value.to_string());
        };
        let size = diskinfo_size(self.mediasize_bytes);
        line(&self.sectorsize_bytes, "sectorsize");
        line(
            &self.mediasize_bytes,
            &format!("mediasize in bytes ({size})"),
        );
        line(&self.sectors, "mediasize in sectors");
        line(&self.stripesize_bytes, "stripesize");
        line(&self.stripeoffset_bytes, "stripeoffset");
        let known = &self.attributes;
        if let Some(firmware) = &known.firmware {
            line(&firmware.cylinders, "Cylinders according to firmware.");
            line(&firmware.heads, "Heads according to firmware.");
            line(&firmware.sectors, "Sectors according to firmware.");
        }
        let facts = [
            (&known.description, "Disk descr."),
            (&known.ident, "Disk ident."),
            (&known.attachment, "Attachment"),
            (&known.physical_path, "Physical path"),
            (&self.content, "Content"),
        ];
        for (value, label) in facts {
            if let Some(value) = value {
                line(&output::printable(value), label);
            }
        }
        line(
            &if known.can_delete { "Yes" } else { "No" },
            "TRIM/UNMAP support",
        );
        line(&rotation(known.rotation_rate_rpm), "Rotation rate in RPM");
        text.push('\n');
        text
    }
}

/// As ATA has it: 0 is unknown, 1 is a drive that does not rotate.
fn rotation(rate_rpm: Option<i64>) -> String {
    match rate_rpm {
        None | Some(0) => "Unknown".to_owned(),
        Some(1) => "0".to_owned(),
        Some(rate) if (0x0401..=0xfffe).contains(&rate) => rate.to_string(),
        Some(_) => "Invalid".to_owned(),
    }
}

impl Attributes {
    fn of(stack: &Stack, provider: &ProviderView, opened: &Opened) -> Result<Self> {
        let mut channel = stack.channel(1)?;
        let ask = Ask {
            channel: &mut channel,
            opened,
        };
        Ok(ask.everything(provider)?)
    }
}

/// Asks a provider for its attributes.
struct Ask<'a> {
    channel: &'a mut Channel,
    opened: &'a Opened,
}

impl Ask<'_> {
    fn everything(mut self, provider: &ProviderView) -> Result<Attributes, IoError> {
        let (sectors, heads) = (
            self.number("GEOM::fwsectors")?,
            self.number("GEOM::fwheads")?,
        );
        let firmware = sectors
            .zip(heads)
            .and_then(|(sectors, heads)| Firmware::new(provider, sectors, heads));
        Ok(Attributes {
            firmware,
            description: self.text("GEOM::descr")?,
            ident: self.text("GEOM::ident")?,
            attachment: self.text("GEOM::attachment")?,
            physical_path: self.text(PHYSPATH)?,
            can_delete: self
                .number("GEOM::candelete")?
                .is_some_and(|number| number != 0),
            rotation_rate_rpm: self.number("GEOM::rotation_rate")?,
        })
    }

    fn number(&mut self, name: &str) -> Result<Option<i64>, IoError> {
        Ok(match self.channel.attribute(self.opened, name)? {
            Some(AttributeValue::Number(number)) => Some(number),
            _ => None,
        })
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, IoError> {
        let value = self.channel.attribute(self.opened, name)?;
        let text = value.map(|value| value.to_string());
        Ok(text.filter(|text| !text.is_empty()))
    }
}

impl Firmware {
    /// Nothing where the firmware does not know, which it says with 0.
    fn new(provider: &ProviderView, sectors: i64, heads: i64) -> Option<Self> {
        let (sectors, heads) = (u64::try_from(sectors).ok()?, u64::try_from(heads).ok()?);
        let track = sectors.checked_mul(u64::from(provider.sectorsize_bytes))?;
        let cylinder = track.checked_mul(heads).filter(|&bytes| bytes > 0)?;
        Some(Self {
            cylinders: provider.mediasize_bytes / cylinder,
            heads,
            sectors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzero() -> ProviderFacts {
        ProviderFacts {
            content: None,
            name: "gzero".into(),
            sectorsize_bytes: 512,
            mediasize_bytes: 1 << 60,
            sectors: 1 << 51,
            stripesize_bytes: 0,
            stripeoffset_bytes: 0,
            attributes: Attributes::default(),
        }
    }

    #[test]
    fn the_line_has_stripes_today_and_had_none_in_2002() {
        let mut info = gzero();
        info.attributes.firmware = Some(Firmware {
            cylinders: 80,
            heads: 2,
            sectors: 18,
        });
        let size = "gzero\t512\t1152921504606846976\t2251799813685248";
        assert_eq!(info.line(false), format!("{size}\t0\t0\t80\t2\t18\n"));
        assert_eq!(info.line(true), format!("{size}\t80\t2\t18\n"));
    }

    #[test]
    fn a_rotation_rate_reads_as_ata_means_it() {
        let read = [None, Some(0), Some(1), Some(7200), Some(300)].map(rotation);
        assert_eq!(read, ["Unknown", "Unknown", "0", "7200", "Invalid"]);
    }
}
