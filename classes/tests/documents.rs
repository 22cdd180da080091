//! The pages of the classes agree with the declarations: tables of options are generated, and every
//! default and every target of an example is read by the class that it is for.
//!
//! `UGEOM_WRITE_DOCS=1 cargo test -p ugeom-classes --test documents` writes the tables anew.

use std::fs;
use std::path::{Path, PathBuf};
use ugeom_classes::spec::{self, DeclaredOptions, SETTINGS, markdown_table};
use ugeom_classes::{ClassEntry, registry};
use ugeom_testkit::generated::compare;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

#[test]
fn the_tables_of_options_are_those_that_the_code_declares() {
    for entry in registry() {
        let options = entry.options.docs();
        let page = docs().join("classes").join(format!("{}.md", entry.name));
        assert!(page.is_file(), "class {} has no page", entry.name);
        if !options.is_empty() {
            compare(&page, &markdown_table(&options));
        }
    }
    let declared = markdown_table(&SETTINGS.docs());
    compare(&docs().join("stack-language.md"), &declared);
}

/// The words of a shell command that stand in quotes, and those that stand alone.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("a word").push(c),
        }
    }
    words
}

/// Reads all arguments of a layer with the options of its class.
fn try_layer(entry: &ClassEntry, layer: &spec::Layer, shown: &str) -> usize {
    let unnamed = entry.positional.iter().zip(&layer.positional);
    let unnamed = unnamed.map(|(name, value)| (*name, &value.value));
    let named = layer.options.iter();
    let named = named.map(|option| (option.key.value.as_str(), &option.value.value));
    let mut count = 0;
    for (name, value) in unnamed.chain(named) {
        let tried = entry.options.try_value(name, value);
        assert_eq!(tried, Ok(()), "{shown}: {}:{name}={value}", entry.name);
        count += 1;
    }
    count
}

#[test]
fn the_options_in_examples_are_options_of_the_class() {
    let names = registry::names();
    let mut pages = vec![
        docs().join("stack-language.md"),
        docs().join("../README.md"),
        docs().join("tour.md"),
    ];
    let folder = fs::read_dir(docs().join("classes")).expect("docs/classes");
    pages.extend(folder.map(|file| file.expect("a page").path()));
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        let commands = text
            .lines()
            .filter_map(|line| line.strip_prefix("$ ugeom "));
        for word in commands.flat_map(words) {
            let Ok(target) = spec::parse(&word, &names) else { continue };
            for layer in &target.layers {
                if let Some(entry) = registry::find(&layer.class.value) {
                    count += try_layer(entry, layer, &format!("{}: {word}", page.display()));
                }
            }
        }
    }
    assert!(
        count > 50,
        "only {count} arguments were found in the examples"
    );
}
