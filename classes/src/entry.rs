//! The registry entry of a class: its names, its options, its constructor.

use crate::build::{BuildContext, BuildError};
use crate::spec::{DeclaredOptions, LayerArguments, OptionTable};
use ugeom_stack::{Class, Plan, ProviderView, TasteError, Taster};

/// Where in a stack the geoms of a class stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// At the bottom: it brings a device into being.
    Bottom,
    /// On one provider, with one provider of its own.
    Layer,
    /// On one provider, with the providers that its metadata describes.
    Table,
}

impl Role {
    /// The word for it, as `ugeom classes` prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bottom => "bottom",
            Self::Layer => "layer",
            Self::Table => "table",
        }
    }
}

/// The builder of a bottom layer.
pub type BuildBottom = fn(&mut BuildContext<'_>, LayerArguments<'_>) -> Result<Plan, BuildError>;
/// The builder of a layer on a provider.
pub type BuildLayer =
    fn(&mut BuildContext<'_>, LayerArguments<'_>, below: &ProviderView) -> Result<Plan, BuildError>;

/// Why a class makes no geom of the provider that it tasted.
pub enum Miss {
    /// Nothing is reported: the class does not look there.
    Elsewhere,
    /// There is no such table, which is reported only where the user named the class.
    Absent(String),
    /// A table of the class that it cannot use.
    Unusable(String),
}

impl Miss {
    /// [`Miss::Absent`] or [`Miss::Unusable`].
    pub(crate) fn absent_if(is_absent: bool, problem: impl ToString) -> Self {
        match is_absent {
            true => Self::absent(problem),
            false => Self::unusable(problem),
        }
    }

    pub(crate) fn absent(problem: impl ToString) -> Self {
        Self::Absent(problem.to_string())
    }

    pub(crate) fn unusable(problem: impl ToString) -> Self {
        Self::Unusable(problem.to_string())
    }
}

/// How a class tastes.
pub type TasteFn = fn(&mut Taster<'_>) -> Result<Plan, Miss>;

/// How a geom of a class is made from its options.
#[derive(Clone, Copy)]
pub enum Build {
    /// It has no consumer: the bottom of a stack.
    Bottom(BuildBottom),
    /// It opens one provider below and offers another one.
    Layer(BuildLayer),
    /// It has no line of its own in a stack: tasting makes it.
    Table,
}

/// A class as the registry knows it.
#[derive(Clone, Copy)]
pub struct ClassEntry {
    /// Its name in the stack language (`md`).
    pub name: &'static str,
    /// GEOM's name of it (`MD`), which its geoms carry.
    pub class: &'static str,
    /// The description, in one line.
    pub about: &'static str,
    /// The place of the class in a stack.
    pub role: Role,
    /// The names of the values that can stand without a name, in their order.
    pub positional: &'static [&'static str],
    /// All its options, each declared once.
    pub options: &'static dyn DeclaredOptions,
    /// How a geom of it is made.
    pub build: Build,
    /// How it tastes, if it does.
    pub taste: Option<TasteFn>,
}

/// A class of partition tables: it has no options, and tasting makes its geoms.
pub(crate) const fn table(
    name: &'static str,
    class: &'static str,
    about: &'static str,
    taste: TasteFn,
) -> ClassEntry {
    ClassEntry {
        name,
        class,
        about,
        role: Role::Table,
        positional: &[],
        options: &NO_OPTIONS,
        build: Build::Table,
        taste: Some(taste),
    }
}

impl Class for ClassEntry {
    #[expect(
        clippy::misnamed_getters,
        reason = "`name` is that of the stack language"
    )]
    fn name(&self) -> &'static str {
        self.class
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        let Some(taste) = self.taste else { return Ok(None) };
        let problem = match taste(taster) {
            Ok(plan) => return Ok(Some(plan)),
            Err(Miss::Unusable(problem)) => problem,
            Err(Miss::Absent(problem)) if taster.insists() => problem,
            Err(Miss::Absent(_) | Miss::Elsewhere) => return Ok(None),
        };
        Err(TasteError {
            class: self.class,
            provider: taster.name().to_owned(),
            problem,
        })
    }
}

/// The options of a class that has none.
pub(crate) const NO_OPTIONS: OptionTable<()> = OptionTable(&[]);
