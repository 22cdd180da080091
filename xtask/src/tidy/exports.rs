//! Public items of a library that no other crate uses: an interface that nothing calls is either
//! dead or private.
//!
//! A use is the name in the sources of another crate, or in a bench or an example of its own; its
//! own tests are none. Names are compared, not types, so an item that shares its name with a used
//! one passes. Types are left out: the signature of a public function may need them, and the
//! compiler warns of those that nothing uses.

use super::{Finding, Source, Tree, tokens};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Public all the same: the crate, the names, the reason.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "measure",
        &[
            "BUCKETS",
            "erf",
            "erfc",
            "fisher_upper_tail",
            "interval_with",
            "ln_beta",
            "ln_gamma",
            "normal_cdf",
            "student_cdf",
            "student_critical",
            "student_quantile",
            "student_two_sided_p",
        ],
        "held against published tables and NIST's data sets by tests outside the crate",
    ),
    (
        "stack",
        &["MAX_DEPTH", "is_unheard"],
        "the limit and the flag that a class of another program has to know",
    ),
    (
        "classes",
        &[
            "KEY_BYTES",
            "begin_reading_ahead",
            "begin_writing_back",
            "writing_back",
        ],
        "steps of a cache and of a cipher that tests drive one by one",
    ),
    (
        "format",
        &[
            "HEADER_SIZE_BYTES",
            "alpha_checksum",
            "INIT_REPLY_BYTES",
            "as_it_stands",
            "from_u128",
            "from_random",
            "table_size_bytes",
            "table_sectors",
        ],
        "with which tests and fuzz targets make headers",
    ),
    (
        "guasi",
        &["has_ring", "idle_workers"],
        "what a context works with, for programs that embed it",
    ),
    (
        "trace",
        &["event_ns"],
        "the figure that a test of a running kernel judges",
    ),
    (
        "crash",
        &["write_durably"],
        "for programs that record their own writes",
    ),
];

/// Files with tables of a format's numbers, which are complete whether each is used or not.
const TABLES: &[&str] = &[
    "classes/src/part/names.rs",
    "format/src/bsd/types.rs",
    "format/src/bsd64/types.rs",
    "format/src/eli/metadata.rs",
    "format/src/gpt/entry.rs",
    "format/src/mbr/chs.rs",
    "format/src/mbr/types.rs",
    "format/src/qcow2/mod.rs",
    "format/src/vtoc8/types.rs",
    "format/src/wire/fuse/mod.rs",
    "format/src/wire/nbd/mod.rs",
    "lab/src/layers/published.rs",
];

/// The words between `pub` and the kind of an item.
const QUALIFIERS: &[&str] = &["async", "unsafe", "extern", "\"C\""];

/// Kinds of items that are checked, and those that are only looked up.
const CHECKED: &[&str] = &["fn", "const", "static"];
const TYPES: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// Crates whose interface is another: symbols of C, targets of a fuzzer, helpers of tests.
const OTHER_INTERFACES: &[&str] = &["guasi-capi", "fuzz", "testkit"];

pub fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let of_tests = tree.test_files(sources);
    let mut libraries: BTreeMap<&str, Library> = BTreeMap::new();
    for source in sources {
        let Some((folder, file)) = source.path.split_once("/src/") else { continue };
        if tree.has(&format!("{folder}/src/lib.rs"))
            && !tree.has(&format!("{folder}/src/main.rs"))
            && !of_tests.contains(source.path)
            && !OTHER_INTERFACES.contains(&folder)
            && !TABLES.contains(&source.path)
        {
            libraries.entry(folder).or_default().add(file, source);
        }
    }
    let mut exports = Vec::new();
    for (folder, library) in &libraries {
        exports.extend(library.exports().into_iter().map(|item| (*folder, item)));
    }
    let uses = Uses::of(sources, exports.iter().map(|(_, item)| item.name.as_str()));
    exports.retain(|(folder, item)| {
        !uses.outside(folder, &item.name) && !is_allowed(folder, &item.name)
    });
    exports.into_iter().map(|(_, item)| finding(item)).collect()
}

fn finding(item: &Item) -> Finding {
    Finding::new(
        &item.path,
        item.line,
        format!("no other crate uses {}", item.name),
        "a public item is an interface",
        "make it private or pub(crate), or remove it; exceptions are listed with a reason",
    )
}

fn is_allowed(folder: &str, name: &str) -> bool {
    let mut listed = ALLOWED.iter();
    listed.any(|(of, names, _)| *of == folder && names.contains(&name))
}

/// The crates that use each exported name.
struct Uses<'a>(HashMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Uses<'a> {
    fn of(sources: &'a [Source<'a>], names: impl Iterator<Item = &'a str>) -> Self {
        let mut uses: HashMap<&str, BTreeSet<&str>> =
            names.map(|name| (name, BTreeSet::new())).collect();
        for source in sources {
            let folder = source.crate_dir();
            let rest = &source.path[folder.len()..];
            // A bench or an example is a program that uses the crate from outside.
            let user = match rest.starts_with("/benches/") || rest.starts_with("/examples/") {
                true => "",
                false => folder,
            };
            for token in &source.tokens {
                if let Some(users) = uses.get_mut(token.text.as_str()) {
                    users.insert(user);
                }
            }
        }
        Self(uses)
    }

    fn outside(&self, folder: &str, name: &str) -> bool {
        let users = self.0.get(name);
        users.is_some_and(|users| users.iter().any(|user| *user != folder))
    }
}

/// A public item: of a module, or of a type.
struct Item {
    path: String,
    line: usize,
    name: String,
    is_checked: bool,
    module: Vec<String>,
    /// The type whose `impl` holds it.
    of_type: Option<String>,
}

/// The public items of a crate, and what makes them visible.
#[derive(Default)]
struct Library {
    items: Vec<Item>,
    /// Modules that their parents declare as `pub mod`.
    public_modules: BTreeSet<Vec<String>>,
    /// The words of each `pub use`, with the module in which it stands.
    public_uses: Vec<(Vec<String>, Vec<String>)>,
}

impl Library {
    fn add(&mut self, file: &str, source: &Source) {
        let module = super::arrows::module_of(file);
        let of_type = types_of_impls(&source.tokens);
        for (index, token) in source.tokens.iter().enumerate() {
            if token.text != "pub" || token.test {
                continue;
            }
            let rest = source.tokens[index + 1..].iter();
            let rest: Vec<&str> = rest
                .map(|token| token.text.as_str())
                .take_while(|text| !matches!(*text, ";" | "="))
                .collect();
            match rest.as_slice() {
                ["mod", name, ..] => {
                    let mut child = module.clone();
                    child.push((*name).to_owned());
                    self.public_modules.insert(child);
                }
                ["use", path @ ..] => {
                    let words = path.iter().map(|word| (*word).to_owned()).collect();
                    self.public_uses.push((module.clone(), words));
                }
                _ => {
                    if let Some((kind, name)) = kind_and_name(&rest) {
                        self.items.push(Item {
                            path: source.path.to_owned(),
                            line: token.line,
                            name: name.to_owned(),
                            is_checked: CHECKED.contains(&kind),
                            module: module.clone(),
                            of_type: of_type.get(&index).cloned(),
                        });
                    }
                }
            }
        }
    }

    /// The modules that another crate can name: the root, `pub mod` below one of them, and what
    /// one of them exports whole.
    fn visible_modules(&self) -> BTreeSet<Vec<String>> {
        let mut visible = BTreeSet::from([Vec::new()]);
        loop {
            let before = visible.len();
            for module in &self.public_modules {
                if visible.contains(&module[..module.len() - 1]) {
                    visible.insert(module.clone());
                }
            }
            for (module, words) in &self.public_uses {
                if visible.contains(module) && words.last().is_some_and(|word| word == "*") {
                    let names = words.iter().filter(|word| is_name(word) && *word != "self");
                    visible.insert(module.iter().chain(names).cloned().collect());
                }
            }
            if visible.len() == before {
                return visible;
            }
        }
    }

    /// The names that visible modules export from others.
    fn exported_names(&self, visible: &BTreeSet<Vec<String>>) -> BTreeSet<&str> {
        let uses = self.public_uses.iter();
        uses.filter(|(module, _)| visible.contains(module))
            .flat_map(|(_, words)| words.iter().map(String::as_str))
            .collect()
    }

    /// The checked items that another crate can name.
    fn exports(&self) -> Vec<&Item> {
        let visible = self.visible_modules();
        let names = self.exported_names(&visible);
        let is_named =
            |item: &Item| visible.contains(&item.module) || names.contains(item.name.as_str());
        let types: BTreeSet<&str> = self
            .items
            .iter()
            .filter(|item| item.of_type.is_none() && is_named(item))
            .map(|item| item.name.as_str())
            .collect();
        let checked = self.items.iter().filter(|item| item.is_checked);
        checked
            .filter(|item| match &item.of_type {
                Some(of_type) => types.contains(of_type.as_str()),
                None => is_named(item),
            })
            .collect()
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The kind and the name of the item that follows `pub`.
fn kind_and_name<'a>(rest: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let start = rest.iter().position(|text| !QUALIFIERS.contains(text))?;
    match rest[start..] {
        ["const", "fn" | "unsafe" | "async", ..] => kind_and_name(&rest[start + 1..]),
        [kind, name, ..] if CHECKED.contains(&kind) || TYPES.contains(&kind) => Some((kind, name)),
        _ => None,
    }
}

/// The type of the `impl` block in which a token stands, by the token's index.
fn types_of_impls(all: &[tokens::Token]) -> BTreeMap<usize, String> {
    let mut types = BTreeMap::new();
    for (index, token) in all.iter().enumerate() {
        let starts_item = index == 0 || matches!(all[index - 1].text.as_str(), "}" | ";" | "]");
        if token.text != "impl" || !starts_item {
            continue;
        }
        let Some(open) = (index..all.len()).find(|at| all[*at].text == "{") else { continue };
        let head = &all[index + 1..open];
        let head = match head.iter().position(|token| token.text == "for") {
            Some(at) => &head[at + 1..],
            None => head,
        };
        if let Some(name) = type_in(head) {
            let end = tokens::closing(all, open);
            types.extend((open..end).map(|inside| (inside, name.to_owned())));
        }
    }
    types
}

/// The last word of the path in the head of an `impl`: generic arguments left out.
fn type_in(head: &[tokens::Token]) -> Option<&str> {
    let mut depth = 0_usize;
    let mut name = None;
    for token in head {
        match token.text.as_str() {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "where" if depth == 0 => break,
            text if depth == 0 && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                name = Some(text);
            }
            _ => {}
        }
    }
    name
}
