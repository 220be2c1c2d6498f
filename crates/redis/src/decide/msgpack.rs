//! The little of `MessagePack` that arguments need: Redis unpacks it in C.

/// Writes one value after another.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    #[expect(clippy::cast_possible_truncation, reason = "the length was compared")]
    fn sized(&mut self, short: u8, short_max: usize, long: u8, length: usize) {
        if length <= short_max {
            self.0.push(short | length as u8);
        } else {
            self.0.push(long);
            self.0.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    /// A list of so many values, which follow.
    pub(super) fn list(&mut self, length: usize) {
        self.sized(0x90, 15, 0xdd, length);
    }
    /// A map of so many pairs, which follow.
    fn map(&mut self, length: usize) {
        self.sized(0x80, 15, 0xdf, length);
    }
    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        self.sized(0xa0, 31, 0xdb, text.len());
        self.0.extend_from_slice(text);
    }
    #[expect(clippy::cast_possible_truncation, reason = "it was compared")]
    pub(super) fn number(&mut self, number: u64) {
        if number < 128 {
            self.0.push(number as u8);
        } else {
            self.0.push(0xcf);
            self.0.extend_from_slice(&number.to_be_bytes());
        }
    }
    pub(super) fn signed(&mut self, number: i64) {
        if let Ok(number) = u64::try_from(number) {
            self.number(number);
        } else {
            self.0.push(0xd3);
            self.0.extend_from_slice(&number.to_be_bytes());
        }
    }
    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(if flag { 0xc3 } else { 0xc2 });
    }
    /// A text, or false.
    pub(super) fn text_or_false(&mut self, text: Option<impl AsRef<[u8]>>) {
        match text {
            Some(text) => self.text(text),
            None => self.flag(false),
        }
    }
}

/// A map, whose size is known only at its end.
#[derive(Debug, Default)]
pub(super) struct Map {
    pairs: usize,
    body: Writer,
}

impl Map {
    /// The place for the value of a key.
    pub(super) fn key(&mut self, name: &str) -> &mut Writer {
        self.pairs += 1;
        self.body.text(name);
        &mut self.body
    }
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut out = Writer::default();
        out.map(self.pairs);
        out.0.extend_from_slice(&self.body.0);
        out.0
    }
    /// As the value of a key of another map.
    pub(super) fn put(self, to: &mut Writer) {
        to.0.extend_from_slice(&self.bytes());
    }
}
