//! Ids and the limits that every door checks.
//!
//! An id is opaque: never trimmed, folded or parsed, compared byte for byte. The same rule serves tenants, SKUs,
//! reservations, owners, locations, returns and stock commands, so that one check at the edge covers all of them.

use alloc::string::String;
use compact_str::CompactString;
use core::fmt;

/// The longest id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 128;

/// The longest reason that an operator or caller may give, in bytes of UTF-8.
pub const REASON_BYTES_MAX: usize = 256;

/// The largest count: 2^53 - 1, the largest whole number that JSON and Lua carry without loss.
pub const QUANTITY_MAX: u64 = (1 << 53) - 1;

/// The most lines that one reservation may ask for.
pub const LINES_MAX: usize = 100;

/// The most locations that one SKU may have.
pub const LOCATIONS_MAX: usize = 100;

/// The shortest and longest distance of an end, in milliseconds: 1 second and 30 days.
pub const TTL_MS_MIN: i64 = 1_000;
/// See [`TTL_MS_MIN`].
pub const TTL_MS_MAX: i64 = 30 * 24 * 3_600_000;
/// The end of a reservation that names none: 1,800 seconds.
pub const TTL_MS_DEFAULT: i64 = 1_800_000;

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// An opaque name of 1..=128 bytes of UTF-8 without control characters, not `.` or `..`.
///
/// Up to 24 bytes are stored inline.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(CompactString);

/// Why a text is not an [`Id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// No bytes at all.
    #[error("is empty")]
    Empty,
    /// More than [`ID_BYTES_MAX`] bytes.
    #[error("is {bytes} bytes long")]
    TooLong {
        /// How many bytes were found.
        bytes: usize,
    },
    /// A control character (Unicode category Cc).
    #[error("has a control character at byte {at}")]
    Control {
        /// Where the first one stands, in bytes.
        at: usize,
    },
    /// `.` or `..`, which URL handling would remove.
    #[error("is a dot segment")]
    Dots,
}

impl IdError {
    /// What is allowed, for messages.
    pub const ALLOWED: &'static str = "1..=128 bytes of UTF-8, no control characters, not \".\" or \"..\"";
}

impl Id {
    /// Checks and takes a text as an id.
    pub fn new(text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.len() > ID_BYTES_MAX {
            return Err(IdError::TooLong { bytes: text.len() });
        }
        if text == "." || text == ".." {
            return Err(IdError::Dots);
        }
        if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
            return Err(IdError::Control { at });
        }
        Ok(Self(CompactString::new(text)))
    }

    /// The text, byte for byte as it came.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The actor of what the shard does by itself: ends that come.
    pub(crate) const fn shard_itself() -> Self {
        Self(CompactString::const_new("stockade"))
    }

    /// The id `default`: the tenant when there are no keys, the location when nobody names one.
    pub fn default_name() -> Self {
        Self(CompactString::const_new("default"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<&str> for Id {
    type Error = IdError;
    fn try_from(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(&text)
    }
}

/// Why a change was made, in the words of whoever made it: at most 256 bytes, no control characters; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason(CompactString);

impl Reason {
    /// What is allowed, for messages.
    pub const ALLOWED: &'static str = "at most 256 bytes of UTF-8, no control characters";

    /// Checks and takes a text as a reason.
    pub fn new(text: &str) -> Result<Self, IdError> {
        if text.len() > REASON_BYTES_MAX {
            return Err(IdError::TooLong { bytes: text.len() });
        }
        if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
            return Err(IdError::Control { at });
        }
        Ok(Self(CompactString::new(text)))
    }

    /// No reason.
    pub(crate) const fn none() -> Self {
        Self(CompactString::const_new(""))
    }

    /// The text; empty when none was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}
