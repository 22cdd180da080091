//! A command line without a shell, divided into words as a shell does: blanks divide, quotes and
//! backslashes keep them. Nothing is expanded.

/// The words of a command line.
///
/// # Errors
/// The defect, and its character: an open quote, no word at all.
pub(super) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars().enumerate();
    while let Some((at, character)) = characters.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                quoted(&mut characters, '\'', at, |inside| word.push(inside))?;
            }
            '"' => {
                let word = word.get_or_insert_default();
                quoted(&mut characters, '"', at, |inside| word.push(inside))?;
            }
            '\\' => {
                let Some((_, next)) = characters.next() else {
                    return Err(format!("nothing follows the backslash at character {at}"));
                };
                word.get_or_insert_default().push(next);
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err("there is no command".to_owned());
    }
    Ok(words)
}

/// The text between two quotes. In double ones a backslash keeps `"`, `\`, `$` and backquotes.
fn quoted(
    characters: &mut impl Iterator<Item = (usize, char)>,
    quote: char,
    from: usize,
    mut push: impl FnMut(char),
) -> Result<(), String> {
    let open = || format!("the quote at character {from} is not closed");
    loop {
        let (_, inside) = characters.next().ok_or_else(open)?;
        if inside == quote {
            return Ok(());
        }
        if inside != '\\' || quote == '\'' {
            push(inside);
            continue;
        }
        let (_, kept) = characters.next().ok_or_else(open)?;
        if !matches!(kept, '"' | '\\' | '$' | '`') {
            push('\\');
        }
        push(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ugeom_report::text::in_a_shell;

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("a b  c", &["a", "b", "c"][..]),
            ("a 'b c' d", &["a", "b c", "d"]),
            (r#"a"b c"d "\"\x" \  "#, &["ab cd", "\"\\x", " "]),
            ("'' x", &["", "x"]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        for wrong in ["", "  ", "a 'b", "a \"b", "a\\"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(given in prop::collection::vec("[ -~]{1,12}", 1..5)) {
            let line: Vec<String> = given.iter().map(|word| in_a_shell(word)).collect();
            prop_assert_eq!(words(&line.join(" ")).unwrap(), given);
        }

        #[test]
        fn any_text_has_words_or_a_reason(text in any::<String>()) {
            let _ = words(&text);
        }
    }
}
