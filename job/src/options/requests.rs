//! Options that say which requests a job makes: their kind, size, place and number.

use super::values::{distributions, request_bytes, rw, sizes, split};
use super::{OptionEntry, idle, idle_switch, option, switch};
use crate::settings::{Job, RandomGenerator, Sizes};
use crate::value::{
    amount, by_direction, bytes, nonzero, number, numbers_by_direction, percentage, truth,
};
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};
use ugeom_classes::spec::values::choice;
use ugeom_classes::{set_choice, set_field};
use ugeom_measure::units::Size;

/// Why options of `zonemode=zbd` change nothing.
const NO_ZONED_DEVICES: &str = "no effect: it is for zonemode=zbd";

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("rw", "PATTERN", Value("read"),
        "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite; \
         `:N` draws an offset every N requests, or leaves gaps in a sequence",
        set_field!(rw = rw)).also(&["readwrite"]),
    option("rwmixread", "PERCENT", Value("50"), "share of reads in a mix",
        set_field!(rwmixread = percentage)),
    option("rwmixwrite", "PERCENT", Value("50"), "share of writes in a mix",
        set_field!(job, text => rwmixread = 100 - percentage(text)?)),
    option("bs", "SIZE[,SIZE[,SIZE]]", Value("4k"),
        "size of requests: read,write,trim; bsrange and bssplit win",
        |job, text| {
            let fixed = numbers_by_direction(text, &job.sizes, |text| {
                request_bytes(text).map(Sizes::fixed)
            })?;
            // As by fio, ranges and splits win, wherever they are given.
            for (sizes, fixed) in job.sizes.iter_mut().zip(fixed) {
                if sizes.is_fixed() {
                    *sizes = fixed;
                }
            }
            Ok(())
        }).also(&["blocksize"]),
    switch("bs_is_seq_rand", Value("0"),
        "the first size of bs is for sequential requests, the second for random ones",
        set_field!(seq_rand_sizes = truth)),
    option("bsrange", "MIN-MAX[,...]", Absent, "range of sizes of requests",
        set_field!(job, text =>
            sizes = by_direction(text, &job.sizes, sizes)?)).also(&["blocksize_range"]),
    option("bssplit", "SIZE/PERCENT:...[,...]", Absent, "sizes of requests with their shares",
        set_field!(job, text => sizes = by_direction(text, &job.sizes, split)?)),
    option("size", "SIZE|PERCENT%", Depends("the whole target"),
        "bytes of the target that the job uses, all files together",
        |job, text| {
            // 0 is as if it were not set, also for fio.
            job.size = Some(amount(text)?).filter(|size| *size != Size::Bytes(0));
            Ok(())
        }),
    option("io_size", "SIZE|PERCENT%", Depends("size"), "bytes to transfer, if not `size`",
        set_field!(io_size = amount)).also(&["io_limit"]),
    option("offset", "SIZE|PERCENT%", Value("0"), "first offset in the target",
        set_field!(offset = amount)).also(&["fileoffset"]),
    option("offset_increment", "SIZE|PERCENT%", Value("0"), "added to offset for each of `numjobs`",
        set_field!(offset_increment = amount)),
    option("number_ios", "N", Value("0"),
        "end after this number of requests, times `loops`; reads that verify count",
        set_field!(number_ios = number)),
    option("loops", "N", Value("1"), "number of passes over the files",
        set_field!(job, text => loops = number(text)?.max(1))),
    option("random_distribution",
        "random|zipf:T|pareto:H|normal:D|zoned:A/S:...|zoned_abs:A/BYTES:...", Value("random"),
        "distribution of random offsets; `:C` behind T, H or D moves the centre to that share \
         of the file, 0 to 1; zones of reads, writes and trims are separated by commas",
        set_field!(distribution = distributions)),
    switch("norandommap", Value("0"), "random offsets may repeat before all blocks were used",
        set_field!(norandommap = nonzero)),
    switch("randrepeat", Value("1"), "the same random offsets in each run",
        set_field!(randrepeat = truth)),
    switch("allrandrepeat", Value("0"), "seed every draw by the number of the copy alone",
        set_field!(allrandrepeat = truth)),
    option("randseed", "N", Value("0x89"), "seed of the random numbers",
        set_field!(randseed = number)),
    option("ba", "SIZE[,SIZE[,SIZE]]", Depends("bs"),
        "alignment of random requests; sets norandommap where it is not `bs`",
        set_field!(job, text =>
            align_bytes = numbers_by_direction(text, &job.align_bytes, bytes)?))
            .also(&["blockalign"]),
    switch("bs_unaligned", Value("0"), "sizes need not be multiples of the smallest",
        set_field!(unaligned = nonzero)).also(&["blocksize_unaligned"]),
    option("percentage_random", "PERCENT[,...]", Value("100"),
        "share of random offsets in a random job; the other requests are sequential",
        set_field!(job, text =>
            random_percent = numbers_by_direction(text, &job.random_percent, percentage)?)),
    option("rw_sequencer", "sequential|identical", Value("sequential"),
        "requests between the offsets that rw=randread:N draws: follow one another, or repeat an \
         offset",
        set_choice!(identical = [("sequential", false), ("identical", true)])),
    option("random_generator", "tausworthe|lfsr|tausworthe64", Value("tausworthe"),
        "lfsr: no offset repeats, also with norandommap",
        set_choice!(generator = [
            ("tausworthe", RandomGenerator::Tausworthe), ("lfsr", RandomGenerator::Lfsr),
            ("tausworthe64", RandomGenerator::Tausworthe64),
        ])),
    idle_switch("softrandommap",
        "no effect: the map of blocks takes one bit per block; without memory for it the job \
         fails"),
    option("zonemode", "none|strided", Value("none"),
        "strided: use one zone of a file after the other",
        |job, text| {
            if text == "zbd" {
                let message = "zoned devices are not supported: use none or strided";
                return Err(message.to_owned().into());
            }
            let known = [("none", false), ("strided", true)];
            job.zones.strided = choice(&known, text)?;
            Ok(())
        }),
    option("zonesize", "SIZE", Value("0"), "bytes to transfer in a zone before the next",
        set_field!(zones.bytes = bytes)),
    option("zonerange", "SIZE", Depends("zonesize"), "length of a zone",
        set_field!(zones.range_bytes = bytes)),
    option("zoneskip", "SIZE", Value("0"), "gap between two zones",
        set_field!(zones.skip_bytes = bytes)),
    idle("zonecapacity", "SIZE", NO_ZONED_DEVICES),
    idle("max_open_zones", "N", NO_ZONED_DEVICES),
    idle("job_max_open_zones", "N", NO_ZONED_DEVICES),
    idle_switch("ignore_zone_limits", NO_ZONED_DEVICES),
    idle_switch("read_beyond_wp", NO_ZONED_DEVICES),
    idle("zone_reset_threshold", "RATIO", NO_ZONED_DEVICES),
    idle("zone_reset_frequency", "RATIO", NO_ZONED_DEVICES),
    option("offset_align", "SIZE", Value("0"),
        "round the offset of a percentage up to a multiple of this",
        set_field!(offset_align_bytes = bytes)),
    switch("serialize_overlap", Value("0"), "a request waits for those in flight that it overlaps",
        set_field!(serialize_overlap = truth)),
    switch("fill_device", Value("0"), "write until ENOSPC, which is then not an error",
        set_field!(fill_device = truth)).also(&["fill_fs"]),
];
