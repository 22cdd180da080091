//! Classification of targets before they are opened: whether a text is one, and the file at its
//! bottom.

use std::path::PathBuf;
use ugeom_classes::spec::{self, FILE_CLASS};
use ugeom_classes::{TargetError, TargetOptions, open_target, path_of, registry};
use ugeom_harness::HarnessError;

/// Refuses wrong syntax, with its column. A target that cannot be opened for another
/// reason is left to the experiment, which opens it in its own way.
///
/// # Errors
/// [`HarnessError::Subject`] with the error of the parser.
pub fn check(text: &str) -> Result<(), HarnessError> {
    let options = TargetOptions {
        unlocked: true,
        ..TargetOptions::untasted()
    };
    match open_target(text, &options) {
        Err(error @ TargetError::Spec(_)) => Err(HarnessError::subject(error)),
        _ => Ok(()),
    }
}

/// The file or device at the bottom of a target; none where there is none.
pub fn bottom_file(text: &str) -> Option<PathBuf> {
    let target = spec::parse(text, &registry::names()).ok()?;
    let bottom = target.layers.first()?;
    let is_file = bottom.class.value == FILE_CLASS;
    let path = bottom.positional.first().filter(|_| is_file)?;
    Some(path_of(&path.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_below_all_layers_is_found() {
        let file = |text: &str| bottom_file(text).map(|path| path.display().to_string());
        assert_eq!(file("/dev/sda@s1 | nop").as_deref(), Some("/dev/sda"));
        assert_eq!(file("md:1m | nop"), None);
        assert!(check("md:1m").is_ok());
        assert!(check("md:1x").unwrap_err().to_string().contains("column"));
    }
}
