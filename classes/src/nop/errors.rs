//! Error numbers by their names, as `error=EIO` has them.

use ugeom_stack::Errno;

/// The errors that block devices are known to give, by name.
const NAMES: &[(&str, Errno)] = &[
    ("EACCES", Errno::ACCESS),
    ("EAGAIN", Errno::AGAIN),
    ("EBADMSG", Errno::BADMSG),
    ("EBUSY", Errno::BUSY),
    ("ECANCELED", Errno::CANCELED),
    ("EFBIG", Errno::FBIG),
    ("EILSEQ", Errno::ILSEQ),
    ("EINTR", Errno::INTR),
    ("EINVAL", Errno::INVAL),
    ("EIO", Errno::IO),
    ("ENODATA", Errno::NODATA),
    ("ENODEV", Errno::NODEV),
    ("ENOMEM", Errno::NOMEM),
    ("ENOSPC", Errno::NOSPC),
    ("ENXIO", Errno::NXIO),
    ("EOPNOTSUPP", Errno::OPNOTSUPP),
    ("EPERM", Errno::PERM),
    ("EROFS", Errno::ROFS),
    ("ETIMEDOUT", Errno::TIMEDOUT),
];

/// The greatest number that the kernel returns for an error (`MAX_ERRNO` of Linux's `err.h`).
const ERRNO_MAX: i32 = 4095;

/// The error of that name, in any case of letters, or of that number.
pub(super) fn parse(text: &str) -> Option<Errno> {
    let named = NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, errno)) = named {
        return Some(*errno);
    }
    let number: i32 = text.parse().ok()?;
    (1..=ERRNO_MAX)
        .contains(&number)
        .then(|| Errno::from_raw_os_error(number))
}

/// The names, to list them.
pub(super) fn names() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
