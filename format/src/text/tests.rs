//! Bytes through text and back, and their display.

use super::*;
use proptest::prelude::*;

#[test]
fn what_cannot_be_seen_is_escaped() {
    for (text, shown) in [
        ("disk.img", "disk.img"),
        ("Müll 日本 \\n 🖴", "Müll 日本 \\n 🖴"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\u{1b}[31m\u{7f}\u{9b}", "\\x1b[31m\\x7f\\u{9b}"),
        ("gpj\u{202e}exe", "gpj\\u{202e}exe"),
        (
            "\u{2066}\u{200b}\u{2028}\u{feff}\u{ad}",
            "\\u{2066}\\u{200b}\\u{2028}\\u{feff}\\u{ad}",
        ),
        ("\u{ffff}", "\\u{ffff}"),
    ] {
        assert_eq!(visible(text), shown);
    }
    assert_eq!(
        visible(&from_bytes(b"a\xff\x80\xc3(\xe2\x82")),
        "a\\xff\\x80\\xc3(\\xe2\\x82"
    );
}

proptest! {
    #[test]
    fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let text = from_bytes(&bytes);
        prop_assert_eq!(to_bytes(&text), bytes);
        // Reading it a second time, as an argument of a child, changes nothing.
        prop_assert_eq!(from_bytes(text.as_bytes()), text);
    }

    #[test]
    fn text_stays_text(text in any::<String>()) {
        let is_plain = text.chars().all(|c| byte_of(c).is_none());
        prop_assume!(is_plain);
        prop_assert_eq!(from_bytes(text.as_bytes()), text.clone());
        prop_assert_eq!(to_bytes(&text), text.into_bytes());
    }

    #[test]
    fn what_is_shown_has_no_hidden_character_and_is_shown_as_itself(text in any::<String>()) {
        let shown = visible(&text);
        prop_assert!(!shown.chars().any(is_hidden));
        prop_assert_eq!(visible(&shown), shown);
    }
}

#[test]
fn json_shows_nothing_hidden_and_means_the_same() {
    let name = "a\u{202e}b\u{9b}c\u{7f}\n\u{e0001}\u{e9}";
    let json = serde_json::to_string(name).expect("JSON");
    let shown = visible_json(&json);
    assert_eq!(shown, "\"a\\u202eb\\u009bc\\u007f\\n\\udb40\\udc01\u{e9}\"");
    let back: String = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(back, name);
    let pretty = "{\n  \"a\": 1\n}";
    assert_eq!(visible_json(pretty), pretty);
}
