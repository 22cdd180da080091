//! The configuration dumps: FreeBSD's `kern.geom.confxml` and `kern.geom.confdot`.
//!
//! Source: `sys/geom/geom_dump.c` of FreeBSD, for the elements and their order, the shapes and
//! labels of the graph, and the escapes.

use crate::class::Fact;
use crate::error::Errno;
use crate::topology::{ConsumerView, GeomView, ProviderView, Tree};
use std::fmt::Write;

/// The XML tree of classes, geoms, consumers and providers.
pub fn confxml(tree: &Tree) -> String {
    let mut classes: Vec<&str> = tree.geoms.iter().map(|geom| geom.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut out = String::from("<mesh>\n");
    for class in classes {
        let id = class_id(class);
        line(&mut out, 1, &format!("<class id=\"{id}\">"));
        element(&mut out, 2, "name", class);
        for geom in tree.geoms.iter().filter(|geom| geom.class == class) {
            geom_xml(&mut out, geom, &id);
        }
        line(&mut out, 1, "</class>");
    }
    out.push_str("</mesh>\n");
    out
}

/// A stable number for a class: its name, hashed (FNV-1a). FreeBSD prints kernel addresses.
fn class_id(class: &str) -> String {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:#x}", class.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

fn id(number: u64) -> String {
    format!("{number:#x}")
}

fn line(out: &mut String, depth: usize, text: &str) {
    for _ in 0..depth {
        out.push_str("  ");
    }
    out.push_str(text);
    out.push('\n');
}

fn element(out: &mut String, depth: usize, name: &str, value: &str) {
    line(out, depth, &format!("<{name}>{}</{name}>", escape(value)));
}

/// As `g_conf_cat_escaped`: markup and everything above `~` as character references, other
/// control characters as `?`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'&' | b'<' | b'>' | b'\'' | b'"' | 0x7f.. => {
                // Writing to a string cannot fail.
                let _ = write!(out, "&#x{byte:X};");
            }
            b'\t' | b'\n' | b'\r' | 0x20.. => out.push(char::from(byte)),
            _ => out.push('?'),
        }
    }
    out
}

fn config_xml(out: &mut String, depth: usize, config: &[Fact]) {
    if config.is_empty() {
        return;
    }
    line(out, depth, "<config>");
    for (name, value) in config {
        element(out, depth + 1, name, value);
    }
    line(out, depth, "</config>");
}

fn geom_xml(out: &mut String, geom: &GeomView, class: &str) {
    line(out, 2, &format!("<geom id=\"{}\">", id(geom.id.number())));
    line(out, 3, &format!("<class ref=\"{class}\"/>"));
    element(out, 3, "name", &geom.name);
    element(out, 3, "rank", &geom.rank.to_string());
    if geom.wither {
        line(out, 3, "<wither/>");
    }
    config_xml(out, 3, &geom.config);
    for consumer in &geom.consumers {
        consumer_xml(out, consumer, geom);
    }
    for provider in &geom.providers {
        provider_xml(out, provider);
    }
    line(out, 2, "</geom>");
}

fn consumer_xml(out: &mut String, consumer: &ConsumerView, geom: &GeomView) {
    line(
        out,
        3,
        &format!("<consumer id=\"{}\">", id(consumer.id.number())),
    );
    line(out, 4, &format!("<geom ref=\"{}\"/>", id(geom.id.number())));
    if let Some(provider) = consumer.provider {
        line(
            out,
            4,
            &format!("<provider ref=\"{}\"/>", id(provider.number())),
        );
    }
    element(out, 4, "mode", &consumer.mode.to_string());
    line(out, 3, "</consumer>");
}

fn provider_xml(out: &mut String, provider: &ProviderView) {
    line(
        out,
        3,
        &format!("<provider id=\"{}\">", id(provider.id.number())),
    );
    line(
        out,
        4,
        &format!("<geom ref=\"{}\"/>", id(provider.geom.number())),
    );
    element(out, 4, "mode", &provider.mode.to_string());
    element(out, 4, "name", &provider.name);
    element(out, 4, "mediasize", &provider.mediasize_bytes.to_string());
    element(out, 4, "sectorsize", &provider.sectorsize_bytes.to_string());
    element(out, 4, "stripesize", &provider.stripesize_bytes.to_string());
    element(
        out,
        4,
        "stripeoffset",
        &provider.stripeoffset_bytes.to_string(),
    );
    config_xml(out, 4, &provider.config);
    line(out, 3, "</provider>");
}

/// The graph in graphviz's language: boxes are geoms, hexagons are providers.
pub fn confdot(tree: &Tree) -> String {
    let mut out = String::from("digraph geom {\n");
    for geom in &tree.geoms {
        let node = dot_id('g', geom.id.number());
        let label = format!("{}\\n{}\\nr#{}", geom.class, dot(&geom.name), geom.rank);
        line(
            &mut out,
            0,
            &format!("{node} [shape=box,label=\"{label}\"];"),
        );
        for consumer in &geom.consumers {
            let id = dot_id('c', consumer.id.number());
            let label = consumer.mode;
            line(&mut out, 0, &format!("{id} [label=\"{label}\"];"));
            line(&mut out, 0, &format!("{node} -> {id};"));
            if let Some(provider) = consumer.provider {
                line(
                    &mut out,
                    0,
                    &format!("{id} -> {};", dot_id('p', provider.number())),
                );
            }
        }
        for provider in &geom.providers {
            provider_dot(&mut out, provider, &node);
        }
    }
    out.push_str("}\n");
    out
}

fn provider_dot(out: &mut String, provider: &ProviderView, geom: &str) {
    let id = dot_id('p', provider.id.number());
    let label = format!(
        "{}\\n{}\\nerr#{}\\nsector={}\\nstripe={}",
        dot(&provider.name),
        provider.mode,
        provider.error.map_or(0, Errno::raw_os_error),
        provider.sectorsize_bytes,
        provider.stripesize_bytes,
    );
    line(out, 0, &format!("{id} [shape=hexagon,label=\"{label}\"];"));
    line(out, 0, &format!("{id} -> {geom};"));
}

fn dot_id(kind: char, number: u64) -> String {
    format!("{kind}{number}")
}

/// A name inside a quoted label.
fn dot(name: &str) -> String {
    name.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', " ")
}
