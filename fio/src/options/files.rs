//! Options that say how files are made, opened and removed.

use super::values::one_of;
use super::{OptionEntry, switch, with};
use crate::settings::{FadviseHint, Job, WriteSync};
use crate::value::truth;
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::Value;

pub const FADVISE_HINT: OptionEntry<Job> = with(
    "fadvise_hint",
    &[],
    "0|1|random|sequential",
    Value("1"),
    "advise the kernel about the order of requests: 1 is that of the job",
    |job, text| {
        job.fadvise_hint = match text {
            "0" => FadviseHint::None,
            "1" => FadviseHint::Pattern,
            "random" => FadviseHint::Random,
            "sequential" => FadviseHint::Sequential,
            _ => return Err(format!("`{text}` is none of 0, 1, random, sequential").into()),
        };
        Ok(())
    },
);

pub const SYNC: OptionEntry<Job> = with(
    "sync",
    &[],
    "none|sync|dsync|0|1",
    Value("none"),
    "a write is complete when it is durable: O_SYNC (sync, 1) or O_DSYNC (dsync)",
    |job, text| {
        job.sync = match text {
            "0" | "none" => WriteSync::None,
            "1" | "sync" => WriteSync::Sync,
            "dsync" => WriteSync::Dsync,
            _ => return Err(format!("`{text}` is none of none, sync, dsync, 0, 1").into()),
        };
        Ok(())
    },
);

pub const OVERWRITE: OptionEntry<Job> = switch(
    "overwrite",
    &[],
    Value("0"),
    "fill files before writes, so that each write replaces data",
    set_field!(overwrite = truth),
);

pub const CREATE_SERIALIZE: OptionEntry<Job> = switch(
    "create_serialize",
    &[],
    Value("1"),
    "make the files of one job after those of another, which is done in any case",
    set_field!(create_serialize = truth),
);

pub const INVALIDATE: OptionEntry<Job> = switch(
    "invalidate",
    &[],
    Value("1"),
    "drop the files from the cache before",
    set_field!(invalidate = truth),
);

pub const UNLINK: OptionEntry<Job> = switch(
    "unlink",
    &[],
    Value("0"),
    "remove the files afterwards",
    set_field!(unlink = truth),
);

pub const FALLOCATE: OptionEntry<Job> = with(
    "fallocate",
    &[],
    "none|native|posix|keep|0|1",
    Value("native"),
    "reserve the space of new files",
    |job, text| {
        one_of(text, &["none", "native", "posix", "keep", "0", "1"])?;
        job.fallocate = !matches!(text, "none" | "0");
        Ok(())
    },
);
