//! Writes a body anew: the same message the way kafka-protocol's decoder wants it, or the same
//! message in a neighbouring version.
//!
//! The slow path. `shape` says which bodies need it, `later` uses it for versions that
//! kafka-protocol does not have. Driven by the field table alone.

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use crate::schema::{Api, Default, Field, Struct, Type};
use crate::shape::fixed_len;
use crate::wire::{self, Malformed, Reader};

/// What becomes of fields that only one of two versions has. The tags used here are far above
/// any of Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A field that is not written is kept as a tagged field of its struct, [`extra_tag`].
    Keep,
    /// A field that is only written is taken from such a tagged field, else has its default.
    Fill,
}

/// The tag under which a field travels that the version written does not have.
pub(crate) const fn extra_tag(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    0x4000_0000 | hash >> 8
}

/// Reads `body`, a `body_type` of `api` in version `from`, and writes it in version `to`:
/// unknown tags left out, known ones once (the last, as in Kafka) and in order, null in its one
/// canonical form, text as UTF-8.
///
/// The two versions may differ in fields, not in where a common field is carried.
pub(crate) fn rewrite(
    api: &Api,
    body_type: &'static Struct,
    (from, to): (i16, i16),
    body: &[u8],
    mode: Mode,
) -> Result<BytesMut, Malformed> {
    let mut out = BytesMut::with_capacity(body.len());
    let mut rewrite = Rewrite {
        from: Version { number: from, flexible: api.is_flexible(from) },
        to: Version { number: to, flexible: api.is_flexible(to) },
        reader: Reader::new(body),
        mode,
    };
    rewrite.structure(body_type, &mut out)?;
    Ok(out)
}

/// A version, and whether it has compact lengths and tagged fields.
#[derive(Clone, Copy)]
pub(crate) struct Version {
    pub(crate) number: i16,
    pub(crate) flexible: bool,
}

impl Version {
    fn has(self, field: &Field) -> bool {
        field.versions.holds(self.number)
    }

    fn tags(self, field: &Field) -> bool {
        field.tagged.holds(self.number)
    }
}

struct Rewrite<'a> {
    from: Version,
    to: Version,
    reader: Reader<'a>,
    mode: Mode,
}

/// The tagged fields of a struct.
#[derive(Default)]
struct Tags<'a> {
    /// To be written, each tag once.
    kept: Vec<(u32, BytesMut)>,
    /// Not Kafka's: values for fields that the version read does not have.
    extra: Vec<(u32, &'a [u8])>,
}

impl Tags<'_> {
    fn keep(&mut self, tag: u32, payload: BytesMut) {
        self.kept.retain(|(other, _)| *other != tag);
        self.kept.push((tag, payload));
    }
}

impl<'a> Rewrite<'a> {
    fn structure(&mut self, item: &'static Struct, out: &mut BytesMut) -> Result<(), Malformed> {
        let mut tags = Tags::default();
        // Where in the fields one is missing that only the version written has.
        let mut gaps: Vec<(usize, &'static Field)> = Vec::new();
        let mut fields = BytesMut::new();
        for field in item.fields {
            let read = self.from.has(field) && !self.from.tags(field);
            let written = self.to.has(field) && !self.to.tags(field);
            match (read, written) {
                (true, true) => self.field(field, false, &mut fields)?,
                (true, false) => self.aside(field, false, &mut tags)?,
                (false, true) => gaps.push((fields.len(), field)),
                (false, false) => {}
            }
        }
        if self.from.flexible {
            self.read_tags(item, &mut tags)?;
        }
        let mut rest = fields.freeze();
        let mut written = 0;
        for (place, field) in gaps {
            out.put_slice(&rest.split_to(place - written));
            written = place;
            let value = tags.extra.iter().find(|(tag, _)| *tag == extra_tag(field.name));
            match value {
                Some((_, value)) => out.put_slice(value),
                None => put_default(out, self.to, field),
            }
        }
        out.put_slice(&rest);
        if self.to.flexible {
            write_tags(tags.kept, out);
        }
        Ok(())
    }

    fn read_tags(&mut self, item: &'static Struct, tags: &mut Tags<'a>) -> Result<(), Malformed> {
        let count = self.reader.uvarint()? as i32;
        for _ in 0..count {
            let tag = self.reader.uvarint()?;
            let at = self.reader.position();
            let size = self.reader.uvarint()? as i32;
            let Some(field) = item.tagged(tag) else {
                let size = usize::try_from(size).map_err(|_| Malformed::Truncated { at })?;
                let payload = self.reader.take(size)?;
                if self.mode == Mode::Fill {
                    tags.extra.push((tag, payload));
                }
                continue;
            };
            if !self.from.tags(field) {
                return Err(Malformed::Tag { at, tag });
            }
            if self.to.tags(field) {
                let mut payload = BytesMut::new();
                self.field(field, true, &mut payload)?;
                tags.keep(tag, payload);
            } else {
                self.aside(field, true, tags)?;
            }
        }
        Ok(())
    }

    /// Reads a field that the version written does not have.
    fn aside(
        &mut self,
        field: &'static Field,
        in_tag: bool,
        tags: &mut Tags<'a>,
    ) -> Result<(), Malformed> {
        let mut payload = BytesMut::new();
        self.field(field, in_tag, &mut payload)?;
        if self.mode == Mode::Keep {
            tags.keep(extra_tag(field.name), payload);
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        in_tag: bool,
        out: &mut BytesMut,
    ) -> Result<(), Malformed> {
        let nullable = field.nullable.holds(self.from.number);
        match field.ty {
            Type::Struct(item) if nullable => {
                let present = read_marker(&mut self.reader, in_tag)?;
                put_marker(out, in_tag, present);
                if present { self.structure(item, out) } else { Ok(()) }
            }
            ty => self.value(ty, nullable, out),
        }
    }

    fn value(&mut self, ty: Type, nullable: bool, out: &mut BytesMut) -> Result<(), Malformed> {
        let at = self.reader.position();
        let is_null = match ty {
            Type::String => {
                let text = self.reader.nullable_string(self.from.flexible)?.map(wire::text);
                wire::put_nullable_string(out, self.to.flexible, text.as_deref());
                text.is_none()
            }
            Type::Bytes | Type::Records => {
                let bytes = self.reader.nullable_bytes(self.from.flexible)?;
                wire::put_nullable_bytes(out, self.to.flexible, bytes);
                bytes.is_none()
            }
            Type::Array(element) => {
                let count = self.reader.nullable_count(self.from.flexible, 1)?;
                wire::put_len(out, self.to.flexible, count);
                for _ in 0..count.unwrap_or(0) {
                    self.value(*element, false, out)?;
                }
                count.is_none()
            }
            Type::Struct(item) => {
                self.structure(item, out)?;
                false
            }
            fixed => {
                out.put_slice(self.reader.take(fixed_len(fixed))?);
                false
            }
        };
        if is_null && !nullable { Err(Malformed::Null { at }) } else { Ok(()) }
    }
}

fn write_tags(mut tags: Vec<(u32, BytesMut)>, out: &mut BytesMut) {
    tags.sort_by_key(|(tag, _)| *tag);
    wire::put_uvarint(out, tags.len() as u32);
    for (tag, payload) in tags {
        wire::put_uvarint(out, tag);
        wire::put_uvarint(out, payload.len() as u32);
        out.put_slice(&payload);
    }
}

/// Kafka's markers of a struct that may be null: a signed byte, or a varint inside a tag.
pub(crate) fn read_marker(reader: &mut Reader<'_>, in_tag: bool) -> Result<bool, Malformed> {
    if in_tag { Ok(reader.uvarint()? as i32 > 0) } else { Ok(reader.i8()? >= 0) }
}

pub(crate) fn put_marker(out: &mut BytesMut, in_tag: bool, present: bool) {
    match (in_tag, present) {
        (true, _) => out.put_u8(u8::from(present)),
        (false, true) => out.put_i8(1),
        (false, false) => out.put_i8(-1),
    }
}

/// The default of a field, as it is when not in a tagged-field section.
pub(crate) fn put_default(out: &mut BytesMut, to: Version, field: &Field) {
    let null = field.default == Default::Null && field.nullable.holds(to.number);
    let int = if let Default::Int(value) = field.default { value } else { 0 };
    match field.ty {
        Type::Bool => out.put_u8(u8::from(field.default == Default::True)),
        Type::Int8 => out.put_i8(int as i8),
        Type::Int16 | Type::Uint16 => out.put_i16(int as i16),
        Type::Int32 => out.put_i32(int as i32),
        Type::Int64 => out.put_i64(int),
        Type::Float64 => out.put_f64(0.0),
        Type::Uuid => out.put_slice(Uuid::nil().as_bytes()),
        Type::String => {
            wire::put_nullable_string(out, to.flexible, if null { None } else { Some("") });
        }
        Type::Bytes | Type::Records | Type::Array(_) => {
            wire::put_len(out, to.flexible, if null { None } else { Some(0) });
        }
        Type::Struct(_) if null => put_marker(out, false, false),
        Type::Struct(item) => {
            if field.nullable.holds(to.number) {
                put_marker(out, false, true);
            }
            for inner in item.fields {
                if to.has(inner) && !to.tags(inner) {
                    put_default(out, to, inner);
                }
            }
            wire::put_no_tags(out, to.flexible);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::APIS;

    fn each_struct(item: &'static Struct, check: &mut impl FnMut(&'static Struct)) {
        check(item);
        for field in item.fields {
            match field.ty {
                Type::Struct(inner) | Type::Array(&Type::Struct(inner)) => {
                    each_struct(inner, check);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn extra_tags_are_nobodys() {
        let mut check = |item: &'static Struct| {
            let mut tags: Vec<u32> =
                item.fields.iter().map(|field| extra_tag(field.name)).collect();
            tags.extend(item.fields.iter().map(|field| field.tag));
            tags.sort_unstable();
            tags.dedup();
            let kafkas: std::collections::BTreeSet<u32> =
                item.fields.iter().map(|field| field.tag).collect();
            assert_eq!(tags.len(), item.fields.len() + kafkas.len(), "{}", item.name);
            assert!(kafkas.iter().all(|tag| *tag < 100));
        };
        for api in APIS {
            each_struct(api.request, &mut check);
            each_struct(api.response, &mut check);
        }
    }
}
