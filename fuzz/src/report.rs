//! Saved results: whatever is read, it is refused or shown in every form, and compared with itself
//! and its own cases.

use ugeom_harness::compare::{self, Loaded, Side, Source};
use ugeom_harness::{document, history, tidy};
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

/// A result of any program, as a report, as a table and compared with itself; and a file of results
/// split into these.
pub fn foreign(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for part in document::results(&text).unwrap_or_default() {
        assert!(text.contains(part), "a part is a part of the text");
    }
    let Ok(source) = Source::read("a.json", "case", &text) else { return };
    let values = source.series.iter().flat_map(|one| &one.values);
    assert!(values.clone().all(|value| value.is_finite()));
    let table = tidy::of_series(source.format.id(), &source.series).to_csv();
    assert_eq!(
        table.lines().count(),
        values.count() + 1,
        "a line for each value"
    );
    let page = ugeom_report::foreign::page("a.json", source.format, &source.series);
    in_every_form(&page);
    let side = Side {
        name: "a".to_owned(),
        files: vec![source],
    };
    let options = compare::CompareOptions::default();
    if let Ok(compared) = compare::between(&side, std::slice::from_ref(&side), &options) {
        in_every_form(&ugeom_report::compare::page(&compared));
    }
}

/// The file of a history: read, or refused; its series are judged.
pub fn history(data: &[u8]) {
    let Ok(history) = history::parse("history", data) else { return };
    for track in history.tracks() {
        let checked = track.check(0.05, None, 0.05);
        assert!(checked.changes.iter().all(|change| change.at > 0));
    }
}

/// The same, for `compare`.
pub fn compare(data: &[u8]) {
    let Ok(loaded) = Loaded::read("a.json", &String::from_utf8_lossy(data)) else { return };
    let options = compare::CompareOptions::default();
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
        page.observations().to_csv(),
        page.to_screen(80, Style::Plain),
    ] {
        assert!(!text.contains('\u{1b}'), "nothing speaks to the terminal");
    }
}
