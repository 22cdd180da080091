//! The output of `--debug=parse`: the settings as they are read.

use crate::language::Section;
use crate::options::{OPTIONS, steady};
use crate::settings::{Steady, SteadyOf};

/// A line for each setting, and one for the steady state, as fio has them.
pub fn parsed(sections: &[Section]) -> String {
    let process = std::process::id();
    let mut text = String::new();
    for setting in sections.iter().flat_map(|section| &section.settings) {
        let name = OPTIONS
            .find(&setting.name)
            .map_or("", |entry| entry.doc.name);
        let value = setting.value.as_deref().unwrap_or("");
        let mut line = |said: &str| text.push_str(&format!("parse    {process} {said}\n"));
        line(&format!("handle_option={name}, ptr={value}"));
        if let ("steadystate", Ok(steady)) = (name, steady(value)) {
            line(&threshold(&steady));
        }
    }
    text
}

fn threshold(steady: &Steady) -> String {
    let Steady { limit, .. } = steady;
    match (steady.percent, steady.of) {
        (true, _) => format!("set steady state threshold to {limit:.6}%"),
        (false, SteadyOf::Iops) => format!("set steady state IOPS threshold to {limit:.6}"),
        (false, SteadyOf::Bandwidth) => format!("set steady state BW threshold to {limit:.0}"),
    }
}
