//! A geom with all its facts, as `list_one_geom` of geom(8) prints it (FreeBSD
//! `sbin/geom/core/geom.c`), and the rows of `status`: of `part` and of `geli`.

use crate::output::printable;
use ugeom_measure::units::diskinfo_size;
use ugeom_stack::{GeomView, ProviderView};

/// The lines about a geom and the provider that it stands on, with an empty one at the end.
pub fn described(geom: &GeomView, below: Option<&ProviderView>) -> String {
    let mut lines = vec![format!("Geom name: {}", geom.name)];
    // Warnings of commands are no facts of GEOM's.
    let facts = geom.config.iter().filter(|(name, _)| *name != "hint");
    lines.extend(facts.map(|(name, value)| format!("{name}: {value}")));
    lines.push("Providers:".to_owned());
    for (index, provider) in geom.providers.iter().enumerate() {
        lines.extend(numbered(index, provider));
        let facts = provider.config.iter();
        lines.extend(facts.map(|(name, value)| format!("   {name}: {value}")));
    }
    lines.push("Consumers:".to_owned());
    lines.extend(below.into_iter().flat_map(|below| numbered(0, below)));
    lines.push(String::new());
    lines.iter().map(|line| printable(line) + "\n").collect()
}

/// Names, states and providers below, under their headings.
pub fn status(rows: &[[String; 3]]) -> String {
    let heading = ["Name", "Status", "Components"].map(str::to_owned);
    let lines = [&[heading], rows].concat();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let (name, state) = (width(0), width(1));
    let line = |[a, b, c]: &[String; 3]| format!("{a:>name$}  {b:>state$}  {c}\n");
    lines.iter().map(line).collect()
}

fn numbered(index: usize, provider: &ProviderView) -> Vec<String> {
    let bytes = provider.mediasize_bytes;
    let mut lines = vec![
        format!("{}. Name: {}", index + 1, provider.name),
        format!("   Mediasize: {bytes} ({})", diskinfo_size(bytes)),
        format!("   Sectorsize: {}", provider.sectorsize_bytes),
    ];
    if provider.stripesize_bytes > 0 || provider.stripeoffset_bytes > 0 {
        lines.push(format!("   Stripesize: {}", provider.stripesize_bytes));
        lines.push(format!("   Stripeoffset: {}", provider.stripeoffset_bytes));
    }
    lines.push(format!("   Mode: {}", provider.mode));
    lines
}
