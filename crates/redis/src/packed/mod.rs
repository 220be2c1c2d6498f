//! Stored values in Rust: what `layout.rs` describes, written and read. What is read may have been changed by hand, so
//! reading gives `None` for everything that these scripts would not have written.

mod entry;
mod records;
mod reservation;
mod sku;

pub use entry::unpack_entry;
pub use records::{pack_command, pack_return, unpack_command, unpack_return};
pub use reservation::{pack_reservation, unpack_reservation};
pub use sku::{Held, pack_sku, settings_text, unpack_counters, unpack_settings, unpack_sku};

use stockade_core::{Digest, Id};

// Digests are bytes of any kind in front of text.
fn split_digest(bytes: &[u8]) -> Option<(Digest, &str)> {
    let (digest, text) = bytes.split_first_chunk::<16>()?;
    Some((
        Digest(u128::from_be_bytes(*digest)),
        std::str::from_utf8(text).ok()?,
    ))
}

fn id(text: &str) -> Option<Id> {
    Id::new(text).ok()
}

// Nothing stands for none.
#[expect(clippy::option_option, reason = "unreadable, none, or one")]
fn id_or_none(text: &str) -> Option<Option<Id>> {
    if text.is_empty() {
        Some(None)
    } else {
        id(text).map(Some)
    }
}
