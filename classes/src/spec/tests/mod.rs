//! The stack language by examples, and properties of every text.

mod arguments;
mod document;
mod errors;
mod examples;
mod files;
mod properties;
mod settings;

use super::{Address, Layer, Opt, Origin, Span, Spanned, SpecError, Target};

/// The classes that the examples know; `file` is known without being named.
pub const CLASSES: &[&str] = &[
    "md", "nbd", "zero", "nop", "disk", "mbr", "ebr", "bsd", "gpt", "apm",
];

fn spanned(text: &str) -> Spanned<String> {
    Spanned::new(text.to_owned(), Span::default())
}

fn address(text: &str) -> Option<Address> {
    Some(Address {
        text: spanned(text),
        origin: Origin::command_line(""),
        missing_path: None,
    })
}

/// A layer to expect.
fn layer(class: &str) -> Layer {
    Layer {
        on: None,
        class: spanned(class),
        positional: Vec::new(),
        options: Vec::new(),
        span: Span::default(),
        origin: Origin::command_line(""),
    }
}

fn file(path: &str) -> Layer {
    layer("file").with(path)
}

impl Layer {
    fn with(mut self, value: &str) -> Layer {
        self.positional.push(spanned(value));
        self
    }

    fn with_option(mut self, key: &str, value: &str) -> Layer {
        self.options.push(Opt {
            key: spanned(key),
            value: spanned(value),
        });
        self
    }

    fn on(mut self, text: &str) -> Layer {
        self.on = address(text);
        self
    }
}

/// A target to expect.
fn target(layers: Vec<Layer>) -> Target {
    Target {
        stack: None,
        layers,
        provider: None,
        origin: Origin::command_line(""),
    }
}

impl Target {
    fn at(mut self, text: &str) -> Target {
        self.provider = address(text);
        self
    }
}

/// The place of an error in its line: first and last column.
fn columns(error: &SpecError) -> (usize, usize) {
    (error.column, error.column + error.width - 1)
}
