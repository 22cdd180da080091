//! Arrows between the modules of a crate: sibling modules import each other in one direction only.
//!
//! A module and its parent may know each other. A path is followed through `pub use` and `use`, so
//! that a circle does not hide behind the parent's exports. Tests may import anything.

use super::{Finding, Source, tokens::Token};
use std::collections::{BTreeMap, BTreeSet};

/// A module, by the names on the way from the crate's root to it.
type Module = Vec<String>;

/// Siblings that may know each other: the folder of the crate, the modules, the reason.
const KNOTS: &[(&str, &str)] = &[
    // A bio holds its path through a snapshot, a snapshot its geoms, a geom answers with a bio, and
    // the context of a thread holds what all three need. Traits between them would cost an indirect
    // call a hop on the data path.
    ("stack", ""),
    ("stack", "bio"),
    // A context, its workers, its ring and what they share hold each other for as long as a request
    // is with one of them; a request's work and its slot are one layout that both sides write.
    ("guasi", ""),
];

pub fn check(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for source in sources {
        if let Some((folder, file)) = source.path.split_once("/src/")
            && !folder.contains('/')
            && !source.is_test_file()
            && !file.starts_with("bin/")
        {
            let module = module_of(file);
            crates
                .entry(folder)
                .or_default()
                .add(module, source.path, &source.tokens);
        }
    }
    let mut findings = Vec::new();
    for (folder, it) in &crates {
        findings.extend(it.circles(folder));
    }
    findings
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`.
pub(super) fn module_of(file: &str) -> Module {
    let stem = file.trim_end_matches(".rs");
    let mut parts: Module = stem.split('/').map(str::to_owned).collect();
    let last = parts.last().map_or("", String::as_str);
    if last == "mod" || (parts.len() == 1 && matches!(last, "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The parts of a crate.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Content>,
    /// Modules that only tests compile.
    of_tests: BTreeSet<Module>,
}

/// The imports and names of a module.
#[derive(Default)]
struct Content {
    file: String,
    /// Each import by the name that it has in the module.
    imports: BTreeMap<String, Vec<String>>,
    /// Each path in it, with its line.
    paths: Vec<(Vec<String>, usize)>,
}

impl Crate {
    fn add(&mut self, module: Module, path: &str, tokens: &[Token]) {
        for window in tokens.windows(3) {
            if let [first, name, last] = window
                && (first.text.as_str(), last.text.as_str()) == ("mod", ";")
                && first.test
            {
                let mut child = module.clone();
                child.push(name.text.clone());
                self.of_tests.insert(child);
            }
        }
        let content = self.modules.entry(module).or_default();
        content.file = path.to_owned();
        content.read(tokens);
    }

    fn is_of_tests(&self, module: &Module) -> bool {
        (1..=module.len()).any(|length| self.of_tests.contains(&module[..length]))
    }

    /// The module that a path in `from` leads to; none for other crates.
    fn resolve(&self, from: &Module, path: &[String], depth: u32) -> Option<Module> {
        let mut at = from.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                let mut child = from.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    return self.imported(from, rest, depth);
                }
            }
        }
        while let Some(name) = rest.first() {
            at.push(name.clone());
            if self.modules.contains_key(&at) {
                rest = &rest[1..];
                continue;
            }
            at.pop();
            return self.imported(&at, rest, depth).or(Some(at));
        }
        Some(at)
    }

    /// The same of a path whose first name was imported into `module`.
    fn imported(&self, module: &Module, path: &[String], depth: u32) -> Option<Module> {
        let content = self.modules.get(module)?;
        let target = content.imports.get(path.first()?)?;
        if depth == 0 || target.as_slice() == &path[..1] {
            return None;
        }
        let whole: Vec<String> = target.iter().chain(&path[1..]).cloned().collect();
        self.resolve(module, &whole, depth - 1)
    }

    fn circles(&self, folder: &str) -> Vec<Finding> {
        let mut families: BTreeMap<Module, Family> = BTreeMap::new();
        for (module, content) in &self.modules {
            if self.is_of_tests(module) {
                continue;
            }
            for (path, line) in &content.paths {
                let Some(target) = self.resolve(module, path, IMPORTS_MAX) else { continue };
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b);
                let common = common.count();
                if common == module.len() || common == target.len() || self.is_of_tests(&target) {
                    continue;
                }
                let family = families.entry(module[..common].to_vec()).or_default();
                let arrow = (module[common].clone(), target[common].clone());
                let place = (content.file.clone(), *line);
                family.arrows.entry(arrow).or_insert(place);
            }
        }
        let allowed = |parent: &str| KNOTS.contains(&(folder, parent));
        families
            .iter()
            .filter(|(parent, _)| !allowed(&parent.join("::")))
            .flat_map(|(_, family)| family.circles())
            .collect()
    }
}

/// An import is followed through this many others at most.
const IMPORTS_MAX: u32 = 8;

impl Content {
    fn read(&mut self, tokens: &[Token]) {
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at].test {
                at += 1;
            } else if tokens[at].text == "use" {
                let end = (at..tokens.len()).find(|i| tokens[*i].text == ";");
                let end = end.unwrap_or(tokens.len());
                self.import(&[], &tokens[at + 1..end]);
                at = end;
            } else {
                let (path, next) = path_at(tokens, at);
                if path.len() > 1 {
                    self.paths.push((path, tokens[at].line));
                }
                at = next;
            }
        }
    }

    /// Takes one tree of a `use` apart.
    fn import(&mut self, prefix: &[String], tokens: &[Token]) {
        let (path, mut at) = path_at(tokens, 0);
        let whole: Vec<String> = prefix.iter().cloned().chain(path).collect();
        while tokens.get(at).is_some_and(|token| token.text == ":") {
            at += 1;
        }
        let Some(last) = whole.last().cloned() else { return };
        match tokens.get(at).map(|token| token.text.as_str()) {
            Some("{") => {
                let inner = &tokens[at + 1..super::tokens::closing(tokens, at)];
                for part in divided(inner) {
                    self.import(&whole, part);
                }
                return;
            }
            Some("as") => {
                if let Some(name) = tokens.get(at + 1) {
                    self.imports.insert(name.text.clone(), whole.clone());
                }
            }
            Some("*") => {}
            _ if last == "self" => {
                let whole = whole[..whole.len() - 1].to_vec();
                if let Some(name) = whole.last() {
                    self.imports.insert(name.clone(), whole.clone());
                }
            }
            _ => {
                self.imports.insert(last, whole.clone());
            }
        }
        let whole: Vec<String> = match whole.split_last() {
            Some((last, start)) if last == "self" && !start.is_empty() => start.to_vec(),
            _ => whole,
        };
        if let Some(first) = tokens.first() {
            self.paths.push((whole, first.line));
        }
    }
}

/// The parts between commas that stand in no bracket.
fn divided(tokens: &[Token]) -> Vec<&[Token]> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => at = super::tokens::closing(tokens, at),
            "," => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&tokens[start.min(tokens.len())..]);
    parts
}

/// The names joined by `::` that begin at a token, and where the next token is.
fn path_at(tokens: &[Token], start: usize) -> (Vec<String>, usize) {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let name = |at: usize| {
        let token = tokens.get(at)?;
        let first = token.text.chars().next()?;
        (first.is_alphabetic() || first == '_').then(|| token.text.clone())
    };
    let mut path = Vec::new();
    let mut at = start;
    while let Some(name) = name(at) {
        path.push(name);
        at += 1;
        if !(is(at, ":") && is(at + 1, ":")) {
            break;
        }
        at += 2;
    }
    (path, at.max(start + 1))
}

/// Sibling modules and the arrows between them, each with a place where it is.
#[derive(Default)]
struct Family {
    arrows: BTreeMap<(String, String), (String, usize)>,
}

impl Family {
    fn reach(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for (_, to) in self.arrows.keys().filter(|(name, _)| name == at) {
                if reached.insert(to.as_str()) {
                    open.push(to);
                }
            }
        }
        reached
    }

    /// One finding for each arrow that leads back to where it starts.
    fn circles(&self) -> Vec<Finding> {
        let back = |(from, to): &(String, String)| self.reach(to).contains(from.as_str());
        let arrows = self.arrows.iter().filter(|(arrow, _)| back(arrow));
        arrows
            .map(|((from, to), (file, line))| {
                Finding::new(
                    file,
                    *line,
                    format!("{from} imports {to}, which imports it in turn"),
                    "modules that know each other can only be read together",
                    "move what both need below both, or into their parent",
                )
            })
            .collect()
    }
}
