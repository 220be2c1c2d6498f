//! Names of the keys that belong to a stock. A key without braces hashes as a whole, and `{stock:1001}:sold` hashes as
//! `stock:1001`: so `stock:1001` keeps its plain name and its companions lie in the same slot of a cluster.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A `}` without a hash tag: no other key can be made to lie in the same slot for certain.
    #[error(
        "{key:?} contains a brace but no hash tag, so that no companion key can share its slot; write it as {{tag}}:name"
    )]
    NoTag { key: String },
}

/// The part of a key that decides its slot, if it has a hash tag.
pub fn tag(key: &str) -> Option<&str> {
    let start = key.find('{')? + 1;
    let length = key[start..].find('}')?;
    (length > 0).then(|| &key[start..start + length])
}

/// A key in the same slot as `key`: `stock:1001` and `sold` give `{stock:1001}:sold`.
pub fn companion(key: &str, suffix: &str) -> Result<String, KeyError> {
    if tag(key).is_some() {
        return Ok(format!("{key}:{suffix}"));
    }
    if key.is_empty() || key.contains('}') {
        return Err(KeyError::NoTag { key: key.to_owned() });
    }
    Ok(format!("{{{key}}}:{suffix}"))
}

/// Whether both keys are certain to lie in the same slot.
pub fn same_slot(one: &str, other: &str) -> bool {
    tag(one).unwrap_or(one) == tag(other).unwrap_or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_share_the_slot() {
        for key in [
            "stock:1001",
            "{sale}:1001",
            "stock:{1001}",
            "货",
            "a{b",
            "a{}b{c}",
        ] {
            match companion(key, "sold") {
                Ok(other) => assert!(same_slot(key, &other), "{key} {other}"),
                Err(error) => assert!(key.contains('}'), "{error}"),
            }
        }
        assert_eq!(companion("stock:1001", "sold").unwrap(), "{stock:1001}:sold");
        assert_eq!(companion("{sale}:1", "sold").unwrap(), "{sale}:1:sold");
        companion("a}b", "sold").unwrap_err();
        companion("a{}b", "sold").unwrap_err();
    }
}
