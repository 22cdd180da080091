//! Properties of every text: it is read or refused without a panic, an error points into it, and
//! the printed form of a parsed text reads the same.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::spec::{StackFile, StackRef, nearest, parse};

/// Text of the characters that mean something here, so that the grammar is often met.
fn likely_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z0-9|@?:,=#&/.%\"\\\\ \u{fc}\n-]{0,12}",
        1 => proptest::sample::select(
            ["md:64m", " | ", "mbr", "nop:delay=1ms", "@s1", "s.toml#a", "file:", "?direct=1", "\""]
                .map(str::to_owned).to_vec()),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_-]{0,8}"
}

/// A value or address of any characters.
fn word(least: usize) -> impl Strategy<Value = String> {
    let common = vec(proptest::char::range(' ', '~'), least..12);
    prop_oneof![common, vec(any::<char>(), least..8)].prop_map(|chars| chars.into_iter().collect())
}

fn options() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::btree_map(name(), word(0), 0..4)
        .prop_map(|options| options.into_iter().collect())
}

fn with_options(layer: Layer, options: &[(String, String)]) -> Layer {
    options
        .iter()
        .fold(layer, |layer, (key, value)| layer.with_option(key, value))
}

fn class_layer() -> impl Strategy<Value = Layer> {
    let class = proptest::sample::select(CLASSES);
    (class, vec(word(0), 0..3), options()).prop_map(|(class, values, options)| {
        let layer = values
            .iter()
            .fold(layer(class), |layer, value| layer.with(value));
        with_options(layer, &options)
    })
}

fn path_layer() -> impl Strategy<Value = Layer> {
    let plain = prop_oneof![
        "(/|\\./)?[a-z]{1,4}(/[a-z.]{1,4}){0,2}",
        "[a-z#]{1,4}\\.toml(#[a-z])?"
    ];
    let path = prop_oneof![
        plain,
        proptest::sample::select(CLASSES).prop_map(str::to_owned),
        word(1)
    ]
    .prop_map(|path| path.replace('\0', "0"));
    (path, options()).prop_map(|(path, options)| with_options(file(&path), &options))
}

fn any_target() -> impl Strategy<Value = Target> {
    let stack =
        ("[a-z ./#|]{0,6}\\.toml", "[a-zA-Z0-9_.-]{1,6}").prop_map(|(file, name)| StackRef {
            file: spanned(&file),
            name: spanned(&name),
        });
    let bottom = prop_oneof![
        3 => path_layer().prop_map(Ok),
        2 => class_layer().prop_map(Ok),
        1 => stack.prop_map(Err),
    ];
    let upper = vec((of(word(1)), class_layer()), 0..4);
    (bottom, upper, of(word(1))).prop_map(|(bottom, upper, provider)| {
        let mut expected = target(Vec::new());
        match bottom {
            Ok(layer) => expected.layers.push(layer),
            Err(stack) => expected.stack = Some(stack),
        }
        for (on, layer) in upper {
            let on = on.as_deref().and_then(address);
            expected.layers.push(Layer { on, ..layer });
        }
        expected.provider = provider.as_deref().and_then(address);
        expected
    })
}

/// Reads `text` and checks what holds for every text.
fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text, CLASSES) {
        Ok(read) => {
            let printed = read.to_string();
            prop_assert_eq!(parse(&printed, CLASSES), Ok(read), "{}", printed);
        }
        Err(error) => check_error(text, &error)?,
    }
    Ok(())
}

fn check_error(text: &str, error: &SpecError) -> Result<(), TestCaseError> {
    let line = text.split('\n').nth(error.line - 1);
    prop_assert_eq!(line, Some(error.input.as_str()));
    // A fault may be that something is missing behind the last character.
    let length = error.input.chars().count();
    prop_assert!(
        error.column >= 1 && error.column <= length + 1,
        "{:?}",
        error
    );
    prop_assert!(
        error.width >= 1 && error.column + error.width <= length + 2,
        "{:?}",
        error
    );
    prop_assert!(!error.message.is_empty());
    let shown = error.to_string();
    prop_assert!(shown.contains('^'));
    prop_assert!(
        shown.chars().all(|c| c == '\n' || !c.is_control()),
        "{:?}",
        shown
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_likely_text_is_read_or_refused(text in likely_text()) {
        check(&text)?;
    }

    #[test]
    fn any_target_prints_as_a_text_that_reads_the_same(target in any_target()) {
        let printed = target.to_string();
        prop_assert_eq!(parse(&printed, CLASSES), Ok(target), "{}", printed);
    }

    #[test]
    fn any_file_is_read_or_refused(text in any::<String>(), layer in likely_text()) {
        let near = format!("[stack.a]\nlayers = [{}, \"mbr\"]\n", toml::Value::from(layer.clone()));
        for text in [text, near, format!("[stack.a]\nlayers = ['{layer}']")] {
            if let Err(error) = StackFile::parse("s.toml", &text, CLASSES) {
                check_error(&text, &error)?;
            }
        }
    }

    #[test]
    fn no_word_has_a_name_near_it_that_is_not_there(text in "[0-9.]{0,40}[a-z%/]{0,4}|\\PC{0,8}") {
        if let Some(near) = nearest(&text, CLASSES.iter().copied()) {
            prop_assert!(CLASSES.contains(&near));
        }
    }
}
