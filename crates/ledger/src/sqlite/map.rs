//! Maps of the writer: keyed by names that repeat with every order, so their hash has to be cheap. Seeds are random, so
//! that nobody who chooses ids can choose collisions.

/// A map with a cheap hash.
pub(super) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
