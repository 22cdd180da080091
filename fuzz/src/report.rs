//! Saved results: whatever is read, it is refused or shown in every form.

use ugeom_bench::report::{Saved, to_html};

/// The text of a result.
pub fn show(data: &[u8]) {
    let Ok(saved) = Saved::read(String::from_utf8_lossy(data).into_owned()) else {
        return;
    };
    let page = saved.page();
    for text in [page.to_text(100), page.to_markdown(), page.to_csv()] {
        assert!(!text.contains('\u{1b}'), "nothing speaks to the terminal");
    }
    let html = to_html(&[saved]);
    assert!(!html.contains("<script"), "nothing is run");
}
