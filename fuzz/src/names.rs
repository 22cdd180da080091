//! The fuzz target for names and labels.

use ugeom_format::text;

/// Bytes come back from text, and what is shown is shown as itself.
pub fn text(data: &[u8]) {
    let kept = text::from_bytes(data);
    // Characters that already stand for bytes are these bytes.
    let once = text::to_bytes(&kept);
    assert_eq!(text::from_bytes(&once), kept);
    if !kept
        .chars()
        .any(|c| ('\u{10ff80}'..='\u{10ffff}').contains(&c))
    {
        assert_eq!(once, data);
    }
    let shown = text::visible(&kept);
    assert_eq!(text::visible(&shown), shown);
}
