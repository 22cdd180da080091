//! Stack files: their meaning and the places of their faults.

use super::*;
use crate::spec::{
    BASES_MAX, DispatchMode, FILE_BYTES_MAX, LAYERS_MAX, Settings, Stack, StackFile,
    StatisticsMode, parse, stack,
};

const FILE: &str = r#"
[stack.slow]
layers = ["md:64m,sectorsize=4k", "nop:delay=1ms | mbr@s1"]
dispatch = "queued"
statistics = "counts"

[stack.slower]
base = "slow"
layers = ['nop:delay=9ms']
statistics = "time"
taste = false

[stack.other-slice]
base = "slow"
layers = ["bsd@a"]

[stack.same]
base = "slow"

[stack.image]
layers = ["disk.img"]
"#;

fn expanded(text: &str) -> Stack {
    let read = |path: &str| {
        assert_eq!(path, "s.toml");
        Ok(FILE.to_owned())
    };
    stack(text, CLASSES, read).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn slow() -> Vec<Layer> {
    vec![
        layer("md").with("64m").with_option("sectorsize", "4k"),
        layer("nop").with_option("delay", "1ms"),
        layer("mbr"),
    ]
}

#[test]
fn a_stack_is_its_layers_and_settings() {
    let stack = expanded("s.toml#slow");
    assert_eq!(stack.target, target(slow()).at("s1"));
    assert_eq!(
        stack.settings,
        Settings {
            dispatch: Some(DispatchMode::Queued),
            statistics: Some(StatisticsMode::Counts),
            taste: None,
            ..Settings::default()
        }
    );
    assert_eq!(
        expanded("s.toml#image").target,
        target(vec![file("disk.img")])
    );
    assert_eq!(expanded("s.toml#image").settings, Settings::default());
}

#[test]
fn a_stack_stands_on_the_provider_of_its_base() {
    let stack = expanded("s.toml#slower");
    let upper = layer("nop").with_option("delay", "9ms").on("s1");
    assert_eq!(stack.target, target([slow(), vec![upper]].concat()));
    assert_eq!(
        stack.settings,
        Settings {
            dispatch: Some(DispatchMode::Queued),
            statistics: Some(StatisticsMode::Time),
            taste: Some(false),
            ..Settings::default()
        }
    );
    assert_eq!(expanded("s.toml#same"), expanded("s.toml#slow"));
}

#[test]
fn a_target_puts_layers_and_an_address_on_a_stack() {
    let stack = expanded("s.toml#other-slice | nop");
    let upper = vec![layer("bsd").on("s1"), layer("nop").on("a")];
    assert_eq!(stack.target, target([slow(), upper].concat()));

    assert_eq!(expanded("s.toml#slow@s2").target, target(slow()).at("s2"));
    let stack = expanded("s.toml#slow@s2 | bsd@c");
    assert_eq!(
        stack.target,
        target([slow(), vec![layer("bsd").on("s2")]].concat()).at("c")
    );
}

#[test]
fn an_expanded_stack_prints_as_a_target_that_means_the_same() {
    for name in ["slow", "slower", "other-slice", "same", "image"] {
        let stack = expanded(&format!("s.toml#{name}"));
        let printed = stack.target.to_string();
        assert_eq!(parse(&printed, CLASSES), Ok(stack.target), "{printed}");
    }
}

#[test]
fn a_target_without_a_stack_file_reads_no_file() {
    let no_file = |_: &str| -> std::io::Result<String> { panic!("read") };
    let stack = stack("md:64m | mbr", CLASSES, no_file).unwrap();
    assert_eq!(stack, Stack::from(parse("md:64m | mbr", CLASSES).unwrap()));
}

#[test]
fn errors_of_the_reference_point_into_the_target() {
    let read = |_: &str| Ok(FILE.to_owned());
    let error = stack("s.toml#slwo | nop", CLASSES, read).unwrap_err();
    assert_eq!((error.file.as_deref(), columns(&error)), (None, (8, 11)));
    assert_eq!(error.message, "the file has no stack `slwo`");
    assert_eq!(error.help.as_deref(), Some("did you mean `slow`?"));

    let unreadable = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let error = stack("s.toml#slow", CLASSES, unreadable).unwrap_err();
    assert_eq!(columns(&error), (1, 6));
    assert_eq!(
        error.message,
        "the stack file cannot be read: entity not found"
    );
}

/// Text; line; first and last column; message.
type Row = (&'static str, usize, (usize, usize), &'static str);

#[rustfmt::skip]
const WRONG: &[Row] = &[
    ("[stack.a]\nlayers = [\"md:1m\", \"npo:x=1\"]", 2, (21, 23), "there is no class `npo`"),
    ("[stack.a]\nlayers = ['md:1m', 'nop:x=\"']", 2, (27, 27), "this quote is not closed"),
    ("[stack.a]\nlayers = [\n  \"\u{fc}.img\",\n  \"b.img\"\n]", 4, (4, 8),
        "`b.img` is not a class"),
    // With an escape in the literal only the whole of it can be shown.
    ("[stack.a]\nlayers = [\"m\\u0064d:1m\"]", 2, (11, 23), "there is no class `mdd`"),
    ("[stack.a]\nlayers = [\"\"\"mdd:1m\"\"\"]", 2, (11, 22), "there is no class `mdd`"),
    ("[stack.a]\nlayers = [\"\"]", 2, (12, 12), "there is no layer here"),
    ("[stack.a]\nlayers = []", 1, (8, 8), "the stack `a` has no layers"),
    ("[stack.\"a b\"]\nlayers = [\"zero\"]", 1, (8, 12), "this is not the name of a stack"),
    ("[stack.a]\nbase = \"b\"", 2, (8, 10), "the file has no stack `b`"),
    ("[stack.a]\nbase = \"a\"", 2, (8, 10), "the bases of `a` form a loop"),
    ("stack.a.base = \"b\"\nstack.b.base = \"c\"\nstack.c.base = \"b\"", 1, (16, 18),
        "the bases of `b` form a loop"),
    ("[stack.a]\nbase = \"b\"\nlayers = [\"d.img\"]\n[stack.b]\nlayers = [\"zero\"]", 3, (12, 16),
        "`d.img` is not a class"),
    ("[stack.a]\nlayers = [\"t.toml#b\"]", 2, (12, 17), "a stack file names no other file"),
    ("[stack.a]\ncomponents = [\"a.img\", \"b.img\"]", 2, (14, 31),
        "`components` is reserved for mirrors and stripes"),
    ("[stack.a]\nlayer = [\"zero\"]", 2, (1, 5), "there is no key `layer`"),
    ("[stakc.a]\nlayers = []", 1, (2, 6), "there is no key `stakc`"),
    ("[stack.a]\nlayers = [\"zero\"]\ndispatch = \"quick\"", 3, (12, 18),
        "dispatch=quick: expected one of direct, queued"),
    ("[stack.a]\nlayers = \"zero\"", 2, (10, 15),
        "an array of strings is needed here, not a value of type string"),
];

#[test]
fn errors_in_a_file_name_line_and_column() {
    for (text, line, place, message) in WRONG {
        let error = StackFile::parse("s.toml", text, CLASSES)
            .map(drop)
            .unwrap_err();
        assert_eq!(error.message, *message, "{text}");
        assert_eq!(
            (error.line, columns(&error)),
            (*line, *place),
            "{text}\n{error}"
        );
        assert_eq!(error.input, text.lines().nth(line - 1).unwrap());
        assert_eq!(error.file.as_deref(), Some("s.toml"));
    }
}

#[test]
fn an_error_in_a_file_shows_the_line_with_carets_below_the_fault() {
    let text = "\n\n\n\n\n\n\n\n\n[stack.a]\nlayers = [\"md:64m\", \"npo\"]";
    let shown = "there is no class `npo`\n  \
                 --> s.toml:11:22\n   \
                 |\n\
                 11 | layers = [\"md:64m\", \"npo\"]\n   \
                 |                      ^^^\n   \
                 = help: did you mean `nop`?";
    let error = StackFile::parse("s.toml", text, CLASSES).unwrap_err();
    assert_eq!(error.to_string(), shown);
}

#[test]
fn no_toml_is_an_error_with_its_place() {
    let error = StackFile::parse("s.toml", "[stack.a]\nlayers = [\"zero\"", CLASSES).unwrap_err();
    assert_eq!(error.line, 2);
}

#[test]
fn nothing_in_a_file_can_be_nested_too_deeply() {
    let times = FILE_BYTES_MAX / 4;
    for text in [
        "[".repeat(times),
        format!("a = {}", "[".repeat(times)),
        format!("a = {}", "{a=".repeat(times)),
        format!("stack.a.components{} = 1", ".a".repeat(times)),
        format!("[stack.a.components{}]", ".a".repeat(times)),
        format!(
            "[stack.a]\ncomponents = {}{}",
            "[".repeat(times),
            "]".repeat(times)
        ),
    ] {
        assert!(StackFile::parse("s.toml", &text, CLASSES).is_err());
    }
}

#[test]
fn a_message_cannot_flood_or_command_the_terminal() {
    let text = format!("\"\\u001b[2J{}\" = 1", "x".repeat(100_000));
    let error = StackFile::parse("s.toml", &text, CLASSES).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("there is no key `\\x1b[2Jxxx"),
        "{}",
        &shown[..40]
    );
    assert!(shown.chars().count() < 600, "{}", shown.len());

    let stacks: String = (0..1000)
        .map(|i| format!("[stack.s{i}]\nlayers = ['zero']\n"))
        .collect();
    let file = StackFile::parse("s.toml", &stacks, CLASSES).unwrap();
    let error = file
        .expand(parse("s.toml#wombat", CLASSES).unwrap())
        .unwrap_err();
    assert!(error.help.unwrap().ends_with(", s115, ..."));
}

#[test]
fn size_depth_and_layers_of_a_file_are_bounded() {
    let long = "#".repeat(FILE_BYTES_MAX + 1);
    assert!(StackFile::parse("s.toml", &long[1..], CLASSES).is_ok());
    let error = StackFile::parse("s.toml", &long, CLASSES).unwrap_err();
    assert!(error.message.contains("at most 1048576 bytes"), "{error}");

    let tower = |height: usize| {
        let bases = (1..height).map(|i| format!("s{i:02}.base = \"s{:02}\"\n", i - 1));
        format!(
            "[stack]\ns00.layers = [\"zero\"]\n{}",
            bases.collect::<String>()
        )
    };
    assert!(StackFile::parse("s.toml", &tower(BASES_MAX + 1), CLASSES).is_ok());
    let error = StackFile::parse("s.toml", &tower(BASES_MAX + 2), CLASSES).unwrap_err();
    assert_eq!(error.message, "a stack has more than 16 bases");

    let wide = |layers: usize| {
        let upper = "\"mbr\", ".repeat(layers - 1);
        format!("[stack.a]\nlayers = [\"zero\"]\n[stack.b]\nbase = \"a\"\nlayers = [{upper}]")
    };
    assert!(StackFile::parse("s.toml", &wide(LAYERS_MAX), CLASSES).is_ok());
    let error = StackFile::parse("s.toml", &wide(LAYERS_MAX + 1), CLASSES).unwrap_err();
    assert_eq!(
        error.message,
        "with its base the stack has more than 64 layers"
    );
    let full = StackFile::parse("s.toml", &wide(LAYERS_MAX), CLASSES).unwrap();
    let error = full
        .expand(parse("s.toml#b | bsd", CLASSES).unwrap())
        .unwrap_err();
    assert_eq!(
        (error.message.as_str(), columns(&error)),
        ("a target has at most 64 layers", (8, 8))
    );
}
