//! docs/run.md holds the options that the code declares.
//!
//! `UGEOM_WRITE_DOCS=1 cargo test -p ugeom-job --test documents` writes the table anew.

use std::path::Path;

use ugeom_classes::spec::{DeclaredOptions as _, markdown_table};
use ugeom_job::options::OPTIONS;

#[test]
fn the_table_of_options_is_that_which_the_code_declares() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/run.md");
    ugeom_testkit::generated::compare(&page, &markdown_table(&OPTIONS.docs()));
}
