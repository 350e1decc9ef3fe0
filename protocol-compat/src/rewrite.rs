//! Writes a body anew: the same message the way kafka-protocol's decoder wants it, or the same
//! message in a neighbouring version.
//!
//! The slow path. `shape` says which bodies need it, `later` uses it for versions that
//! kafka-protocol does not have. Driven by the field table alone.

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::schema::{Api, Default, Field, Struct, Type};
use crate::shape::fixed_len;
use crate::wire::{self, Malformed, Reader};

/// The value of a field that one of two versions lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Bool(bool),
    /// Any integer type.
    Int(i64),
    Uuid(Uuid),
    /// A string, perhaps null.
    Text(Option<String>),
    /// All else, as it is on the wire of the version written.
    Raw(Bytes),
}

/// What is done with fields that only one of the two versions has. Both are asked in wire order.
pub trait Difference {
    /// A field of the version read that the version written lacks.
    fn dropped(&mut self, field: &'static Field, value: Value);
    /// The value of a field that only the version written has; `None` is its default.
    fn added(&mut self, field: &'static Field) -> Option<Value>;
}

/// For versions that have the same fields.
pub(crate) struct NoDifference;

impl Difference for NoDifference {
    fn dropped(&mut self, _: &'static Field, _: Value) {}

    fn added(&mut self, _: &'static Field) -> Option<Value> {
        None
    }
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
    difference: &mut dyn Difference,
) -> Result<BytesMut, Malformed> {
    let mut out = BytesMut::with_capacity(body.len());
    let mut rewrite = Rewrite {
        from: Version { number: from, flexible: api.is_flexible(from) },
        to: Version { number: to, flexible: api.is_flexible(to) },
        reader: Reader::new(body),
        difference,
    };
    rewrite.structure(body_type, &mut out)?;
    Ok(out)
}

#[derive(Clone, Copy)]
struct Version {
    number: i16,
    flexible: bool,
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
    difference: &'a mut dyn Difference,
}

impl Rewrite<'_> {
    fn structure(&mut self, item: &'static Struct, out: &mut BytesMut) -> Result<(), Malformed> {
        for field in item.fields {
            let read = self.from.has(field) && !self.from.tags(field);
            let written = self.to.has(field) && !self.to.tags(field);
            match (read, written) {
                (true, true) => self.field(field, false, out)?,
                (true, false) => {
                    let value = self.taken(field, false)?;
                    self.difference.dropped(field, value);
                }
                (false, true) => match self.difference.added(field) {
                    Some(value) => put_value(out, self.to, field, &value),
                    None => put_default(out, self.to, field),
                },
                (false, false) => {}
            }
        }
        if self.from.flexible { self.tags(item, out) } else { Ok(()) }
    }

    fn tags(&mut self, item: &'static Struct, out: &mut BytesMut) -> Result<(), Malformed> {
        let mut payloads: Vec<(u32, BytesMut)> = Vec::new();
        let count = self.reader.uvarint()? as i32;
        for _ in 0..count {
            let tag = self.reader.uvarint()?;
            let at = self.reader.position();
            let size = self.reader.uvarint()? as i32;
            let Some(field) = item.tagged(tag) else {
                let size = usize::try_from(size).map_err(|_| Malformed::Truncated { at })?;
                self.reader.take(size)?;
                continue;
            };
            if !self.from.tags(field) {
                return Err(Malformed::Tag { at, tag });
            }
            if !self.to.tags(field) {
                let value = self.taken(field, true)?;
                self.difference.dropped(field, value);
                continue;
            }
            let mut payload = BytesMut::new();
            self.field(field, true, &mut payload)?;
            payloads.retain(|(other, _)| *other != tag);
            payloads.push((tag, payload));
        }
        if !self.to.flexible {
            return Ok(());
        }
        payloads.sort_by_key(|(tag, _)| *tag);
        wire::put_uvarint(out, payloads.len() as u32);
        for (tag, payload) in payloads {
            wire::put_uvarint(out, tag);
            wire::put_uvarint(out, payload.len() as u32);
            out.put_slice(&payload);
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

    /// Reads a field that is not to be written.
    fn taken(&mut self, field: &'static Field, in_tag: bool) -> Result<Value, Malformed> {
        Ok(match field.ty {
            Type::Bool => Value::Bool(self.reader.bool()?),
            Type::Int8 => Value::Int(self.reader.i8()?.into()),
            Type::Int16 => Value::Int(self.reader.i16()?.into()),
            Type::Uint16 => Value::Int(self.reader.u16()?.into()),
            Type::Int32 => Value::Int(self.reader.i32()?.into()),
            Type::Int64 => Value::Int(self.reader.i64()?),
            Type::Uuid => Value::Uuid(self.reader.uuid()?),
            Type::String => {
                let at = self.reader.position();
                let text = self.reader.nullable_string(self.from.flexible)?;
                if text.is_none() && !field.nullable.holds(self.from.number) {
                    return Err(Malformed::Null { at });
                }
                Value::Text(text.map(|bytes| wire::text(bytes).into_owned()))
            }
            _ => {
                let mut raw = BytesMut::new();
                self.field(field, in_tag, &mut raw)?;
                Value::Raw(raw.freeze())
            }
        })
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

/// # Panics
/// When the value is not of the field's type: both are ours.
fn put_value(out: &mut BytesMut, to: Version, field: &Field, value: &Value) {
    match (field.ty, value) {
        (Type::Bool, Value::Bool(value)) => out.put_u8(u8::from(*value)),
        (Type::Uuid, Value::Uuid(value)) => out.put_slice(value.as_bytes()),
        (Type::String, Value::Text(value)) => {
            assert!(value.is_some() || field.nullable.holds(to.number), "{} is null", field.name);
            wire::put_nullable_string(out, to.flexible, value.as_deref());
        }
        (ty, Value::Int(value)) if put_int(out, ty, *value) => {}
        (_, Value::Raw(bytes)) => out.put_slice(bytes),
        (ty, value) => panic!("{} is {ty:?}, not {value:?}", field.name),
    }
}

/// Whether the type was an integer.
fn put_int(out: &mut BytesMut, ty: Type, value: i64) -> bool {
    match ty {
        Type::Int8 => out.put_i8(value as i8),
        Type::Int16 => out.put_i16(value as i16),
        Type::Uint16 => out.put_u16(value as u16),
        Type::Int32 => out.put_i32(value as i32),
        Type::Int64 => out.put_i64(value),
        _ => return false,
    }
    true
}

fn put_default(out: &mut BytesMut, to: Version, field: &Field) {
    let null = field.default == Default::Null && field.nullable.holds(to.number);
    match field.ty {
        Type::Bool => out.put_u8(u8::from(field.default == Default::True)),
        Type::Int8 | Type::Int16 | Type::Uint16 | Type::Int32 | Type::Int64 => {
            let value = if let Default::Int(value) = field.default { value } else { 0 };
            put_int(out, field.ty, value);
        }
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
