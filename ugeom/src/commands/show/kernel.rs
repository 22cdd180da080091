//! The kernel's own layers as a tree, in the columns of other targets.
//!
//! ```text
//! NAME            CLASS   SIZE  START  SECTORS  SECSIZE  MODE  TYPE        LABEL  CONTENT
//! vda             VIRTIO  252G         ...          512  rw    virtio_blk         none
//! └─/             FS                                     rw    ext4
//!   └─/disk.img   FILE    1.0G                           rw
//!     └─loop0     LOOP    1.0G         2097152      512  rw
//! ```

use super::json::{Geom, Provider, Shown};
use super::tree::{ASCII, Glyphs, HEADINGS, LINES, RIGHT};
use crate::failure::Usage;
use crate::output::{self, Paint, Table, printable};
use anyhow::{Context, Result};
use ugeom_measure::units::diskinfo_size;
use ugeom_trace::tree::{Class, KernelTree, Node};

/// Reads the kernel's tree, and the position of the wanted node.
pub fn read(device: Option<&str>) -> Result<(KernelTree, Option<usize>)> {
    let (tree, nodes) = read_all(device)?;
    Ok((tree, nodes.first().copied()))
}

/// Reads the kernel's tree, and the positions of the wanted nodes, each once.
pub fn read_all(
    devices: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<(KernelTree, Vec<usize>)> {
    let tree = KernelTree::now().context("/sys/block: listing block devices")?;
    let mut nodes = Vec::new();
    for device in devices {
        let at = position(&tree, device.as_ref())?;
        if !nodes.contains(&at) {
            nodes.push(at);
        }
    }
    Ok((tree, nodes))
}

fn position(tree: &KernelTree, device: &str) -> Result<usize> {
    let found = match tree.named(device) {
        Some(at) => Some(at),
        None => tree
            .at(&ugeom_classes::path_of(device))
            .with_context(|| printable(device))?,
    };
    let why = || {
        Usage(format!(
            "{}: no block device of this kernel, and no file on one; `ugeom show --kernel` lists \
             them",
            printable(device)
        ))
    };
    Ok(found.ok_or_else(why)?)
}

/// The tree as a table: all of it, or the chain below `only` with the devices above that.
pub fn render(
    tree: &KernelTree,
    only: Option<usize>,
    verbose: bool,
    (paint, utf8): (Paint, bool),
) -> String {
    let mut drawing = Drawing {
        tree,
        wanted: only.map(|only| wanted(tree, only)),
        verbose,
        glyphs: if utf8 { &LINES } else { &ASCII },
        table: Table::new(HEADINGS, RIGHT),
        drawn: vec![false; tree.nodes.len()],
    };
    let roots: Vec<usize> = (0..tree.nodes.len())
        .filter(|at| tree.nodes[*at].below.is_empty())
        .collect();
    for root in roots {
        if drawing.wants(root) {
            drawing.node(root, "", "");
        }
    }
    // Devices that stand on each other in a circle have no root.
    for at in 0..tree.nodes.len() {
        if !drawing.drawn[at] && drawing.wants(at) {
            drawing.node(at, "", "");
        }
    }
    if tree.left_out > 0 {
        let text = format!("! {} more devices are not shown", tree.left_out);
        drawing.table.note(paint.alarm(&text));
    }
    drawing.table.render(paint)
}

/// The chain below a node, and all that stands on it.
fn wanted(tree: &KernelTree, only: usize) -> Vec<usize> {
    let mut found = tree.chain(only);
    let mut open = vec![only];
    while let Some(at) = open.pop() {
        for above in tree.above(at) {
            if !found.contains(&above) {
                found.push(above);
                open.push(above);
            }
        }
    }
    found
}

struct Drawing<'a> {
    tree: &'a KernelTree,
    wanted: Option<Vec<usize>>,
    verbose: bool,
    glyphs: &'a Glyphs,
    table: Table,
    drawn: Vec<bool>,
}

impl Drawing<'_> {
    fn wants(&self, at: usize) -> bool {
        self.wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&at))
    }

    /// Draws a node and those above it. Each is drawn in full once, so a circle ends.
    fn node(&mut self, at: usize, branch: &str, below: &str) {
        let node = &self.tree.nodes[at];
        self.table.row(row(node, branch));
        let first = !std::mem::replace(&mut self.drawn[at], true);
        let above: Vec<usize> = match first {
            true => self
                .tree
                .above(at)
                .filter(|above| self.wants(*above))
                .collect(),
            false => Vec::new(),
        };
        let trunk = match above.is_empty() {
            true => self.glyphs.gap,
            false => self.glyphs.trunk,
        };
        if self.verbose && first {
            for (name, value) in &node.config {
                let text = printable(&format!("{name}: {value}"));
                self.table.note(format!("{below}{trunk}{text}"));
            }
        }
        if !first {
            self.table
                .note(format!("{below}{trunk}(its layers are shown above)"));
        }
        for (number, next) in above.iter().enumerate() {
            let (branch, trunk) = match number + 1 < above.len() {
                true => (self.glyphs.fork, self.glyphs.trunk),
                false => (self.glyphs.last, self.glyphs.gap),
            };
            self.node(
                *next,
                &format!("{below}{branch}"),
                &format!("{below}{trunk}"),
            );
        }
    }
}

fn row(node: &Node, branch: &str) -> Vec<String> {
    let sectors = sectors(node);
    let number = |number: u64| match number {
        0 => String::new(),
        some => some.to_string(),
    };
    let start = node
        .start_bytes
        .map(|bytes| bytes / u64::from(node.sector_bytes.max(512)));
    vec![
        format!("{branch}{}", printable(&node.name)),
        node.class.word().to_owned(),
        match node.size_bytes {
            0 => String::new(),
            bytes => diskinfo_size(bytes),
        },
        start.map_or_else(String::new, |start| start.to_string()),
        number(sectors),
        number(u64::from(node.sector_bytes)),
        mode(node).to_owned(),
        printable(&node.kind),
        printable(&node.label),
        queue(node),
    ]
}

/// The kernel does not tell how often a device is open: only whether it may be written.
fn mode(node: &Node) -> &'static str {
    if node.read_only { "ro" } else { "rw" }
}

fn sectors(node: &Node) -> u64 {
    let sector = u64::from(node.sector_bytes);
    node.size_bytes.checked_div(sector).unwrap_or(0)
}

/// `mq-deadline, 256 requests`: how a device queues.
fn queue(node: &Node) -> String {
    let fact = |name: &str| node.fact(name).map(printable);
    // A device that maps bios has the settings, too, and does not use them.
    if matches!(
        node.class,
        Class::Dm | Class::Md | Class::Zram | Class::Bcache
    ) {
        return String::new();
    }
    let depth = fact("queue depth").map(|depth| format!("{depth} requests"));
    let words: Vec<String> = fact("scheduler").into_iter().chain(depth).collect();
    words.join(", ")
}

/// The tree as `show --json` prints others.
pub fn json<'a>(tree: &'a KernelTree, only: Option<usize>, target: &'a str) -> Shown<'a> {
    let wanted = only.map(|only| wanted(tree, only));
    let mut drawn = vec![false; tree.nodes.len()];
    let wants = |at: usize| wanted.as_ref().is_none_or(|wanted| wanted.contains(&at));
    let mut providers = Vec::new();
    let rooted = |at: &usize| tree.nodes[*at].below.is_empty();
    let (roots, rest): (Vec<usize>, Vec<usize>) = (0..tree.nodes.len()).partition(rooted);
    for at in roots.into_iter().chain(rest) {
        if wants(at) && !drawn[at] {
            providers.push(provider(tree, at, &wants, &mut drawn));
        }
    }
    Shown::of(target, providers)
}

fn provider<'a>(
    tree: &'a KernelTree,
    at: usize,
    wants: &impl Fn(usize) -> bool,
    drawn: &mut [bool],
) -> Provider<'a> {
    let node = &tree.nodes[at];
    let first = !std::mem::replace(&mut drawn[at], true);
    let mut config: std::collections::BTreeMap<&str, String> = node
        .config
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    let mut fact = |name: &'static str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            config.insert(name, value);
        }
    };
    fact("type", Some(node.kind.clone()));
    fact("label", Some(node.label.clone()));
    let start = node
        .start_bytes
        .map(|start| start / u64::from(node.sector_bytes.max(512)));
    fact("start", start.map(|start| start.to_string()));
    fact(
        "number",
        node.number.map(|(major, minor)| format!("{major}:{minor}")),
    );
    let above = tree.above(at).filter(|above| first && wants(*above));
    let above: Vec<usize> = above.collect();
    Provider {
        name: &node.name,
        class: node.class.word(),
        mediasize_bytes: node.size_bytes,
        sectorsize_bytes: node.sector_bytes,
        sectors: sectors(node),
        mode: mode(node).to_owned(),
        config,
        geoms: above
            .into_iter()
            .map(|above| Geom {
                class: tree.nodes[above].class.word(),
                name: &tree.nodes[above].name,
                providers: vec![provider(tree, above, wants, drawn)],
                ..Geom::default()
            })
            .collect(),
        ..Provider::default()
    }
}

/// Prints the kernel's tree in the form that was asked for.
pub fn show(device: Option<&str>, verbose: bool, as_json: bool) -> Result<()> {
    let (tree, only) = read(device)?;
    if as_json {
        return output::print_json(&json(&tree, only, device.unwrap_or("kernel")));
    }
    let utf8 = output::is_utf8();
    output::print(&render(&tree, only, verbose, (Paint::of_stdout(), utf8)))
}
