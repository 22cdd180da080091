//! The table: the options of all themes, one behind the other.

use super::{
    OptionEntry, data, engine, errors, files, jobs, measured, requests, time, traces, verify,
};
use crate::settings::Job;
use ugeom_classes::spec::OptionTable;

const THEMES: [&[OptionEntry<Job>]; 10] = [
    jobs::ENTRIES,
    requests::ENTRIES,
    files::ENTRIES,
    engine::ENTRIES,
    time::ENTRIES,
    data::ENTRIES,
    verify::ENTRIES,
    errors::ENTRIES,
    traces::ENTRIES,
    measured::ENTRIES,
];

const COUNT: usize = {
    let (mut count, mut theme) = (0, 0);
    while theme < THEMES.len() {
        count += THEMES[theme].len();
        theme += 1;
    }
    count
};

static ENTRIES: [OptionEntry<Job>; COUNT] = {
    let mut all = [THEMES[0][0]; COUNT];
    let (mut theme, mut at) = (0, 0);
    while theme < THEMES.len() {
        let mut entry = 0;
        while entry < THEMES[theme].len() {
            all[at] = THEMES[theme][entry];
            at += 1;
            entry += 1;
        }
        theme += 1;
    }
    all
};

/// Every option, in the order in which help shows them.
pub static OPTIONS: OptionTable<Job> = OptionTable(&ENTRIES);
