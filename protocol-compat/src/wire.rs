//! The primitive types of Kafka's wire: a checked reader over bytes, and writers onto `BytesMut`.
//!
//! The reader never panics and never allocates; every length is compared with what is left before
//! it is believed. What a message is made of is `schema`; whole bodies are `shape`, `hot`, `later`.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

/// The longest string Kafka's parser takes, in bytes, in the old and in the compact encoding.
pub const STRING_MAX: usize = 0x7fff;

/// Why bytes are not what they should be. `at` counts from the start of what was being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field ends behind the end of the bytes.
    #[error("bytes end inside the field at {at}")]
    Truncated { at: usize },
    /// An array says it has more elements than the bytes that are left can hold.
    #[error("an array of {count} at {at} cannot fit")]
    Count { at: usize, count: i32 },
    /// Null where the field may not be null in this version.
    #[error("null at {at} where none is allowed")]
    Null { at: usize },
    /// A string above [`STRING_MAX`].
    #[error("a string of {len} bytes at {at}")]
    LongString { at: usize, len: i32 },
    /// A variable-length integer of more than five bytes.
    #[error("a variable-length integer at {at} does not end")]
    Varint { at: usize },
    /// A known tagged field in a version that does not have it.
    #[error("tag {tag} at {at} is not valid in this version")]
    Tag { at: usize, tag: u32 },
    /// Well formed, but it would take more memory than one request may ([`crate::shape`]).
    #[error("the message takes too much memory once decoded")]
    TooMuch,
}

/// A cursor over bytes that came from elsewhere.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident -> $t:ty, $n:literal;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$t, Malformed> {
            match self.rest.split_first_chunk::<$n>() {
                Some((head, rest)) => {
                    self.rest = rest;
                    Ok(<$t>::from_be_bytes(*head))
                }
                None => Err(self.truncated()),
            }
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Reads from the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, total: bytes.len() }
    }

    /// How many bytes were read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[cold]
    fn truncated(&self) -> Malformed {
        Malformed::Truncated { at: self.position() }
    }

    fixed! {
        /// One signed byte.
        i8 -> i8, 1;
        /// One unsigned byte.
        u8 -> u8, 1;
        /// Two bytes, signed.
        i16 -> i16, 2;
        /// Two bytes, unsigned (ports in newer messages).
        u16 -> u16, 2;
        /// Four bytes, signed.
        i32 -> i32, 4;
        /// Eight bytes, signed.
        i64 -> i64, 8;
        /// IEEE 754, eight bytes.
        f64 -> f64, 8;
    }

    /// Any byte but 0 is true, as in Kafka.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    /// Sixteen bytes.
    #[inline]
    pub fn uuid(&mut self) -> Result<Uuid, Malformed> {
        match self.rest.split_first_chunk::<16>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(Uuid::from_bytes(*head))
            }
            None => Err(self.truncated()),
        }
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(self.truncated()),
        }
    }

    /// An unsigned varint of at most five bytes. As in Kafka, the bits of the fifth byte that do
    /// not fit are dropped, and an encoding longer than needed is fine.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, Malformed> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u32::from(byte))
            }
            _ => self.uvarint_long(),
        }
    }

    fn uvarint_long(&mut self) -> Result<u32, Malformed> {
        let at = self.position();
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint { at })
    }

    /// A length or count in compact form: value + 1, so that 0 (and whatever is negative in Java's
    /// int) is null.
    #[inline]
    fn compact_len(&mut self) -> Result<i32, Malformed> {
        Ok((self.uvarint()? as i32).wrapping_sub(1))
    }

    /// The length of a string; negative is null.
    #[inline]
    pub fn string_len(&mut self, flexible: bool) -> Result<i32, Malformed> {
        if flexible { self.compact_len() } else { Ok(i32::from(self.i16()?)) }
    }

    /// The length of bytes or records, or the count of an array; negative is null.
    #[inline]
    pub fn len(&mut self, flexible: bool) -> Result<i32, Malformed> {
        if flexible { self.compact_len() } else { self.i32() }
    }

    /// The raw bytes of a string that may be null.
    #[inline]
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, Malformed> {
        let at = self.position();
        let len = self.string_len(flexible)?;
        match usize::try_from(len) {
            Err(_) => Ok(None),
            Ok(n) if n <= STRING_MAX => self.take(n).map(Some),
            Ok(_) => Err(Malformed::LongString { at, len }),
        }
    }

    /// The raw bytes of a string.
    #[inline]
    pub fn string(&mut self, flexible: bool) -> Result<&'a [u8], Malformed> {
        let at = self.position();
        self.nullable_string(flexible)?.ok_or(Malformed::Null { at })
    }

    /// Bytes, or records, that may be null.
    #[inline]
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, Malformed> {
        match usize::try_from(self.len(flexible)?) {
            Err(_) => Ok(None),
            Ok(n) => self.take(n).map(Some),
        }
    }

    /// Bytes that may not be null.
    pub fn bytes(&mut self, flexible: bool) -> Result<&'a [u8], Malformed> {
        let at = self.position();
        self.nullable_bytes(flexible)?.ok_or(Malformed::Null { at })
    }

    /// The count of an array whose elements take at least `smallest` bytes each: proved to fit.
    #[inline]
    pub fn nullable_count(
        &mut self,
        flexible: bool,
        smallest: usize,
    ) -> Result<Option<usize>, Malformed> {
        let at = self.position();
        let count = self.len(flexible)?;
        let Ok(n) = usize::try_from(count) else { return Ok(None) };
        if n.saturating_mul(smallest.max(1)) > self.remaining() {
            return Err(Malformed::Count { at, count });
        }
        Ok(Some(n))
    }

    /// [`Reader::nullable_count`] of an array that may not be null.
    #[inline]
    pub fn count(&mut self, flexible: bool, smallest: usize) -> Result<usize, Malformed> {
        let at = self.position();
        self.nullable_count(flexible, smallest)?.ok_or(Malformed::Null { at })
    }

    /// Walks a tagged-field section. `known` gets each tag with the reader at its payload; it
    /// reads the payload and says true, or says false to have it skipped. Kafka's parser does not
    /// look at the size of a tag that it knows, nor at the order of tags, so neither does this.
    #[inline]
    pub fn tagged<F>(&mut self, mut known: F) -> Result<(), Malformed>
    where
        F: FnMut(u32, &mut Self) -> Result<bool, Malformed>,
    {
        // A negative count (in Java's int) is no fields. A huge one soon runs out of bytes.
        let count = self.uvarint()? as i32;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as i32;
            if !known(tag, self)? {
                let size = usize::try_from(size).map_err(|_| self.truncated())?;
                self.take(size)?;
            }
        }
        Ok(())
    }

    /// Skips a tagged-field section in which no tag is known.
    #[inline]
    pub fn skip_tags(&mut self) -> Result<(), Malformed> {
        self.tagged(|_, _| Ok(false))
    }
}

/// The text of a string's bytes, decoded as Java does: what is not UTF-8 becomes U+FFFD.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(replaced(bytes)),
    }
}

/// Java and Rust replace alike but for an encoded surrogate, which is one character to Java.
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(chunk) = rest.utf8_chunks().next() {
        text.push_str(chunk.valid());
        let bad = rest.get(chunk.valid().len()..).unwrap_or_default();
        let skip = match bad {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
            _ => chunk.invalid().len(),
        };
        if skip > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        rest = bad.get(skip..).unwrap_or_default();
    }
    text
}

/// The text of a string that was kept as a range into a body. A range that is not inside `body`
/// gives an empty string.
pub fn text_at<'a>(body: &'a [u8], range: &Range<usize>) -> Cow<'a, str> {
    text(body.get(range.clone()).unwrap_or_default())
}

/// An unsigned varint.
pub fn put_uvarint(out: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// How many bytes [`put_uvarint`] writes.
pub fn uvarint_len(value: u32) -> usize {
    (38 - (value | 1).leading_zeros() as usize) / 7
}

/// The count of an array, or the length of bytes; `None` is null.
///
/// # Panics
/// When the count is above 2^31 - 2: our own messages are never that long.
pub fn put_len(out: &mut BytesMut, flexible: bool, len: Option<usize>) {
    match (flexible, len) {
        (true, None) => out.put_u8(0),
        (true, Some(n)) => {
            assert!(n < i32::MAX as usize, "an array or bytes too long for the wire");
            put_uvarint(out, n as u32 + 1);
        }
        (false, None) => out.put_i32(-1),
        (false, Some(n)) => {
            assert!(n < i32::MAX as usize, "an array or bytes too long for the wire");
            out.put_i32(n as i32);
        }
    }
}

/// A string; `None` is null. One that is too long for the wire is cut at a character.
pub fn put_nullable_string(out: &mut BytesMut, flexible: bool, value: Option<&str>) {
    let value = value.map(|text| text.get(..text.floor_char_boundary(STRING_MAX)).unwrap_or(text));
    match (flexible, value) {
        (true, None) => out.put_u8(0),
        (true, Some(text)) => put_uvarint(out, text.len() as u32 + 1),
        (false, None) => out.put_i16(-1),
        (false, Some(text)) => out.put_i16(text.len() as i16),
    }
    out.put_slice(value.unwrap_or_default().as_bytes());
}

/// A string that is not null.
pub fn put_string(out: &mut BytesMut, flexible: bool, value: &str) {
    put_nullable_string(out, flexible, Some(value));
}

/// A string in an array of the "nullable" kind, or bytes; `None` is null.
pub fn put_nullable_bytes(out: &mut BytesMut, flexible: bool, value: Option<&[u8]>) {
    put_len(out, flexible, value.map(<[u8]>::len));
    out.put_slice(value.unwrap_or_default());
}

/// An empty tagged-field section, which the flexible versions have.
#[inline]
pub fn put_no_tags(out: &mut BytesMut, flexible: bool) {
    if flexible {
        out.put_u8(0);
    }
}

#[cfg(test)]
mod tests;
