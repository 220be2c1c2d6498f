//! API keys: who may ask, for what, in which tenant.
//!
//! A key is `sk_`, a public id that lists and logs may show, and 256 random bits. The file `keys.json` in the data
//! folder holds a SHA-256 digest of each: the key itself is shown once and kept nowhere. A slow password hash would add
//! nothing here, since nobody can guess 256 random bits, and it would cost every request.

pub(crate) mod command;
mod file;
mod ring;

use std::fmt;

use sha2::{Digest as _, Sha256};
use stockade_core::{Id, Millis};

pub(crate) use file::FILE;
pub(crate) use ring::{Denied, Keys};

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Reserve, deduct, confirm, cancel, extend, return, and ask for a reservation by its id.
    Reserve,
    /// Counts, changes and settings of stock, and reads of a SKU.
    Stock,
    /// Reads of reservations, stock and movements, and metrics.
    Read,
    /// All of these, and what concerns the whole service: the audit.
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Self; 4] = [Self::Reserve, Self::Stock, Self::Read, Self::Admin];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Stock => "stock",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

/// A key as the service knows it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// Names the key in lists and logs; not secret.
    pub(crate) public_id: String,
    /// The actor of what is done with it.
    pub(crate) name: Id,
    pub(crate) tenant: Id,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created_at: Millis,
    pub(crate) ends_at: Option<Millis>,
    pub(crate) revoked_at: Option<Millis>,
    digest: [u8; 32],
}

impl Key {
    /// Whether it has one of these scopes, or the one that includes them.
    pub(crate) fn may(&self, scopes: &[Scope]) -> bool {
        self.scopes
            .iter()
            .any(|scope| *scope == Scope::Admin || scopes.contains(scope))
    }

    /// Whether it could be used at this time.
    pub(crate) fn is_good(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && self.ends_at.is_none_or(|end| now < end)
    }
}

/// A text that must not be shown: keys on the command line, in the environment, in a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The text, for whoever sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

const PREFIX: &str = "sk_";
const ID_CHARS: usize = 10;
/// 52 characters of 5 bits hold 256 bits.
const SECRET_CHARS: usize = 52;
/// Crockford's alphabet: nothing that can be taken for something else.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A new key's text, and its public id.
fn fresh() -> Result<(Secret, String), getrandom::Error> {
    let public_id = random_text(ID_CHARS)?;
    let secret = random_text(SECRET_CHARS)?;
    Ok((Secret(format!("{PREFIX}{public_id}_{secret}")), public_id))
}

/// Five random bits a character.
fn random_text(chars: usize) -> Result<String, getrandom::Error> {
    let mut bytes = vec![0_u8; chars];
    getrandom::fill(&mut bytes)?;
    let character = |byte: u8| char::from(ALPHABET[usize::from(byte & 31)]);
    Ok(bytes.into_iter().map(character).collect())
}

/// The public id in a text that has the form of a key.
fn public_id(text: &[u8]) -> Option<&str> {
    let rest = text.strip_prefix(PREFIX.as_bytes())?;
    if rest.len() != ID_CHARS + 1 + SECRET_CHARS || rest.get(ID_CHARS) != Some(&b'_') {
        return None;
    }
    let id = rest.get(..ID_CHARS)?;
    let plain = id.iter().all(|byte| ALPHABET.contains(byte));
    if plain { std::str::from_utf8(id).ok() } else { None }
}

fn digest(text: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    // No other use of SHA-256 gives the same digest.
    hash.update(b"stockade api key 1\0");
    hash.update(text);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_form_that_is_read_back() {
        let (key, id) = fresh().unwrap();
        assert_eq!(key.reveal().len(), 66);
        assert_eq!(public_id(key.reveal().as_bytes()), Some(id.as_str()));
        assert_ne!(fresh().unwrap().0, key);
        assert_eq!(format!("{key:?}"), "***");
    }

    #[test]
    fn other_texts_are_no_keys() {
        let (key, _) = fresh().unwrap();
        let longer = format!("{}0", key.reveal());
        let upper = key.reveal().to_uppercase();
        let no_id = key.reveal().replacen("sk_", "sk__", 1);
        for text in ["", "sk_", "sk_0000000000_", &longer, &upper, &no_id, "\u{0}"] {
            assert_eq!(public_id(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn admin_includes_the_other_scopes() {
        let key = |scopes: &[Scope]| Key {
            public_id: "x".to_owned(),
            name: Id::default_name(),
            tenant: Id::default_name(),
            scopes: scopes.to_vec(),
            created_at: 0,
            ends_at: Some(10),
            revoked_at: None,
            digest: [0; 32],
        };
        assert!(key(&[Scope::Admin]).may(&[Scope::Stock]));
        assert!(key(&[Scope::Reserve]).may(&[Scope::Read, Scope::Reserve]));
        assert!(!key(&[Scope::Reserve, Scope::Read, Scope::Stock]).may(&[Scope::Admin]));
        assert!(!key(&[]).may(&[Scope::Read]));
        assert!(key(&[]).is_good(9) && !key(&[]).is_good(10));
    }
}
