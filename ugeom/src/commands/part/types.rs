//! `ugeom part types`: the types of partitions, by gpart's names.

use super::scheme;
use crate::output;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use ugeom_format::plan::{Scheme, TypeName};

const LONG_ABOUT: &str = "\
Lists the types that have a name in gpart, with their value on the medium: a number (MBR, EBR, \
BSD, BSD64, PC98, VTOC8), a GUID (GPT, BSD64) or a text (APM). Any other type is given as ! and \
that value.";

const EXAMPLES: &str = "\
Examples:
  ugeom part types gpt
  ugeom part types --json";

/// List the types of partitions
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Types {
    /// Only of this scheme: mbr, bsd, gpt, ...
    #[arg(value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Types {
    pub fn run(&self) -> Result<()> {
        let wanted = |scheme: &Scheme| self.scheme.is_none_or(|only| only == *scheme);
        let schemes = Scheme::ALL.into_iter().filter(wanted);
        let all = schemes.flat_map(|scheme| scheme.types().into_iter().map(move |it| (scheme, it)));
        let all: Vec<(Scheme, TypeName)> = all.collect();
        if self.json {
            let all: Vec<Value> = all.iter().map(described).collect();
            return output::print_json(&all);
        }
        let width = all.iter().map(|(_, it)| it.name.len()).max().unwrap_or(0);
        let line = |(scheme, it): &(Scheme, TypeName)| {
            format!("{scheme:<5}  {:<width$}  !{}\n", it.name, it.value)
        };
        output::print(&all.iter().map(line).collect::<String>())
    }
}

fn described((scheme, it): &(Scheme, TypeName)) -> Value {
    json!({ "scheme": scheme.name(), "type": it.name, "value": it.value })
}
