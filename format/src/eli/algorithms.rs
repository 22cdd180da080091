//! The ciphers and authentication algorithms of GELI, with the numbers of
//! `sys/opencrypto/cryptodev.h`.

/// How sectors are encrypted, with the number in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// 3DES-CBC, removed from FreeBSD 13.
    TripleDesCbc = 2,
    /// Blowfish-CBC, removed from FreeBSD 13.
    BlowfishCbc = 3,
    /// AES-CBC, the default of versions before 5.
    AesCbc = 11,
    /// No encryption: the data lies in clear.
    Null = 16,
    /// Camellia-CBC, version 4 and later.
    CamelliaCbc = 21,
    /// AES-XTS, version 5 and later, the default.
    AesXts = 22,
}

impl Cipher {
    /// All ciphers, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::TripleDesCbc,
        Self::BlowfishCbc,
        Self::AesCbc,
        Self::Null,
        Self::CamelliaCbc,
        Self::AesXts,
    ];

    /// The number in the metadata.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The name as `geli list` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TripleDesCbc => "3DES-CBC",
            Self::BlowfishCbc => "Blowfish-CBC",
            Self::AesCbc => "AES-CBC",
            Self::Null => "NULL",
            Self::CamelliaCbc => "CAMELLIA-CBC",
            Self::AesXts => "AES-XTS",
        }
    }

    /// The cipher that a user names with `-e`: the name in any case of letters, also without its
    /// mode (`g_eli_str2ealgo`).
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "null" => Some(Self::Null),
            "aes" | "aes-xts" => Some(Self::AesXts),
            "aes-cbc" => Some(Self::AesCbc),
            "blowfish" | "blowfish-cbc" => Some(Self::BlowfishCbc),
            "camellia" | "camellia-cbc" => Some(Self::CamelliaCbc),
            "3des" | "3des-cbc" => Some(Self::TripleDesCbc),
            _ => None,
        }
    }

    /// The key length in bits when the user names none.
    pub const fn default_key_bits(self) -> u16 {
        match self {
            Self::TripleDesCbc => 192,
            Self::Null => 512,
            Self::BlowfishCbc | Self::AesCbc | Self::CamelliaCbc | Self::AesXts => 128,
        }
    }

    /// Whether a key may have that many bits (`g_eli_keylen`). AES-XTS counts one of its two keys.
    pub const fn allows_key_bits(self, bits: u16) -> bool {
        match self {
            Self::TripleDesCbc => bits == 192,
            Self::BlowfishCbc => bits >= 128 && bits <= 448 && bits.is_multiple_of(32),
            Self::AesCbc | Self::CamelliaCbc => matches!(bits, 128 | 192 | 256),
            Self::Null => bits > 0 && bits <= 512 && bits.is_multiple_of(8),
            Self::AesXts => matches!(bits, 128 | 256),
        }
    }

    /// The first metadata version that knows the cipher.
    pub const fn since_version(self) -> u32 {
        match self {
            Self::CamelliaCbc => 4,
            Self::AesXts => 5,
            Self::TripleDesCbc | Self::BlowfishCbc | Self::AesCbc | Self::Null => 0,
        }
    }

    /// True for ciphers that FreeBSD no longer has. They are for reading old disks.
    pub const fn is_legacy(self) -> bool {
        matches!(self, Self::TripleDesCbc | Self::BlowfishCbc)
    }
}

/// How sectors are authenticated, where the flag AUTH is set, with the number in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// HMAC-MD5, removed from FreeBSD 13.
    Md5 = 6,
    /// HMAC-SHA1, 20 bytes of tag.
    Sha1 = 7,
    /// HMAC-RIPEMD160, 20 bytes of tag.
    Ripemd160 = 8,
    /// HMAC-SHA256, 32 bytes of tag.
    Sha256 = 18,
    /// HMAC-SHA384, 48 bytes of tag.
    Sha384 = 19,
    /// HMAC-SHA512, 64 bytes of tag.
    Sha512 = 20,
}

impl Authentication {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Md5,
        Self::Sha1,
        Self::Ripemd160,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
    ];

    /// The number in the metadata.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The name as `geli list` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "HMAC/MD5",
            Self::Sha1 => "HMAC/SHA1",
            Self::Ripemd160 => "HMAC/RIPEMD160",
            Self::Sha256 => "HMAC/SHA256",
            Self::Sha384 => "HMAC/SHA384",
            Self::Sha512 => "HMAC/SHA512",
        }
    }

    /// The algorithm that a user names with `-a`, in any case of letters (`g_eli_str2aalgo`).
    pub fn parse(text: &str) -> Option<Self> {
        let named = |one: &Self| one.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named)
    }

    /// The length of a tag, bytes.
    pub const fn tag_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 | Self::Ripemd160 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// True for an algorithm that FreeBSD no longer has.
    pub const fn is_legacy(self) -> bool {
        matches!(self, Self::Md5)
    }
}

/// Methods of both tables of numbers and names.
macro_rules! numbered_and_named {
    ($type:ident) => {
        impl $type {
            /// The one with that number in the metadata; `None` when no release of GELI has it.
            pub fn of_number(number: u16) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.number() == number)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

numbered_and_named!(Cipher);
numbered_and_named!(Authentication);
