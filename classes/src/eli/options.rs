//! The options of `eli`.

use super::crypt::{Backend, ByteOrder};
use crate::spec::OptionDefault::{Absent, Depends, Value};
use crate::spec::values::{number_in, size, text};
use crate::spec::{LayerArguments, OptionTable, SpecError, ValueError, option};
use crate::{set_choice, set_field};
use ugeom_format::eli::{Authentication, Cipher, SLOTS};
use ugeom_measure::units::truth;

/// The separator of the paths of several keyfiles or passfiles.
const PATHS_SEPARATOR: char = ':';

/// The options of the class.
#[rustfmt::skip]
pub(super) const OPTIONS: OptionTable<Settings> = OptionTable(&[
    option("keyfile", "PATH", Absent, "keyfile; several are joined by `:`, in the order of `init`",
        set_field!(it, text => keyfiles = paths(text))),
    option("passfile", "PATH", Depends("a prompt on the terminal"),
        "file whose first line is the passphrase; several are joined by `:`",
        set_field!(it, text => passfiles = paths(text))),
    option("nopassphrase", "0|1", Value("0"), "use no passphrase, as `geli attach -p`",
        set_field!(no_passphrase = truth)),
    option("slot", "0|1", Depends("both"), "try this key slot only",
        set_field!(it, text => slot = Some(number_in(0..=SLOTS as u64 - 1, text)? as usize))),
    option("readonly", "0|1", Value("0"), "refuse writing", set_field!(read_only = truth)),
    option("metadata", "PATH", Depends("the last sector"), "take the metadata from a backup",
        set_field!(metadata = text)),
    option("byteorder", "little|big", Value("little"),
        "byte order of the machine that wrote the disk; big for sparc64 and powerpc",
        set_choice!(order = [("little", ByteOrder::Little), ("big", ByteOrder::Big)])),
    option("legacy", "0|1", Value("0"), "allow writing with 3DES, Blowfish and HMAC/MD5",
        set_field!(legacy = truth)),
    option("crypto", "fastest|portable", Value("fastest"),
        "AES code: for this processor, or portable",
        set_choice!(backend = [("fastest", Backend::Fastest), ("portable", Backend::Portable)])),
    option("onetime", "0|1", Value("0"), "use a new key that is not stored, as `geli onetime` does",
        set_field!(is_onetime = truth)),
    option("ealgo", "NAME", Value("aes-xts"),
        "with onetime: aes-xts, aes-cbc, camellia-cbc, null, 3des-cbc or blowfish-cbc",
        |it, text| {
            let none = || ValueError::new("there is no such encryption algorithm");
            it.onetime.cipher = Cipher::parse(text).ok_or_else(none)?;
            Ok(())
        }),
    option("keylen", "BITS", Depends("that of the algorithm"), "with onetime: key length",
        |it, text| {
            let bits = number_in(1..=512, text)? as u16;
            let cipher = it.onetime.cipher;
            if !cipher.allows_key_bits(bits) {
                return Err(ValueError::new(format!("{cipher} has no such keys")));
            }
            it.onetime.key_bits = Some(bits);
            Ok(())
        }),
    option("aalgo", "NAME", Absent,
        "with onetime: hmac/sha1, hmac/ripemd160, hmac/sha256, hmac/sha384, hmac/sha512, hmac/md5",
        |it, text| {
            let none = || ValueError::new("there is no such authentication algorithm");
            it.onetime.authentication = Some(Authentication::parse(text).ok_or_else(none)?);
            Ok(())
        }),
    option("sectorsize", "SIZE", Depends("that of the provider below"), "with onetime: sector size",
        set_field!(it, text => onetime.sector_bytes = Some(size(text)?))),
    option("nodelete", "0|1", Value("0"), "with onetime: do not pass DELETE on",
        set_field!(it, text => onetime.no_delete = truth(text)?)),
]);

/// The parameters of a one-time provider.
pub(super) struct OneTime {
    pub cipher: Cipher,
    pub key_bits: Option<u16>,
    pub authentication: Option<Authentication>,
    pub sector_bytes: Option<u64>,
    pub no_delete: bool,
}

impl Default for OneTime {
    fn default() -> Self {
        Self {
            cipher: Cipher::AesXts,
            key_bits: None,
            authentication: None,
            sector_bytes: None,
            no_delete: false,
        }
    }
}

/// The options as values.
#[derive(Default)]
pub(super) struct Settings {
    pub keyfiles: Vec<String>,
    pub passfiles: Vec<String>,
    pub no_passphrase: bool,
    pub slot: Option<usize>,
    pub read_only: bool,
    pub metadata: Option<String>,
    pub order: ByteOrder,
    pub legacy: bool,
    pub backend: Backend,
    pub is_onetime: bool,
    pub onetime: OneTime,
}

impl Settings {
    /// Reads and checks them.
    pub fn read(arguments: &LayerArguments<'_>) -> Result<Self, SpecError> {
        let settings = arguments.read(&OPTIONS, Self::default())?;
        if settings.no_passphrase && !settings.passfiles.is_empty() {
            let message = "a passphrase and no passphrase exclude each other";
            return Err(arguments.invalid("nopassphrase", message));
        }
        let keyed = !settings.keyfiles.is_empty() || !settings.passfiles.is_empty();
        if settings.is_onetime && (keyed || settings.metadata.is_some()) {
            let message =
                "a one-time key is always new and excludes key files, passfiles and metadata";
            return Err(arguments.invalid("onetime", message));
        }
        Ok(settings)
    }
}

fn paths(text: &str) -> Vec<String> {
    text.split(PATHS_SEPARATOR).map(str::to_owned).collect()
}
