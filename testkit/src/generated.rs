//! Parts of pages that are generated from the code. `UGEOM_WRITE_DOCS=1` writes them anew, instead
//! of comparing.

use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- options: generated from the code, see CONTRIBUTING.md -->\n";
const END: &str = "<!-- end of options -->\n";

/// Compares the text between the marks of a page with the code's declaration, or writes it.
///
/// # Panics
/// The page has no marks, or says something else.
pub fn compare(page: &Path, declared: &str) {
    let shown = page.display();
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let (before, rest) = text
        .split_once(BEGIN)
        .unwrap_or_else(|| panic!("{shown} has no line {BEGIN}"));
    let (found, after) = rest
        .split_once(END)
        .unwrap_or_else(|| panic!("{shown} has no line {END}"));
    if std::env::var_os("UGEOM_WRITE_DOCS").is_some() {
        let whole = [before, BEGIN, declared, END, after].concat();
        fs::write(page, whole).expect("the page is written");
    } else {
        assert_eq!(
            found, declared,
            "{shown}: write it anew with UGEOM_WRITE_DOCS=1"
        );
    }
}
