//! Values of the options for I/O priorities.

use crate::settings::PriorityShare;
use crate::value;

/// A value for reads and one for writes, which is the same when there is one.
pub fn of_reads_and_writes<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<[T; 2], String> {
    let (reads, writes) = text.split_once(',').unwrap_or((text, text));
    // fio takes a third value, for trims, and ignores it.
    let writes = writes.split(',').next().unwrap_or(writes);
    Ok([read(reads.trim())?, read(writes.trim())?])
}

fn number_to(text: &str, least: u8, most: u8, what: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is not a {what} from {least} to {most}")),
    }
}

/// The value of `cmdprio_class`: 0 to 3, as of ioprio_set(2).
pub fn priority_class(text: &str) -> Result<u8, String> {
    number_to(text, 0, 3, "priority class")
}

/// The value of `cmdprio`: 0, the highest, to 7.
pub fn priority_level(text: &str) -> Result<u8, String> {
    number_to(text, 0, 7, "priority level")
}

/// `cmdprio_bssplit`, for one kind of requests.
pub fn priority_split(text: &str) -> Result<Vec<PriorityShare>, String> {
    let parts = text.split(':').filter(|part| !part.is_empty());
    let parts: Result<Vec<PriorityShare>, String> = parts.map(priority_share).collect();
    let parts = parts?;
    for part in &parts {
        let same = parts.iter().filter(|other| other.bytes == part.bytes);
        let percent: u32 = same.map(|other| u32::from(other.percent)).sum();
        if percent > 100 {
            let bytes = part.bytes;
            return Err(format!(
                "the shares of {bytes} bytes add up to {percent} percent"
            ));
        }
    }
    Ok(parts)
}

fn priority_share(text: &str) -> Result<PriorityShare, String> {
    let fields: Vec<&str> = text.split('/').collect();
    let (bytes, percent, priority) = match fields[..] {
        [bytes] => (bytes, 100, None),
        [bytes, percent] => (bytes, value::percentage(percent)?, None),
        [bytes, percent, class, level] => {
            let priority = (priority_class(class)?, priority_level(level)?);
            (bytes, value::percentage(percent)?, Some(priority))
        }
        _ => {
            return Err(format!(
                "`{text}` is not SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL"
            ));
        }
    };
    Ok(PriorityShare {
        bytes: value::bytes(bytes)?,
        percent,
        priority,
    })
}
