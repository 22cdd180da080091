//! The stack language: how a target is written, on a command line or in a TOML file.
//!
//! ```text
//! disk.img                              a path
//! md:64m | nop:delay=1ms | mbr@s1       layers from the bottom up, and one of the providers
//! stacks.toml#slow                      a stack described in a file
//! ```
//!
//! Nothing here opens a file or knows what a class does: text becomes a [`Target`], classes read
//! their arguments from it through a table of [declared options](OptionTable), and every error
//! points at the column. The grammar and its reasons stand in `docs/stack-language.md`.

mod arguments;
mod ast;
mod declared;
mod error;
mod file;
mod glyph;
mod nearest;
mod parse;
mod settings;
#[cfg(test)]
mod tests;
pub mod values;

pub use arguments::LayerArguments;
pub use ast::{Address, FILE_CLASS, Layer, Opt, StackRef, Target};
pub use declared::{
    DeclaredOptions, OptionDefault, OptionDoc, OptionEntry, OptionTable, SetOption, ValueError,
    markdown_table, option,
};
pub use error::{Origin, Span, Spanned, SpecError};
pub use file::{Stack, StackFile};
pub use nearest::nearest;
pub use settings::{DispatchMode, SETTINGS, Settings, StatisticsMode};

/// The longest specification that is read, in bytes.
pub(crate) const SPEC_BYTES_MAX: usize = 64 << 10;
/// The longest stack file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// The most layers of a target, those of the stacks it is based on included.
pub(crate) const LAYERS_MAX: usize = 64;
/// The most arguments of one layer.
pub(crate) const OPTIONS_MAX: usize = 64;
/// The most stacks that can stand on one another in a stack file.
pub(crate) const BASES_MAX: usize = 16;

/// Reads a target. `classes` are the names of the classes that there are, in lower case; the
/// class of paths, [`FILE_CLASS`], need not be among them.
///
/// # Errors
/// The text does not follow the grammar, names a class that is not there, or is too long.
pub fn parse(text: &str, classes: &[&str]) -> Result<Target, SpecError> {
    let origin = Origin::command_line(text);
    parse::target(&origin, text, parse::Begin::Bottom, classes)
}

/// Reads a target together with the stack that it may name: [`parse`] and [`expanded`].
///
/// # Errors
/// As these.
pub fn stack(
    text: &str,
    classes: &[&str],
    read_file: impl FnOnce(&str) -> std::io::Result<String>,
) -> Result<Stack, SpecError> {
    expanded(parse(text, classes)?, classes, read_file)
}

/// Puts the layers of a stack file in the place of its name, if the target has one. `read_file`
/// gives the text of the file; it should give no more than [`FILE_BYTES_MAX`] bytes and one.
///
/// # Errors
/// The file cannot be read, or is wrong, or has no stack of that name.
pub(crate) fn expanded(
    target: Target,
    classes: &[&str],
    read_file: impl FnOnce(&str) -> std::io::Result<String>,
) -> Result<Stack, SpecError> {
    let Some(reference) = &target.stack else {
        return Ok(Stack::from(target));
    };
    let path = reference.file.value.as_str();
    let text = read_file(path).map_err(|error| {
        let message = format!("the stack file cannot be read: {error}");
        target.origin.error(reference.file.span, message)
    })?;
    StackFile::parse(path, &text, classes)?.expand(target)
}
