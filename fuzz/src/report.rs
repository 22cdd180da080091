//! Saved results: whatever is read, it is refused or shown in every form, and compared with itself
//! and its own cells.

use ugeom_harness::compare::{self, Loaded};
use ugeom_lab::registry;
use ugeom_report::{Page, Style, to_html};

/// The text of a result; true when it was shown.
pub fn show(data: &[u8]) -> bool {
    let Ok(saved) = registry::read(String::from_utf8_lossy(data).into_owned()) else {
        return false;
    };
    in_every_form(saved.page());
    let html = to_html(&[saved]);
    assert!(!html.contains("<script"), "nothing is run");
    true
}

/// The same, for `compare`.
pub fn compare(data: &[u8]) {
    let Ok(loaded) = Loaded::read("a.json", &String::from_utf8_lossy(data)) else {
        return;
    };
    let options = compare::Options::default();
    for results in [vec![loaded.clone()], vec![loaded.clone(), loaded]] {
        if let Ok(compared) = compare::compare(&results, &options) {
            in_every_form(&ugeom_report::compare::page(&compared));
        }
    }
}

fn in_every_form(page: &Page) {
    for text in [
        page.to_text(100),
        page.to_markdown(),
        page.to_csv(),
        page.to_screen(80, Style::Plain),
    ] {
        assert!(!text.contains('\u{1b}'), "nothing speaks to the terminal");
    }
}
