//! The meaning of a specification: a target, its layers from the bottom up, and the provider to
//! use. Printing one gives its canonical form, which reads as the same target again.

use std::fmt;

use super::error::{Origin, Span, Spanned};

/// The class of the layer that a path stands for.
pub const FILE_CLASS: &str = "file";

/// A device made of layers, or the one that a stack file describes with layers put on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The stack of a stack file at the bottom (`stacks.toml#slow`), if the target begins so.
    /// [`super::StackFile::expand`] replaces it by its layers.
    pub stack: Option<StackRef>,
    /// The layers, the bottom one first. Empty only above a [`StackRef`].
    pub layers: Vec<Layer>,
    /// The addressed provider, after the last `@`. Nothing: the provider of the top layer.
    pub provider: Option<Address>,
    /// The text it was read from, for errors about the provider.
    pub origin: Origin,
}

/// A reference to a stack in a stack file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRef {
    /// The path of the file; its name ends in `.toml`.
    pub file: Spanned<String>,
    /// The name of the stack in it.
    pub name: Spanned<String>,
}

/// One layer: a class with its arguments. A path is a layer of the class [`FILE_CLASS`] whose one
/// positional argument is the path.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The provider below to which the layer attaches, after the `@` before its `|`. Nothing: the
    /// provider of the layer below. Never set in the bottom layer of a target.
    pub on: Option<Address>,
    /// The name of the class.
    pub class: Spanned<String>,
    /// The values without a name, which come before the options.
    pub positional: Vec<Spanned<String>>,
    /// The values with a name, in the order written; no name stands twice.
    pub options: Vec<Opt>,
    /// The whole layer without its address.
    pub span: Span,
    /// The text that this layer's spans refer to, except that of `on`, which stands in the text
    /// of the layer below.
    pub origin: Origin,
}

/// `key=value`, an option of a layer or of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opt {
    /// The part in front of `=`.
    pub key: Spanned<String>,
    /// The value with quotes and backslashes resolved; it may be empty.
    pub value: Spanned<String>,
}

/// The name of a provider, or the end of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The text after the `@`.
    pub text: Spanned<String>,
    /// The text that the span refers to.
    pub origin: Origin,
    /// The missing path whose end was taken for the address, for the error.
    pub missing_path: Option<String>,
}

impl Address {
    /// The provider that is meant, of those called `names`: the one with exactly this name, or
    /// else the one whose name is `from`, the name of the provider that the layer before left off
    /// at, followed by it. So above `md0` both `@s1a` and `@md0s1a` find `md0s1a`.
    pub fn find<'a>(
        &self,
        from: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let text = self.text.value.as_str();
        let mut by_suffix = None;
        for name in names {
            if name == text {
                return Some(name);
            }
            if by_suffix.is_none() && name.strip_prefix(from) == Some(text) {
                by_suffix = Some(name);
            }
        }
        by_suffix
    }

    /// An error about this address.
    pub fn error(&self, message: impl Into<String>) -> super::SpecError {
        self.origin.error(self.text.span, message)
    }
}

impl PartialEq for Layer {
    /// Two layers are equal when they mean the same, wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        let Layer {
            on,
            class,
            positional,
            options,
            span: _,
            origin: _,
        } = self;
        (on, class, positional, options)
            == (&other.on, &other.class, &other.positional, &other.options)
    }
}

impl Eq for Layer {}

impl Layer {
    /// An error about this whole layer.
    pub fn error(&self, message: impl Into<String>) -> super::SpecError {
        self.origin.error(self.span, message)
    }

    fn write_path(&self, f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
        if !reads_as_a_path(path) {
            write!(f, "{FILE_CLASS}:")?;
        }
        f.write_str(&quoted_unless(path, |c| is_safe(c) || "/~,=:".contains(c)))?;
        for (i, option) in self.options.iter().enumerate() {
            write!(f, "{}{option}", if i == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stack) = &self.stack {
            write!(f, "{stack}")?;
        }
        for (i, layer) in self.layers.iter().enumerate() {
            if let Some(on) = &layer.on {
                write!(f, "{on}")?;
            }
            if i > 0 || self.stack.is_some() {
                f.write_str(" | ")?;
            }
            write!(f, "{layer}")?;
        }
        match &self.provider {
            Some(address) => write!(f, "{address}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for StackRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = quoted_unless(&self.file.value, |c| is_safe(c) || c == '/');
        write!(f, "{file}#{}", self.name.value)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (FILE_CLASS, [path]) = (self.class.value.as_str(), self.positional.as_slice()) {
            return self.write_path(f, &path.value);
        }
        f.write_str(&self.class.value)?;
        let mut before = ':';
        for value in &self.positional {
            // Behind the class's colon, two slashes would make a URI of it.
            let uri = before == ':' && value.value.starts_with("//");
            let plain = |c| !uri && is_value_char(c);
            write!(f, "{before}{}", quoted_unless(&value.value, plain))?;
            before = ',';
        }
        for option in &self.options {
            write!(f, "{before}{option}")?;
            before = ',';
        }
        Ok(())
    }
}

impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}",
            self.key.value,
            quoted_unless(&self.value.value, is_value_char)
        )
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", quoted_unless(&self.text.value, is_safe))
    }
}

/// Whether a path can stand at the bottom without `file:`, whatever classes there are: it begins
/// as only paths do, or holds a dot or a slash before any colon, and is no stack file.
fn reads_as_a_path(path: &str) -> bool {
    let head = path.split(':').next().unwrap_or("");
    (path.starts_with(['/', '.']) || head.contains(['.', '/'])) && !path.contains(".toml")
}

/// A character that means itself everywhere.
fn is_safe(c: char) -> bool {
    c.is_alphanumeric() || "._+-".contains(c)
}

fn is_value_char(c: char) -> bool {
    is_safe(c) || "/%:".contains(c)
}

/// `text` as it is if all its characters mean themselves here, else in double quotes.
fn quoted_unless(text: &str, is_plain: impl Fn(char) -> bool) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
