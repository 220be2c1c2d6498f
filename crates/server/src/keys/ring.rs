//! The keys as requests meet them: looked up by their public id, compared in constant time, read again when the file
//! changes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use stockade_core::{Id, Millis};
use subtle::ConstantTimeEq as _;

use crate::seen::Seen;

use super::{FILE, Key, digest, file, public_id};

/// How often the file is looked at: a revoked key is refused within a second.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Why a key does not open anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No such key.
    Unknown,
    /// It was taken back.
    Revoked,
    /// Its end has come.
    Ended,
}

/// The keys of a service. Once they are needed they stay needed until the process ends, whatever happens to the file.
#[derive(Debug)]
pub(crate) struct Keys {
    folder: PathBuf,
    ring: ArcSwap<HashMap<String, Arc<Key>>>,
}

impl Keys {
    /// The keys of a data folder, if it has any or they are required anyway.
    pub(crate) fn open(folder: &Path, required: bool) -> Result<Option<Arc<Self>>, String> {
        let keys = file::read(folder)?;
        if !required && keys.as_ref().is_none_or(Vec::is_empty) {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            folder: folder.to_owned(),
            ring: ArcSwap::from_pointee(ring(keys.unwrap_or_default())),
        })))
    }

    /// The tenants of all keys.
    pub(crate) fn tenants(&self) -> BTreeSet<Id> {
        self.ring.load().values().map(|key| key.tenant.clone()).collect()
    }

    /// How many keys could be used now.
    pub(crate) fn good(&self, now: Millis) -> usize {
        self.ring.load().values().filter(|key| key.is_good(now)).count()
    }

    /// The key that a text is. Every text costs one digest, known or not.
    pub(crate) fn find(&self, text: &[u8], now: Millis) -> Result<Arc<Key>, Denied> {
        let found = digest(text);
        let ring = self.ring.load();
        let Some(key) = public_id(text).and_then(|id| ring.get(id)) else {
            return Err(Denied::Unknown);
        };
        if !bool::from(found.ct_eq(&key.digest)) {
            return Err(Denied::Unknown);
        }
        // Whoever gets here holds the key, and may know why it is of no use.
        if key.revoked_at.is_some() {
            return Err(Denied::Revoked);
        }
        if !key.is_good(now) {
            return Err(Denied::Ended);
        }
        Ok(Arc::clone(key))
    }

    /// Reads the file again whenever it changes; never comes back.
    pub(crate) async fn watch(self: Arc<Self>) {
        // Read once more at the start: it may have changed since it was opened.
        let mut seen = None;
        loop {
            let now = Seen::of(&self.folder.join(FILE));
            if seen != Some(now) {
                self.read_again();
                seen = Some(now);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn read_again(&self) {
        let keys = match file::read(&self.folder) {
            Ok(Some(keys)) => keys,
            Ok(None) => {
                // Nobody gets in rather than everybody.
                if !self.ring.load().is_empty() {
                    tracing::warn!("the file of keys is gone: every key is refused");
                }
                Vec::new()
            }
            Err(why) => {
                tracing::error!(
                    why,
                    "the keys cannot be read again; those read before stay in force"
                );
                return;
            }
        };
        tracing::debug!(keys = keys.len(), "keys read");
        self.ring.store(Arc::new(ring(keys)));
    }
}

fn ring(keys: Vec<Key>) -> HashMap<String, Arc<Key>> {
    keys.into_iter()
        .map(|key| (key.public_id.clone(), Arc::new(key)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Secret, fresh};
    use super::*;

    fn add(folder: &Path, name: &str, ends_at: Option<Millis>) -> Secret {
        let (secret, public_id) = fresh().unwrap();
        file::change(folder, |keys| {
            keys.push(Key {
                public_id,
                name: Id::new(name).unwrap(),
                tenant: Id::default_name(),
                scopes: vec![Scope::Read],
                created_at: 0,
                ends_at,
                revoked_at: None,
                digest: digest(secret.reveal().as_bytes()),
            });
            Ok(())
        })
        .unwrap();
        secret
    }

    #[test]
    fn keys_are_found_by_all_their_characters() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (
            add(folder.path(), "one", None),
            add(folder.path(), "two", Some(50)),
        );
        let keys = Keys::open(folder.path(), false).unwrap().unwrap();
        let find = |text: &str, now| keys.find(text.as_bytes(), now).map(|key| key.name.to_string());
        assert_eq!(find(one.reveal(), 0), Ok("one".to_owned()));
        assert_eq!(find(two.reveal(), 49), Ok("two".to_owned()));
        assert_eq!(find(two.reveal(), 50), Err(Denied::Ended));
        // The id of one with the secret of the other, and one character changed.
        let (head, tail) = (&one.reveal()[..14], &two.reveal()[14..]);
        assert_eq!(find(&format!("{head}{tail}"), 0), Err(Denied::Unknown));
        let last = if one.reveal().ends_with('0') { "1" } else { "0" };
        let changed = format!("{}{last}", &one.reveal()[..65]);
        assert_eq!(find(&changed, 0), Err(Denied::Unknown));
        assert_eq!(keys.good(50), 1);
    }

    #[test]
    fn a_revoked_key_and_a_file_that_is_gone_let_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let one = add(folder.path(), "one", None);
        let keys = Keys::open(folder.path(), false).unwrap().unwrap();
        file::change(folder.path(), |keys| {
            keys[0].revoked_at = Some(1);
            Ok(())
        })
        .unwrap();
        keys.read_again();
        assert_eq!(
            keys.find(one.reveal().as_bytes(), 0).unwrap_err(),
            Denied::Revoked
        );
        // Revoked keys still say that keys are needed.
        assert!(Keys::open(folder.path(), false).unwrap().is_some());
        std::fs::write(folder.path().join(FILE), "not json").unwrap();
        keys.read_again();
        assert_eq!(
            keys.find(one.reveal().as_bytes(), 0).unwrap_err(),
            Denied::Revoked
        );
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        keys.read_again();
        assert_eq!(
            keys.find(one.reveal().as_bytes(), 0).unwrap_err(),
            Denied::Unknown
        );
    }

    #[test]
    fn without_a_file_keys_are_needed_only_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Keys::open(folder.path(), false).unwrap().is_none());
        assert!(Keys::open(folder.path(), true).unwrap().is_some());
    }
}
