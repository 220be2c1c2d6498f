//! Every outcome that an answer can name: the word, the status and the title.

/// A code, as in `"code": "insufficient_stock"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Ok,
    Replayed,
    Sealed,
    InsufficientStock,
    UnknownSku,
    RevisionConflict,
    LimitExceeded,
    NotOpen,
    Closed,
    Paused,
    BelowReserved,
    IdReused,
    CrossShard,
    NotFound,
    Expired,
    AlreadyConfirmed,
    AlreadyCancelled,
    NotConfirmed,
    Malformed,
    Invalid,
    Unauthorized,
    Forbidden,
    RateLimited,
    UnknownRoute,
    MethodNotAllowed,
    BodyTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
    Overloaded,
    Unavailable,
    OutcomeUnknown,
}

impl Code {
    /// Every code, in the order of its number.
    pub(crate) const ALL: [Self; 31] = [
        Self::Ok,
        Self::Replayed,
        Self::Sealed,
        Self::InsufficientStock,
        Self::UnknownSku,
        Self::RevisionConflict,
        Self::LimitExceeded,
        Self::NotOpen,
        Self::Closed,
        Self::Paused,
        Self::BelowReserved,
        Self::IdReused,
        Self::CrossShard,
        Self::NotFound,
        Self::Expired,
        Self::AlreadyConfirmed,
        Self::AlreadyCancelled,
        Self::NotConfirmed,
        Self::Malformed,
        Self::Invalid,
        Self::Unauthorized,
        Self::Forbidden,
        Self::RateLimited,
        Self::UnknownRoute,
        Self::MethodNotAllowed,
        Self::BodyTimeout,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Overloaded,
        Self::Unavailable,
        Self::OutcomeUnknown,
    ];

    /// The word.
    pub(crate) const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The status; of a done command the one for "nothing new".
    pub(crate) const fn status(self) -> u16 {
        self.row().1
    }

    /// The title of the problem.
    pub(crate) const fn title(self) -> &'static str {
        self.row().2
    }

    const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Ok => ("ok", 200, "Done"),
            Self::Replayed => ("replayed", 200, "Done before"),
            Self::Sealed => ("sealed", 200, "Cancelled before it came"),
            Self::InsufficientStock => ("insufficient_stock", 409, "Insufficient stock"),
            Self::UnknownSku => ("unknown_sku", 404, "Unknown SKU"),
            Self::RevisionConflict => ("revision_conflict", 412, "Revision conflict"),
            Self::LimitExceeded => ("limit_exceeded", 409, "Owner limit exceeded"),
            Self::NotOpen => ("not_open", 409, "Sale not open yet"),
            Self::Closed => ("closed", 409, "Sale closed"),
            Self::Paused => ("paused", 409, "Sale paused"),
            Self::BelowReserved => ("below_reserved", 409, "Below reserved"),
            Self::IdReused => ("id_reused", 422, "Id used for something else"),
            Self::CrossShard => ("cross_shard", 422, "Cart spans shards"),
            Self::NotFound => ("not_found", 404, "Not found"),
            Self::Expired => ("expired", 410, "Reservation expired"),
            Self::AlreadyConfirmed => ("already_confirmed", 409, "Already confirmed"),
            Self::AlreadyCancelled => ("already_cancelled", 409, "Already cancelled"),
            Self::NotConfirmed => ("not_confirmed", 409, "Not confirmed"),
            Self::Malformed => ("malformed", 400, "Malformed JSON"),
            Self::Invalid => ("invalid", 422, "Invalid request"),
            Self::Unauthorized => ("unauthorized", 401, "No valid key"),
            Self::Forbidden => ("forbidden", 403, "Scope missing"),
            Self::RateLimited => ("rate_limited", 429, "Too often, or too many"),
            Self::UnknownRoute => ("unknown_route", 404, "Unknown route"),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "Method not allowed"),
            Self::BodyTimeout => ("body_timeout", 408, "Body too slow"),
            Self::BodyTooLarge => ("body_too_large", 413, "Body too large"),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415, "Unsupported media type"),
            Self::Overloaded => ("overloaded", 503, "Overloaded"),
            Self::Unavailable => ("unavailable", 503, "Unavailable"),
            Self::OutcomeUnknown => ("outcome_unknown", 504, "Outcome unknown"),
        }
    }
}
