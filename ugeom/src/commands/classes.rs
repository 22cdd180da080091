//! `ugeom classes`: the classes and their options.

use crate::failure::Usage;
use crate::output::{self, Paint, Table};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use ugeom_classes::registry::{self, registry};
use ugeom_classes::spec::{self, OptionDefault, OptionDoc};
use ugeom_classes::{ClassEntry, Role};

const LONG_ABOUT: &str = "\
Lists the classes that targets are made of. With a NAME, it describes one class and its options.

A bottom class creates a provider, a layer attaches to one, and a table creates a provider for \
each partition. In options, TIME is a number with ns, us, ms, s, m, h or d (a bare number counts \
seconds), SIZE one with k, m, g, t, p, e or s (sectors; a bare number counts bytes).";

const EXAMPLES: &str = "\
Examples:
  ugeom classes         # list the classes
  ugeom classes nop     # the options of nop";

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
    required: bool,
    default: Option<&'static str>,
    help: &'static str,
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
    let mut table = Table::new(&["NAME", "ROLE", "MEANING"], &[false, false, false]);
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
    let options = entry.options.docs();
    if options.is_empty() {
        return text;
    }
    text.push('\n');
    let mut table = Table::new(&["OPTION", "VALUE", "DEFAULT", "MEANING"], &[false; 4]);
    for option in options {
        table.row(vec![
            option.name.into(),
            option.value.into(),
            option.default.shown().unwrap_or("-").into(),
            option.help.into(),
        ]);
    }
    text.push_str(&table.render(Paint::of_stdout()));
    text
}

fn role(entry: &ClassEntry) -> &'static str {
    match entry.role {
        Role::Bottom => "Bottom of a stack: it creates a provider.",
        Role::Layer => "Layer: it attaches to a provider and creates one provider.",
        Role::Table => {
            "Table: it attaches to a provider and creates one provider for each partition. It is \
             found by tasting, so a target need not name it."
        }
    }
}

/// How a layer of the class is written: `md:SIZE[,sectorsize=SIZE][,name=NAME]`.
fn synopsis(entry: &ClassEntry) -> String {
    let options = entry.options.docs();
    let named = |name: &str| options.iter().find(|option| option.name == name);
    let first = entry.positional.iter().filter_map(|name| named(name));
    let first: Vec<String> = first.map(|option| option.value.to_owned()).collect();
    let others = options
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
        let option = |option: OptionDoc| DescribedOption {
            name: option.name,
            value: option.value,
            required: option.default == OptionDefault::Required,
            default: match option.default {
                OptionDefault::Value(text) | OptionDefault::Depends(text) => Some(text),
                OptionDefault::Required | OptionDefault::Absent => None,
            },
            help: option.help,
        };
        Self {
            name: entry.name,
            class: entry.class,
            role: entry.role.name(),
            about: entry.about,
            synopsis: synopsis(entry),
            tastes: entry.taste.is_some(),
            options: entry.options.docs().into_iter().map(option).collect(),
        }
    }
}
