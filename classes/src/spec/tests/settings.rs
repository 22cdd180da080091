//! Settings, from a stack file and from `--set KEY=VALUE`.

use super::super::{
    DeclaredOptions, DispatchMode, OptionDefault, SETTINGS, Settings, StackFile, StatisticsMode,
    parse,
};
use crate::target::{QUEUED_SPIN_NS, TIME_ONE_IN};
use ugeom_stack::{Pools, Registry, Slicers};

const EVERY: [(&str, &str); 8] = [
    ("dispatch", "queued"),
    ("spin", "5us"),
    ("statistics", "time"),
    ("sample", "16"),
    ("taste", "false"),
    ("registry", "locked"),
    ("pools", "shared"),
    ("slicers", "called"),
];

fn every() -> Settings {
    Settings {
        dispatch: Some(DispatchMode::Queued),
        spin_ns: Some(5_000),
        statistics: Some(StatisticsMode::Time),
        sample: Some(16),
        taste: Some(false),
        registry: Some(Registry::Locked),
        pools: Some(Pools::Shared),
        slicers: Some(Slicers::Called),
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
    assert_eq!(EVERY.map(|(key, _)| key), SETTINGS.names()[..]);
}

#[test]
fn the_later_word_goes_first_and_what_is_not_said_stays() {
    let direct = Settings::parse("dispatch=direct").unwrap();
    let over = direct.over(every());
    assert_eq!(over.dispatch, Some(DispatchMode::Direct));
    assert_eq!(
        (over.pools, over.spin_ns),
        (Some(Pools::Shared), Some(5_000))
    );
    assert_eq!(Settings::default().over(every()), every());
}

#[test]
fn a_wrong_setting_is_refused_with_what_there_is() {
    let refused = |text: &str| Settings::parse(text).unwrap_err().in_one_line();
    assert!(refused("dispatch").starts_with("this is not KEY=VALUE; the keys are dispatch, spin,"));
    assert_eq!(
        refused("pool=shared"),
        "there is no option `pool`; did you mean `pools`?"
    );
    assert!(refused("x=1").starts_with("there is no option `x`; there are: dispatch, spin,"));
    assert_eq!(
        refused("registry=global"),
        "expected one of lockfree, locked"
    );
    assert!(refused("pools=percore").ends_with("did you mean `per-core`?"));
    let sample = "this is not within 1 to 4294967295";
    assert_eq!(refused("sample=0"), sample);
    assert_eq!(refused("sample=4294967296"), sample);
    assert!(refused("spin=5").contains("more than 1s"), "5 seconds");
    assert!(refused("taste=maybe").starts_with("this is not yes or no"));
    let wrong = "[stack.a]\nlayers = [\"md:1m\"]\nspin = \"soon\"\n";
    let error = StackFile::parse("a.toml", wrong, &["md"]).unwrap_err();
    assert!(error.to_string().contains("a.toml"), "{error}");
}

#[test]
fn every_documented_default_of_a_setting_is_a_value_of_it() {
    for entry in SETTINGS.0 {
        if let OptionDefault::Value(text) = entry.doc.default {
            let tried = SETTINGS.try_value(entry.doc.name, text);
            assert_eq!(tried, Ok(()), "{}={text}", entry.doc.name);
        }
    }
    let default = |key: &str| match SETTINGS.find(key).map(|entry| entry.doc.default) {
        Some(OptionDefault::Value(text)) => Settings::parse(&format!("{key}={text}")).ok(),
        _ => None,
    };
    let (spin, sample) = (default("spin").unwrap(), default("sample").unwrap());
    assert_eq!(spin.spin_ns, Some(QUEUED_SPIN_NS));
    assert_eq!(sample.sample, Some(TIME_ONE_IN));
}
