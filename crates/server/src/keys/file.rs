//! `keys.json`: written whole beside the old one and then put in its place, so that a reader sees one or the other,
//! also after a crash. Only its owner may read it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stockade_core::{Id, Millis};

use super::{Key, Scope};

/// The file's name in the data folder.
pub(crate) const FILE: &str = "keys.json";
/// Held by whoever changes the file.
const LOCK: &str = "keys.lock";
/// Written first, then renamed.
const FRESH: &str = "keys.json.new";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    keys: Vec<StoredKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKey {
    id: String,
    name: String,
    tenant: String,
    scopes: Vec<Scope>,
    created_at_ms: Millis,
    expires_at_ms: Option<Millis>,
    revoked_at_ms: Option<Millis>,
    sha256: String,
}

/// All keys of a data folder; `None` if it has no file of keys.
pub(super) fn read(folder: &Path) -> Result<Option<Vec<Key>>, String> {
    let path = folder.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // A folder that is none is the store's to complain about.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let broken = |what: &dyn std::fmt::Display| format!("{} is damaged: {what}", path.display());
    let stored: Stored = serde_json::from_str(&text).map_err(|e| broken(&e))?;
    if stored.version != VERSION {
        return Err(format!(
            "{} was written by another release (version {}, this one knows {VERSION})",
            path.display(),
            stored.version
        ));
    }
    let keys: Result<Vec<Key>, String> = stored.keys.into_iter().map(known).collect();
    keys.map(Some).map_err(|e| broken(&e))
}

fn known(stored: StoredKey) -> Result<Key, String> {
    let id = |text: &str| Id::new(text).map_err(|e| format!("key {}: {text:?} {e}", stored.id));
    Ok(Key {
        name: id(&stored.name)?,
        tenant: id(&stored.tenant)?,
        digest: from_hex(&stored.sha256)
            .ok_or_else(|| format!("key {}: sha256 is not 64 hexadecimal digits", stored.id))?,
        public_id: stored.id,
        scopes: stored.scopes,
        created_at: stored.created_at_ms,
        ends_at: stored.expires_at_ms,
        revoked_at: stored.revoked_at_ms,
    })
}

/// Changes the keys of a folder while nobody else does. The folder is made when it is missing.
pub(super) fn change<T>(
    folder: &Path,
    change: impl FnOnce(&mut Vec<Key>) -> Result<T, String>,
) -> Result<T, String> {
    let trouble = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|e| trouble(folder, &e))?;
    let lock_path = folder.join(LOCK);
    let lock = owned(&lock_path, false).map_err(|e| trouble(&lock_path, &e))?;
    lock.lock().map_err(|e| trouble(&lock_path, &e))?;
    let mut keys = read(folder)?.unwrap_or_default();
    let made = change(&mut keys)?;
    write(folder, &keys)?;
    Ok(made)
}

fn write(folder: &Path, keys: &[Key]) -> Result<(), String> {
    let stored = Stored {
        version: VERSION,
        keys: keys.iter().map(stored).collect(),
    };
    let text =
        serde_json::to_string_pretty(&stored).map_err(|e| format!("the keys cannot be written: {e}"))?;
    let fresh: PathBuf = folder.join(FRESH);
    let path = folder.join(FILE);
    let written = || {
        // What a crash left of an earlier try may have other rights.
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = owned(&fresh, true)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&fresh, &path)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(|e| format!("{}: {e}", path.display()))
}

/// A file that only its owner may read.
fn owned(path: &Path, must_be_new: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if must_be_new {
        options.create_new(true);
    } else {
        options.create(true).truncate(false);
    }
    options.open(path)
}

fn stored(key: &Key) -> StoredKey {
    StoredKey {
        id: key.public_id.clone(),
        name: key.name.to_string(),
        tenant: key.tenant.to_string(),
        scopes: key.scopes.clone(),
        created_at_ms: key.created_at,
        expires_at_ms: key.ends_at,
        revoked_at_ms: key.revoked_at,
        sha256: to_hex(&key.digest),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        for half in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(half), 16));
        }
        text
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            public_id: name.to_owned(),
            name: Id::new(name).unwrap(),
            tenant: Id::default_name(),
            scopes: vec![Scope::Read],
            created_at: 1,
            ends_at: Some(2),
            revoked_at: None,
            digest: [0xa5; 32],
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert!(read(&data).unwrap().is_none());
        change(&data, |keys| {
            keys.push(key("one"));
            Ok(())
        })
        .unwrap();
        // What a crash left is in nobody's way.
        std::fs::write(data.join(FRESH), "half").unwrap();
        change(&data, |keys| {
            keys.push(key("two"));
            Ok(())
        })
        .unwrap();
        let keys = read(&data).unwrap().unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0].digest, [0xa5; 32]);
        assert_eq!((keys[1].ends_at, keys[1].revoked_at), (Some(2), None));
        let mode = std::fs::metadata(data.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!data.join(FRESH).exists());
    }

    #[test]
    fn a_refused_change_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let refused: Result<(), String> = change(folder.path(), |_| Err("no".to_owned()));
        assert_eq!(refused, Err("no".to_owned()));
        assert!(read(folder.path()).unwrap().is_none());
    }

    #[test]
    fn a_damaged_file_is_named_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for text in [
            "",
            "{}",
            r#"{"version":2,"keys":[]}"#,
            r#"{"version":1,"keys":[{"id":"x"}]}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            let why = read(folder.path()).unwrap_err();
            assert!(why.contains("keys.json"), "{why}");
            assert!(change(folder.path(), |_| Ok(())).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
