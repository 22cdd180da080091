//! Options that say what is not measured.

use super::{OptionEntry, switch};
use crate::settings::{Job, Unmeasured};
use crate::value::truth;
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::Value;

pub const GTOD_REDUCE: OptionEntry<Job> = switch(
    "gtod_reduce",
    &[],
    Value("0"),
    "disable_slat, disable_clat, disable_lat and disable_bw_measurement together",
    |job, text| {
        if truth(text)? {
            let (slat, clat, lat, bw) = (true, true, true, true);
            job.unmeasured = Unmeasured {
                slat,
                clat,
                lat,
                bw,
            };
        }
        Ok(())
    },
);

pub const DISABLE_SLAT: OptionEntry<Job> = switch(
    "disable_slat",
    &[],
    Value("0"),
    "measure no submission latencies",
    set_field!(unmeasured.slat = truth),
);

pub const DISABLE_CLAT: OptionEntry<Job> = switch(
    "disable_clat",
    &[],
    Value("0"),
    "measure no completion latencies",
    set_field!(unmeasured.clat = truth),
);

pub const DISABLE_LAT: OptionEntry<Job> = switch(
    "disable_lat",
    &[],
    Value("0"),
    "measure no total latencies",
    set_field!(unmeasured.lat = truth),
);

pub const DISABLE_BW_MEASUREMENT: OptionEntry<Job> = switch(
    "disable_bw_measurement",
    &["disable_bw"],
    Value("0"),
    "write no log of bandwidths",
    set_field!(unmeasured.bw = truth),
);
