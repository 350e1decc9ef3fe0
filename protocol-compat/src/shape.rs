//! The bounded shape check: proves a body well formed before a decoder sees it.
//!
//! kafka-protocol allocates what the wire claims, so nothing of a peer's reaches it unchecked.
//! The check allocates nothing. It lets through what Kafka 4.4's own parser lets through: bytes
//! behind the body, unknown tags, tags doubled or out of order, negative lengths for null, any
//! byte as a bool, text that is not UTF-8. It refuses truncation, null where none is allowed,
//! counts that cannot fit, and tags of other versions.

use bytes::Bytes;

use crate::rewrite::{Mode, rewrite};
use crate::schema::{self, Field, Struct, Type};
use crate::wire::{Malformed, Reader, STRING_MAX};

/// Why a body was refused; Kafka closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("no API has key {0}")]
    UnknownApi(i16),
    #[error("API {key} has no version {version}")]
    UnsupportedVersion { key: i16, version: i16 },
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// What the check learned about a well-formed body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many bytes the body has; what follows them is surplus.
    pub len: usize,
    /// About how many bytes the decoded message takes, the body itself not counted.
    pub memory: usize,
    /// Legal for Kafka, but not written the way kafka-protocol's decoder wants it.
    pub odd: bool,
}

/// The most memory one decoded message may take, its frame not counted. Large enough for every
/// request that a real client sends; what is above it was built to hurt.
pub const MEMORY_MAX: usize = 64 << 20;

/// Checks the body of a request.
pub fn check_request(key: i16, version: i16, body: &[u8]) -> Result<Shape, ShapeError> {
    let api = lookup(key, version)?;
    Ok(check(api.request, version, api.is_flexible(version), body)?)
}

/// Checks the body of a response; for tests and for what peers answer.
pub fn check_response(key: i16, version: i16, body: &[u8]) -> Result<Shape, ShapeError> {
    let api = lookup(key, version)?;
    Ok(check(api.response, version, api.is_flexible(version), body)?)
}

/// Checks a request body and gives back one that kafka-protocol decodes the way Kafka would:
/// nearly always the same bytes without the surplus, else a canonical rewriting of them.
pub fn request_body(key: i16, version: i16, body: &Bytes) -> Result<Bytes, ShapeError> {
    let shape = check_request(key, version, body)?;
    if !shape.odd {
        return Ok(body.slice(..shape.len));
    }
    let api = lookup(key, version)?;
    let versions = (version, version);
    Ok(rewrite(api, api.request, versions, body, Mode::Keep)?.freeze())
}

fn lookup(key: i16, version: i16) -> Result<&'static schema::Api, ShapeError> {
    let api = schema::api(key).ok_or(ShapeError::UnknownApi(key))?;
    if !api.has(version) {
        return Err(ShapeError::UnsupportedVersion { key, version });
    }
    Ok(api)
}

fn check(
    body_type: &'static Struct,
    version: i16,
    flexible: bool,
    body: &[u8],
) -> Result<Shape, Malformed> {
    let reader = Reader::new(body);
    let mut walk = Walk { version, flexible, reader, memory: 0, odd: false };
    walk.spend(1, body_type.memory as usize)?;
    walk.structure(body_type)?;
    Ok(Shape { len: walk.reader.position(), memory: walk.memory, odd: walk.odd })
}

/// One walk over one body. It recurses as deep as the schema nests, which is a handful.
struct Walk<'a> {
    version: i16,
    flexible: bool,
    reader: Reader<'a>,
    memory: usize,
    odd: bool,
}

impl Walk<'_> {
    fn structure(&mut self, item: &'static Struct) -> Result<(), Malformed> {
        for field in item.fields {
            if field.versions.holds(self.version) && !field.tagged.holds(self.version) {
                self.field(field, false)?;
            }
        }
        if self.flexible { self.tags(item) } else { Ok(()) }
    }

    fn field(&mut self, field: &'static Field, in_tag: bool) -> Result<(), Malformed> {
        let nullable = field.nullable.holds(self.version);
        match field.ty {
            Type::Array(element) => self.array(element, nullable),
            Type::Struct(item) if nullable => {
                if self.marker(in_tag)? {
                    self.structure(item)
                } else {
                    Ok(())
                }
            }
            ty => self.value(ty, nullable),
        }
    }

    fn value(&mut self, ty: Type, nullable: bool) -> Result<(), Malformed> {
        match ty {
            Type::String => self.string(nullable),
            Type::Bytes | Type::Records => self.bytes(nullable),
            Type::Struct(item) => self.structure(item),
            Type::Array(element) => self.array(element, nullable),
            _ => self.reader.take(fixed_len(ty)).map(|_| ()),
        }
    }

    fn array(&mut self, element: &'static Type, nullable: bool) -> Result<(), Malformed> {
        let at = self.reader.position();
        let smallest = self.smallest(*element);
        let len = self.reader.len(self.flexible)?;
        let Ok(count) = usize::try_from(len) else { return self.null(at, nullable, len) };
        if count.saturating_mul(smallest) > self.reader.remaining() {
            return Err(Malformed::Count { at, count: len });
        }
        self.spend(count, memory(*element))?;
        match *element {
            Type::String => {
                for _ in 0..count {
                    self.string(false)?;
                }
            }
            Type::Struct(item) => {
                for _ in 0..count {
                    self.structure(item)?;
                }
            }
            // What is of fixed size was proved to be there.
            fixed => drop(self.reader.take(count * fixed_len(fixed))?),
        }
        Ok(())
    }

    fn string(&mut self, nullable: bool) -> Result<(), Malformed> {
        let at = self.reader.position();
        let len = self.reader.string_len(self.flexible)?;
        let Ok(n) = usize::try_from(len) else { return self.null(at, nullable, len) };
        if n > STRING_MAX {
            return Err(Malformed::LongString { at, len });
        }
        if std::str::from_utf8(self.reader.take(n)?).is_err() {
            self.odd = true;
        }
        Ok(())
    }

    fn bytes(&mut self, nullable: bool) -> Result<(), Malformed> {
        let at = self.reader.position();
        let len = self.reader.len(self.flexible)?;
        match usize::try_from(len) {
            Ok(n) => self.reader.take(n).map(|_| ()),
            Err(_) => self.null(at, nullable, len),
        }
    }

    fn null(&mut self, at: usize, nullable: bool, len: i32) -> Result<(), Malformed> {
        self.odd |= len != -1;
        if nullable { Ok(()) } else { Err(Malformed::Null { at }) }
    }

    /// The marker of a struct that may be null: whether it is there.
    fn marker(&mut self, in_tag: bool) -> Result<bool, Malformed> {
        let (present, canonical) = if in_tag {
            let marker = self.reader.uvarint()? as i32;
            (marker > 0, marker == 0 || marker == 1)
        } else {
            let marker = self.reader.i8()?;
            (marker >= 0, marker == -1 || marker == 1)
        };
        self.odd |= !canonical;
        Ok(present)
    }

    fn tags(&mut self, item: &'static Struct) -> Result<(), Malformed> {
        let count = self.reader.uvarint()? as i32;
        self.odd |= count < 0;
        for _ in 0..count {
            let tag = self.reader.uvarint()?;
            let at = self.reader.position();
            let size = self.reader.uvarint()? as i32;
            match item.tagged(tag) {
                Some(field) if field.tagged.holds(self.version) => self.field(field, true)?,
                Some(_) => return Err(Malformed::Tag { at, tag }),
                None => {
                    // Dropped on the slow path: kept, each would cost a map in memory.
                    self.odd = true;
                    let size = usize::try_from(size).map_err(|_| Malformed::Truncated { at })?;
                    self.reader.take(size)?;
                }
            }
        }
        Ok(())
    }

    fn smallest(&self, element: Type) -> usize {
        match element {
            Type::Struct(item) => {
                let version = usize::try_from(self.version).unwrap_or_default();
                item.smallest.get(version).map_or(1, |bytes| usize::from(*bytes))
            }
            Type::String if self.flexible => 1,
            Type::String => 2,
            fixed => fixed_len(fixed),
        }
    }

    fn spend(&mut self, count: usize, each: usize) -> Result<(), Malformed> {
        self.memory = self.memory.saturating_add(count.saturating_mul(each));
        if self.memory > MEMORY_MAX { Err(Malformed::TooMuch) } else { Ok(()) }
    }
}

/// The bytes of a type of fixed size; 0 for the others.
pub(crate) const fn fixed_len(ty: Type) -> usize {
    match ty {
        Type::Bool | Type::Int8 => 1,
        Type::Int16 | Type::Uint16 => 2,
        Type::Int32 => 4,
        Type::Int64 | Type::Float64 => 8,
        Type::Uuid => 16,
        Type::String | Type::Bytes | Type::Records | Type::Array(_) | Type::Struct(_) => 0,
    }
}

/// About how many bytes an element takes when decoded.
const fn memory(element: Type) -> usize {
    match element {
        Type::Struct(item) => item.memory as usize,
        Type::String | Type::Bytes | Type::Records | Type::Array(_) => 32,
        fixed => fixed_len(fixed),
    }
}

#[cfg(test)]
mod tests;
