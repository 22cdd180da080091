//! Settings, from a stack file and from `--set KEY=VALUE`.

use super::super::{
    Dispatch, Pools, Registry, SETTINGS, Settings, Slicers, StackFile, Statistics, parse,
};

const EVERY: [(&str, &str); 8] = [
    ("dispatch", "queued"),
    ("spin", "5us"),
    ("statistics", "time"),
    ("sample", "16"),
    ("taste", "false"),
    ("registry", "locked"),
    ("pools", "shared"),
    ("slicers", "asked"),
];

fn every() -> Settings {
    Settings {
        dispatch: Some(Dispatch::Queued),
        spin_ns: Some(5_000),
        statistics: Some(Statistics::Time),
        sample: Some(16),
        taste: Some(false),
        registry: Some(Registry::Locked),
        pools: Some(Pools::Shared),
        slicers: Some(Slicers::Asked),
    }
}

#[test]
fn each_setting_can_be_given_on_the_command_line_and_in_a_file() {
    let given = EVERY
        .iter()
        .fold(Settings::default(), |below, (key, value)| {
            Settings::parse(&format!("{key}={value}"))
                .unwrap()
                .over(below)
        });
    assert_eq!(given, every());
    let mut text = "[stack.all]\nlayers = [\"md:1m\"]\n".to_owned();
    for (key, value) in EVERY {
        let bare = key == "sample" || key == "taste";
        let value = if bare {
            value.to_owned()
        } else {
            format!("{value:?}")
        };
        text.push_str(&format!("{key} = {value}\n"));
    }
    let file = StackFile::parse("all.toml", &text, &["md"]).unwrap();
    let stack = file
        .expand(parse("all.toml#all", &["md"]).unwrap())
        .unwrap();
    assert_eq!(stack.settings, every());
    assert_eq!(EVERY.map(|(key, _)| key), SETTINGS);
}

#[test]
fn the_later_word_goes_first_and_what_is_not_said_stays() {
    let direct = Settings::parse("dispatch=direct").unwrap();
    let over = direct.over(every());
    assert_eq!(over.dispatch, Some(Dispatch::Direct));
    assert_eq!(
        (over.pools, over.spin_ns),
        (Some(Pools::Shared), Some(5_000))
    );
    assert_eq!(Settings::default().over(every()), every());
}

#[test]
fn a_wrong_setting_is_refused_with_what_there_is() {
    let refused = |text: &str| Settings::parse(text).unwrap_err();
    assert!(refused("dispatch").starts_with("write KEY=VALUE; the keys are dispatch, spin,"));
    assert_eq!(
        refused("pool=shared"),
        "there is no such setting; did you mean pools?"
    );
    assert!(refused("x=1").starts_with("there is no such setting; the keys are "));
    let error = refused("registry=global");
    assert!(
        error.contains("`global`") && error.contains("`lockfree` or `locked`"),
        "{error}"
    );
    assert!(refused("pools=percore").contains("`per-core` or `shared`"));
    assert!(refused("sample=0").starts_with("one in 0 requests"));
    assert!(refused("sample=4294967296").starts_with("one in 4294967296"));
    assert!(!refused("spin=5").is_empty() && !refused("taste=maybe").is_empty());
    let wrong = "[stack.a]\nlayers = [\"md:1m\"]\nspin = \"soon\"\n";
    let error = StackFile::parse("a.toml", wrong, &["md"]).unwrap_err();
    assert!(error.to_string().contains("a.toml"), "{error}");
}
