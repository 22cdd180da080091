//! `ugeom classes`: which classes there are, and what their options mean.

use crate::failure::Usage;
use crate::output::{self, Paint, Table};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use ugeom_classes::registry::{self, registry};
use ugeom_classes::{ClassEntry, OptionDoc, Role, spec};

const LONG_ABOUT: &str = "\
Lists the classes that a target can be made of; with a NAME, what one class does and what its \
options mean.

A bottom class brings a device into being, a layer stands on a provider, and a table finds the \
partitions that are described there.";

const EXAMPLES: &str = "\
Examples:
  ugeom classes         which classes are there?
  ugeom classes nop     what can nop do?";

/// List the classes that targets are made of, and their options
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Classes {
    /// A class, to see its options
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Described {
    name: &'static str,
    class: &'static str,
    role: &'static str,
    about: &'static str,
    synopsis: String,
    tastes: bool,
    options: Vec<DescribedOption>,
}

#[derive(Serialize)]
struct DescribedOption {
    name: &'static str,
    value: &'static str,
    about: &'static str,
}

impl Classes {
    pub fn run(&self) -> Result<()> {
        let Some(name) = &self.name else {
            let all: Vec<Described> = registry().iter().map(Described::new).collect();
            if self.json {
                return output::print_json(&all);
            }
            return output::print(&list(&all));
        };
        let entry = find(name)?;
        if self.json {
            return output::print_json(&Described::new(entry));
        }
        output::print(&page(entry))
    }
}

fn find(name: &str) -> Result<&'static ClassEntry, Usage> {
    let lower = name.to_ascii_lowercase();
    registry::find(&lower).ok_or_else(|| {
        let names = registry::names();
        let help = match spec::nearest(&lower, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names.join(", ")),
        };
        Usage(format!(
            "there is no class {}; {help}",
            output::printable(name)
        ))
    })
}

fn list(all: &[Described]) -> String {
    let mut table = Table::new(&["NAME", "ROLE", "WHAT IT IS"], &[false, false, false]);
    for class in all {
        table.row(vec![
            class.name.into(),
            class.role.into(),
            class.about.into(),
        ]);
    }
    table.render(Paint::of_stdout())
}

fn page(entry: &ClassEntry) -> String {
    let mut text = format!("{}: {}\n\n", entry.name, entry.about);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {}\n", synopsis(entry));
    let _ = writeln!(text, "{}", role(entry));
    if entry.options.is_empty() {
        return text;
    }
    text.push('\n');
    let mut table = Table::new(&["OPTION", "VALUE", "WHAT IT DOES"], &[false, false, false]);
    for option in entry.options {
        table.row(vec![
            option.name.into(),
            option.value.into(),
            option.about.into(),
        ]);
    }
    text.push_str(&table.render(Paint::of_stdout()));
    text
}

fn role(entry: &ClassEntry) -> &'static str {
    match entry.role {
        Role::Bottom => "It stands at the bottom and brings a device into being.",
        Role::Layer => "It stands on a provider and offers one of its own.",
        Role::Table => {
            "It stands on a provider and offers the partitions that are described there. It tastes \
             by itself: it need not be written."
        }
    }
}

/// How a layer of the class is written: `md:SIZE[,sectorsize=SIZE][,name=NAME]`.
fn synopsis(entry: &ClassEntry) -> String {
    let named = |name: &str| entry.options.iter().find(|option| option.name == name);
    let first = entry.positional.iter().filter_map(|name| named(name));
    let first: Vec<String> = first.map(|option| option.value.to_owned()).collect();
    let others = entry
        .options
        .iter()
        .filter(|option| !entry.positional.contains(&option.name));
    let others = others.map(|OptionDoc { name, value, .. }| format!("{name}={value}"));
    let arguments: Vec<String> = first.into_iter().chain(others).collect();
    let before = match entry.role {
        Role::Bottom => "",
        Role::Layer | Role::Table => "... | ",
    };
    if entry.name == spec::FILE_CLASS {
        return "PATH[?OPTION=VALUE[&OPTION=VALUE]...]".to_owned();
    }
    match arguments.split_first() {
        None => format!("{before}{}", entry.name),
        Some((first, others)) => {
            let others: String = others.iter().map(|option| format!("[,{option}]")).collect();
            let first = if entry.positional.is_empty() {
                format!("[{first}]")
            } else {
                first.clone()
            };
            format!("{before}{}:{first}{others}", entry.name)
        }
    }
}

impl Described {
    fn new(entry: &ClassEntry) -> Self {
        let option = |option: &OptionDoc| DescribedOption {
            name: option.name,
            value: option.value,
            about: option.about,
        };
        Self {
            name: entry.name,
            class: entry.class,
            role: entry.role.name(),
            about: entry.about,
            synopsis: synopsis(entry),
            tastes: entry.taste.is_some(),
            options: entry.options.iter().map(option).collect(),
        }
    }
}
