//! Options as data: one entry an option, with its name, the form of its value, its default, its
//! help, and the function that puts a value into place. Options of classes, settings of stacks and
//! fio's options are tables of such entries. Reading, `ugeom classes`, `--help` and the tables in
//! docs/classes all come from the same table, so they cannot differ.
//!
//! ```
//! use ugeom_classes::set_field;
//! use ugeom_classes::spec::OptionDefault::{Required, Value};
//! use ugeom_classes::spec::{OptionTable, option, values};
//!
//! #[derive(Default)]
//! struct Wanted {
//!     size_bytes: u64,
//!     age_ns: Option<u64>,
//! }
//!
//! const OPTIONS: OptionTable<Wanted> = OptionTable(&[
//!     option("size", "SIZE", Required, "memory", set_field!(size_bytes = values::size)),
//!     option("age", "TIME", Value("5s"), "limit", set_field!(age_ns = values::duration_ns)),
//! ]);
//!
//! let mut wanted = Wanted::default();
//! OPTIONS.set(&mut wanted, "size", "64m")?;
//! OPTIONS.set(&mut wanted, "age", "2m")?;
//! assert_eq!((wanted.size_bytes, wanted.age_ns), (64 << 20, Some(120_000_000_000)));
//! # Ok::<(), ugeom_classes::spec::ValueError>(())
//! ```

use super::error::quoted;
use super::nearest;
use ugeom_measure::units::UnitError;

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[allow(missing_docs, reason = "messages name the fields")]
pub struct ValueError {
    pub message: String,
    /// The correct text, if known.
    pub help: Option<String>,
}

impl ValueError {
    /// An error without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    /// Error and advice in one line.
    pub fn in_one_line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<String> for ValueError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<UnitError> for ValueError {
    fn from(error: UnitError) -> Self {
        Self {
            message: error.to_string(),
            help: error.help().map(|help| format!("write {help}")),
        }
    }
}

/// The value of an option that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionDefault {
    /// None: the option must be given.
    Required,
    /// None: nothing happens without the option.
    Absent,
    /// This text, read as if it had been given.
    Value(&'static str),
    /// One that depends on something else, in words.
    Depends(&'static str),
}

impl OptionDefault {
    /// The default as help prints it, in brackets; nothing where there is none.
    pub fn shown(self) -> Option<&'static str> {
        match self {
            Self::Required => Some("required"),
            Self::Absent => None,
            Self::Value(text) | Self::Depends(text) => Some(text),
        }
    }
}

/// Puts a value into place.
pub type SetOption<T> = fn(&mut T, &str) -> Result<(), ValueError>;

/// One option of a `T`.
pub struct OptionEntry<T: 'static> {
    /// The texts for help and errors.
    pub doc: OptionDoc,
    /// Puts a value into place.
    pub set: SetOption<T>,
}

// Derived, they would need a `T` that can be copied.
impl<T: 'static> Clone for OptionEntry<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: 'static> Copy for OptionEntry<T> {}

impl<T> OptionEntry<T> {
    /// The same option with other names for it.
    #[must_use]
    pub const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.doc.aliases = aliases;
        self
    }
}

/// The help of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionDoc {
    /// The name, as it is written.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The form of the value, as in a synopsis (`SIZE`, `0|1`).
    pub value: &'static str,
    /// The value that holds when the option is not given.
    pub default: OptionDefault,
    /// The value that the name alone stands for; nothing: a value is needed.
    pub bare: Option<&'static str>,
    /// The effect of the option.
    pub help: &'static str,
}

/// Declares an option of a table: name, form of the value, default, help, setter.
pub const fn option<T>(
    name: &'static str,
    value: &'static str,
    default: OptionDefault,
    help: &'static str,
    set: SetOption<T>,
) -> OptionEntry<T> {
    let doc = OptionDoc {
        name,
        aliases: &[],
        value,
        default,
        bare: None,
        help,
    };
    OptionEntry { doc, set }
}

/// The setter that parses the text with a reader and stores the value in a field:
/// `set_field!(size_bytes = values::size)`. The reader gives the type of the field, or `T` for a
/// field of type `Option<T>`. `set_field!(it, text => rate = read(text, &it.rate)?)` puts an
/// expression there.
#[macro_export]
macro_rules! set_field {
    ($($field:ident).+ = $read:expr) => {
        $crate::set_field!(it, text => $($field).+ = $read(text)?.into())
    };
    ($it:ident, $text:ident => $($field:ident).+ = $value:expr) => {
        |$it, $text| {
            $it.$($field).+ = $value;
            Ok(())
        }
    };
}

/// All options of a `T`, in the order in which help prints them and values are set.
pub struct OptionTable<T: 'static>(pub &'static [OptionEntry<T>]);

impl<T> OptionTable<T> {
    /// The option of that name or alias.
    pub fn find(&self, name: &str) -> Option<&'static OptionEntry<T>> {
        let entries: &'static [OptionEntry<T>] = self.0;
        entries
            .iter()
            .find(|entry| entry.doc.name == name || entry.doc.aliases.contains(&name))
    }

    /// All names, without aliases.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|entry| entry.doc.name).collect()
    }

    /// Sets the field of `target` that belongs to the option `name`.
    ///
    /// # Errors
    /// There is no such option, or the value is refused.
    pub fn set(&self, target: &mut T, name: &str, value: &str) -> Result<(), ValueError> {
        let entry = self.find(name).ok_or_else(|| self.unknown(name))?;
        (entry.set)(target, value)
    }

    /// The error for a name that the table does not have, with the nearest one.
    pub fn unknown(&self, name: &str) -> ValueError {
        let error = ValueError::new(format!("there is no option {}", quoted(name)));
        let names = self.names();
        let known = self.0.iter().flat_map(|entry| entry.doc.aliases).copied();
        error.with_help(match nearest(name, names.iter().copied().chain(known)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", names.join(", ")),
        })
    }
}

/// The table of some options in Markdown, as pages have it.
pub fn markdown_table(options: &[OptionDoc]) -> String {
    let mut text = "| option | default | meaning |\n|---|---|---|\n".to_owned();
    for option in options {
        let value = option.value.replace('|', "\\|");
        let default = match option.default {
            OptionDefault::Required => "required".to_owned(),
            OptionDefault::Absent => String::new(),
            OptionDefault::Value(value) => format!("`{value}`"),
            OptionDefault::Depends(words) => words.to_owned(),
        };
        let (name, help) = (option.name, option.help.replace('|', "\\|"));
        let equals = if value.is_empty() { "" } else { "=" };
        text.push_str(&format!(
            "| `{name}{equals}{value}` | {default} | {help} |\n"
        ));
    }
    text
}

/// A table of options of anything.
pub trait DeclaredOptions: Sync {
    /// All options, in their order.
    fn docs(&self) -> Vec<OptionDoc>;

    /// Reads one value and forgets it, to test a default or an example in a document.
    ///
    /// # Errors
    /// As [`OptionTable::set`].
    fn try_value(&self, name: &str, value: &str) -> Result<(), ValueError>;
}

impl<T: Default> DeclaredOptions for OptionTable<T> {
    fn docs(&self) -> Vec<OptionDoc> {
        self.0.iter().map(|entry| entry.doc).collect()
    }

    fn try_value(&self, name: &str, value: &str) -> Result<(), ValueError> {
        self.set(&mut T::default(), name, value)
    }
}
