//! From what SQLite says to what the caller can do about it.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::api::{LedgerError, RecordError};

/// What a damaged file calls for.
pub(super) const DAMAGED: &str = "the ledger's file is damaged: stop every process that uses it, keep a copy of it \
                                  (with its -wal and -shm files) and restore a backup";

/// The typed form of a database error about the ledger at `path`.
pub(super) fn ledger_error(path: &Path, error: &Error) -> LedgerError {
    let storage = |message: String, full: bool| LedgerError::Storage {
        path: path.to_path_buf(),
        message,
        full,
    };
    let Error::SqliteFailure(cause, _) = error else {
        return match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => LedgerError::Corrupt {
                place: path.display().to_string(),
                message: error.to_string(),
            },
            other => LedgerError::Database(other.to_string()),
        };
    };
    match cause.code {
        ErrorCode::DiskFull => storage(
            "the disk or the quota is full: free space on it; nothing was half written".to_owned(),
            true,
        ),
        ErrorCode::ReadOnly => storage(
            "the file or its folder is read-only: make both writable for this user, or name another folder"
                .to_owned(),
            false,
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => storage(
            format!("cannot be opened ({error}): the folder must exist and be writable for this user"),
            false,
        ),
        ErrorCode::SystemIoFailure => storage(
            format!("the disk failed ({error}): look at the system's log and the disk's health"),
            false,
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            LedgerError::Busy {
                path: path.to_path_buf(),
            }
        }
        ErrorCode::DatabaseCorrupt => LedgerError::Foreign {
            path: path.to_path_buf(),
            message: format!("{DAMAGED} ({error})"),
        },
        ErrorCode::NotADatabase => not_a_database(path),
        _ => LedgerError::Database(error.to_string()),
    }
}

/// Whether another connection was in the way, and nothing else.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// The file holds something else.
pub(super) fn not_a_database(path: &Path) -> LedgerError {
    LedgerError::Foreign {
        path: path.to_path_buf(),
        message: "this is not a SQLite database: move it away, or name another folder".to_owned(),
    }
}

/// Why COMMIT failed. In write-ahead mode the commit is the last frame and then an fsync: a write that failed left no
/// whole frame, so nothing can come back after a crash; after anything later nobody can tell.
pub(super) fn commit_error(path: &Path, error: &Error) -> RecordError {
    let known = match error {
        Error::SqliteFailure(cause, _) => {
            matches!(
                cause.code,
                ErrorCode::DiskFull
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::ReadOnly
                    | ErrorCode::ConstraintViolation
            ) || cause.extended_code == ffi::SQLITE_IOERR_WRITE
        }
        _ => false,
    };
    let cause = ledger_error(path, error);
    if known {
        RecordError::NotRecorded(cause)
    } else {
        RecordError::Unknown(cause)
    }
}
