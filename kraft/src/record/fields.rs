//! Reading and writing of single fields. Readers never trust a length: what a count or a length
//! claims must be there before anything is allocated. Which fields a record has is `codec.rs`.

use std::sync::Arc;

use uuid::Uuid;

use super::RecordError;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_long(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

pub(super) fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub(super) fn put_text(out: &mut Vec<u8>, value: &str) {
    put_bytes(out, value.as_bytes());
}

pub(super) fn put_uuid(out: &mut Vec<u8>, value: Uuid) {
    out.extend_from_slice(value.as_bytes());
}

pub(super) fn put_ints(out: &mut Vec<u8>, values: &[i32]) {
    put_varint(out, values.len() as u64);
    values.iter().for_each(|value| put_long(out, i64::from(*value)));
}

pub(super) fn put_uuids(out: &mut Vec<u8>, values: &[Uuid]) {
    put_varint(out, values.len() as u64);
    values.iter().for_each(|value| put_uuid(out, *value));
}

pub(super) fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl Fn(&mut Vec<u8>, T)) {
    put_bool(out, value.is_some());
    if let Some(value) = value {
        put(out, value);
    }
}

/// A cursor over the bytes of one record.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, RecordError> {
        let (first, rest) = self.rest.split_first().ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn varint(&mut self) -> Result<u64, RecordError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(RecordError::Malformed("number too large"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::Malformed("number too long"))
    }

    pub(super) fn long(&mut self) -> Result<i64, RecordError> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    pub(super) fn int(&mut self) -> Result<i32, RecordError> {
        i32::try_from(self.long()?).map_err(|_| RecordError::Malformed("not an int32"))
    }

    pub(super) fn short(&mut self) -> Result<i16, RecordError> {
        i16::try_from(self.long()?).map_err(|_| RecordError::Malformed("not an int16"))
    }

    pub(super) fn port(&mut self) -> Result<u16, RecordError> {
        u16::try_from(self.long()?).map_err(|_| RecordError::Malformed("not a port"))
    }

    pub(super) fn tiny(&mut self) -> Result<i8, RecordError> {
        Ok(self.byte()? as i8)
    }

    pub(super) fn bool(&mut self) -> Result<bool, RecordError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RecordError::Malformed("not a bool")),
        }
    }

    pub(super) fn double(&mut self) -> Result<f64, RecordError> {
        let (head, rest) = self.rest.split_first_chunk::<8>().ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(f64::from_be_bytes(*head))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let len = usize::try_from(self.varint()?).map_err(|_| RecordError::Truncated)?;
        self.take(len)
    }

    pub(super) fn text(&mut self) -> Result<Arc<str>, RecordError> {
        let text = std::str::from_utf8(self.bytes()?);
        text.map(Arc::from).map_err(|_| RecordError::Malformed("text is not UTF-8"))
    }

    pub(super) fn uuid(&mut self) -> Result<Uuid, RecordError> {
        let (head, rest) = self.rest.split_first_chunk::<16>().ok_or(RecordError::Truncated)?;
        self.rest = rest;
        Ok(Uuid::from_bytes(*head))
    }

    /// A list whose items take at least `item_len` bytes each, so that no count can claim more than
    /// the record holds.
    pub(super) fn list<T>(
        &mut self,
        item_len: usize,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let count = usize::try_from(self.varint()?).map_err(|_| RecordError::Truncated)?;
        if count > self.rest.len() / item_len {
            return Err(RecordError::Truncated);
        }
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn ints(&mut self) -> Result<Vec<i32>, RecordError> {
        self.list(1, Reader::int)
    }

    pub(super) fn uuids(&mut self) -> Result<Vec<Uuid>, RecordError> {
        self.list(16, Reader::uuid)
    }

    pub(super) fn option<T>(
        &mut self,
        item: impl FnOnce(&mut Reader<'a>) -> Result<T, RecordError>,
    ) -> Result<Option<T>, RecordError> {
        if self.bool()? { item(self).map(Some) } else { Ok(None) }
    }
}
