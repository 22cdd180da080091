//! The tree for people:
//!
//! ```text
//! NAME          CLASS  SIZE  START  SECTORS  SECSIZE  MODE    TYPE              LABEL  CONTENT
//! disk.img      FILE   1.0M             2048      512  r0w0e0                           MBR
//! └─disk.imgs1  MBR    992K     63     1985      512  r0w0e0  freebsd [active]
//!   ! reaches 4096 bytes past the end of disk.img
//! ```

use super::{above, damage, settings};
use crate::output::{Paint, Table, printable};
use std::collections::BTreeSet;
use ugeom_measure::units::diskinfo_size;
use ugeom_stack::{GeomView, ProviderId, ProviderView, Tree};

pub(super) const HEADINGS: &[&str] = &[
    "NAME", "CLASS", "SIZE", "START", "SECTORS", "SECSIZE", "MODE", "TYPE", "LABEL", "CONTENT",
];
pub(super) const RIGHT: &[bool] = &[
    false, false, true, true, true, true, false, false, false, false,
];

/// How the branches of the tree are drawn.
pub(super) struct Glyphs {
    /// Before a provider with others behind it on the same level.
    pub(super) fork: &'static str,
    /// Before the last one.
    pub(super) last: &'static str,
    /// The prefix of further lines below a fork.
    pub(super) trunk: &'static str,
    /// Below the last one.
    pub(super) gap: &'static str,
}

pub(super) const LINES: Glyphs = Glyphs {
    fork: "├─",
    last: "└─",
    trunk: "│ ",
    gap: "  ",
};
pub(super) const ASCII: Glyphs = Glyphs {
    fork: "|-",
    last: "`-",
    trunk: "| ",
    gap: "  ",
};

/// The tree as a table; only the provider `only` and what stands on it, if that is given; with the
/// settings of each layer if `verbose`.
pub fn render(
    tree: &Tree,
    only: Option<ProviderId>,
    verbose: bool,
    (paint, utf8): (Paint, bool),
) -> String {
    let mut drawing = Drawing {
        tree,
        verbose,
        paint,
        glyphs: if utf8 { &LINES } else { &ASCII },
        table: Table::new(HEADINGS, RIGHT),
        drawn: BTreeSet::new(),
    };
    for geom in &tree.geoms {
        for provider in &geom.providers {
            let wanted = match only {
                Some(only) => provider.id == only,
                None => geom.consumers.is_empty(),
            };
            if wanted {
                drawing.provider(geom, provider, "", "");
            }
        }
    }
    drawing.table.render(paint)
}

struct Drawing<'a> {
    tree: &'a Tree,
    verbose: bool,
    paint: Paint,
    glyphs: &'a Glyphs,
    table: Table,
    drawn: BTreeSet<ProviderId>,
}

impl<'a> Drawing<'a> {
    /// Draws a provider and those above it: `branch` before its own name, `below` before all
    /// that follows. The depth is that of the stack, which is bounded.
    fn provider(&mut self, geom: &GeomView, provider: &ProviderView, branch: &str, below: &str) {
        self.table.row(row(geom, provider, branch));
        // A geom on several providers is drawn in full only once.
        let first = self.drawn.insert(provider.id);
        let geoms: Vec<&GeomView> = match first {
            true => above(self.tree, provider.id).collect(),
            false => Vec::new(),
        };
        let above: Vec<_> = geoms
            .iter()
            .flat_map(|g| g.providers.iter().map(move |p| (g, p)))
            .collect();
        let trunk = if above.is_empty() {
            self.glyphs.gap
        } else {
            self.glyphs.trunk
        };
        if self.verbose {
            for (name, value) in settings(geom, provider) {
                let text = printable(&format!("{name}: {value}"));
                self.table.note(format!("{below}{trunk}{text}"));
            }
        }
        let damage = geoms
            .iter()
            .flat_map(|geom| damage(geom).map(|text| format!("{}: {text}", geom.class)));
        for fault in faults(provider).chain(damage) {
            let text = self.paint.alarm(&printable(&format!("! {fault}")));
            self.table.note(format!("{below}{trunk}{text}"));
        }
        let hint = fact(provider, "hint");
        if !hint.is_empty() {
            self.table.note(format!("{below}{trunk}{hint}"));
        }
        for text in geoms.iter().filter_map(|geom| locked(geom, &geoms)) {
            self.table
                .note(format!("{below}{trunk}{}", printable(&text)));
        }
        if !first {
            self.table
                .note(format!("{below}{trunk}(its layers are shown above)"));
        }
        for (number, (geom, provider)) in above.iter().enumerate() {
            let (branch, trunk) = if number + 1 < above.len() {
                (self.glyphs.fork, self.glyphs.trunk)
            } else {
                (self.glyphs.last, self.glyphs.gap)
            };
            let (branch, below) = (format!("{below}{branch}"), format!("{below}{trunk}"));
            self.provider(geom, provider, &branch, &below);
        }
    }
}

/// An encrypted provider that is not attached: the facts known without a key.
fn locked(geom: &GeomView, all: &[&GeomView]) -> Option<String> {
    let opened = |other: &&GeomView| other.name == geom.name && !other.providers.is_empty();
    if geom.fact("State")? != "LOCKED" || all.iter().any(opened) {
        return None;
    }
    let tags = geom
        .fact("AuthenticationAlgorithm")
        .map(|name| format!(" + {name}"));
    Some(format!(
        "{}: locked; version {}, {} {}{}, slots {}, flags {}",
        geom.class,
        geom.fact("Version")?,
        geom.fact("EncryptionAlgorithm")?,
        geom.fact("KeyLength")?,
        tags.unwrap_or_default(),
        geom.fact("Slots")?,
        geom.fact("Flags")?
    ))
}

fn row(geom: &GeomView, provider: &ProviderView, branch: &str) -> Vec<String> {
    let sector = u64::from(provider.sectorsize_bytes);
    let sectors = provider.mediasize_bytes.checked_div(sector).unwrap_or(0);
    vec![
        format!("{branch}{}", printable(&provider.name)),
        geom.class.to_owned(),
        diskinfo_size(provider.mediasize_bytes),
        fact(provider, "start"),
        sectors.to_string(),
        sector.to_string(),
        provider.mode.to_string(),
        kind(provider),
        fact(provider, "label"),
        fact(provider, "content"),
    ]
}

/// The type with its attributes, as gpart shows them.
fn kind(provider: &ProviderView) -> String {
    let attributes = fact(provider, "attrib");
    match attributes.as_str() {
        "" => fact(provider, "type"),
        set => format!("{} [{set}]", fact(provider, "type")),
    }
}

fn faults(provider: &ProviderView) -> impl Iterator<Item = String> {
    let error = provider
        .error
        .map(|errno| format!("destroyed or failed: {errno}"));
    provider.mark.clone().into_iter().chain(error)
}

fn fact(provider: &ProviderView, name: &str) -> String {
    provider.fact(name).map_or_else(String::new, printable)
}
