//! Any request of any version from JSON-like values, and answers back into them, strictly.
//!
//! Bytes are a string if they are plain text, else `{"hex": ".."}`; uuids are 32 hex digits. What a
//! request leaves out has its default. What a version does not have is left out of the request, so
//! that one value serves all versions; a name that no version has is a mistake of the case. Unknown
//! tagged fields stand under `_tags`.

use serde_json::{Map, Value, json};

use super::table::{Api, Field, Message, Type};

/// Topic ids and the like that are not set.
pub const ZERO_ID: &str = "00000000000000000000000000000000";

/// An id that no topic has.
pub const UNKNOWN_ID: &str = "abababababababababababababababab";

/// Why bytes are no message.
#[derive(Debug, PartialEq, Eq)]
pub struct Bad(pub String);

type Read<T> = Result<T, Bad>;

/// Bytes as a value.
pub fn hex(bytes: &[u8]) -> Value {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    json!({ "hex": text })
}

/// The bytes of a value, if it stands for some.
pub fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Some(text.as_bytes().to_vec());
    }
    unhex(value.get("hex")?.as_str()?)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let half = |digit: u8| char::from(digit).to_digit(16).map(|half| half as u8);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(half(*high)? << 4 | half(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

/// The header of a request.
pub struct Header<'a> {
    pub correlation: i32,
    pub client_id: Option<&'a str>,
    /// Raw tagged fields: JSON of tag to bytes, or null.
    pub tags: &'a Value,
}

/// The header for `version`, of version 2 if `flexible`.
pub fn encode_header(key: i16, version: i16, flexible: bool, header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&header.correlation.to_be_bytes());
    match header.client_id {
        None => out.extend_from_slice(&(-1i16).to_be_bytes()),
        Some(id) => {
            out.extend_from_slice(&(id.len() as i16).to_be_bytes());
            out.extend_from_slice(id.as_bytes());
        }
    }
    if flexible {
        put_tags(&mut out, Vec::new(), header.tags);
    }
    out
}

/// A whole request without its length.
pub fn encode_request(api: &Api, version: i16, header: &Header, body: &Value) -> Vec<u8> {
    let flexible = api.request.flexible.holds(version);
    let mut out = encode_header(api.key, version, flexible, header);
    out.extend(encode_body(&api.request, version, body));
    out
}

/// The body of a message. A value of the wrong kind is a mistake of the case and panics.
pub fn encode_body(message: &Message, version: i16, body: &Value) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new(), version, flexible: message.flexible.holds(version) };
    writer.fields(&message.fields, body);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    version: i16,
    flexible: bool,
}

impl Writer {
    fn fields(&mut self, fields: &[Field], value: &Value) {
        let nothing = Map::new();
        let given = value.as_object().unwrap_or(&nothing);
        for name in given.keys().filter(|name| *name != "_tags") {
            assert!(fields.iter().any(|field| field.name == *name), "no field is named {name}");
        }
        let mut tagged = Vec::new();
        let version = self.version;
        for field in fields.iter().filter(|field| field.versions.holds(version)) {
            let value = given.get(&field.name);
            match field.tag_in(self.version) {
                None => {
                    let value = value.cloned().unwrap_or_else(|| default_of(field));
                    self.value(&field.kind, &value, field);
                }
                Some(tag) => {
                    let Some(value) = value.filter(|value| **value != default_of(field)) else {
                        continue;
                    };
                    let mut inner =
                        Writer { out: Vec::new(), version: self.version, flexible: true };
                    inner.value(&field.kind, value, field);
                    tagged.push((tag, inner.out));
                }
            }
        }
        if self.flexible {
            put_tags(&mut self.out, tagged, given.get("_tags").unwrap_or(&Value::Null));
        }
    }

    fn value(&mut self, kind: &Type, value: &Value, field: &Field) {
        fn must<T>(found: Option<T>, kind: &Type, value: &Value, field: &Field) -> T {
            found.unwrap_or_else(|| panic!("{}: {value} is no {kind:?}", field.name))
        }
        match kind {
            Type::Bool => self.out.push(u8::from(must(value.as_bool(), kind, value, field))),
            Type::Int(size, _) => {
                let bytes = must(value.as_i64(), kind, value, field).to_be_bytes();
                self.out.extend_from_slice(&bytes[8 - size..]);
            }
            Type::Float => {
                let number = must(value.as_f64(), kind, value, field);
                self.out.extend_from_slice(&number.to_be_bytes());
            }
            Type::Uuid => {
                let bytes = value.as_str().and_then(unhex).filter(|bytes| bytes.len() == 16);
                self.out.extend(must(bytes, kind, value, field));
            }
            Type::String | Type::Bytes if value.is_null() => self.length(None, kind),
            Type::String | Type::Bytes => {
                let bytes = must(bytes_of(value), kind, value, field);
                self.length(Some(bytes.len()), kind);
                self.out.extend(bytes);
            }
            Type::Struct(fields) if field.nullable.holds(self.version) => {
                self.out.push(if value.is_null() { 0xff } else { 1 });
                if !value.is_null() {
                    self.fields(fields, value);
                }
            }
            Type::Struct(fields) => self.fields(fields, value),
            Type::Array(_) if value.is_null() => self.length(None, kind),
            Type::Array(element) => {
                let items = must(value.as_array(), kind, value, field);
                self.length(Some(items.len()), kind);
                for item in items {
                    match &**element {
                        Type::Struct(fields) => self.fields(fields, item),
                        other => self.value(other, item, field),
                    }
                }
            }
        }
    }

    fn length(&mut self, length: Option<usize>, kind: &Type) {
        if self.flexible {
            put_varint(&mut self.out, length.map_or(0, |length| length as u64 + 1));
        } else if matches!(kind, Type::String) {
            let length = length.map_or(-1, |length| length as i16);
            self.out.extend_from_slice(&length.to_be_bytes());
        } else {
            let length = length.map_or(-1, |length| length as i32);
            self.out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// What a request holds that does not name the field.
fn default_of(field: &Field) -> Value {
    let text = field.default.as_deref();
    if text == Some("null") {
        return Value::Null;
    }
    match &field.kind {
        Type::Bool => json!(text == Some("true")),
        Type::Int(..) => json!(text.map_or(0, number)),
        Type::Float => json!(0.0),
        Type::Uuid => json!(ZERO_ID),
        Type::String | Type::Bytes => json!(text.unwrap_or("")),
        Type::Struct(_) => json!({}),
        Type::Array(_) => json!([]),
    }
}

fn number(text: &str) -> i64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("default {text}"))
}

fn put_tags(out: &mut Vec<u8>, mut tagged: Vec<(u32, Vec<u8>)>, raw: &Value) {
    for (tag, value) in raw.as_object().into_iter().flatten() {
        let bytes = bytes_of(value).expect("raw tags are bytes");
        tagged.push((tag.parse().expect("a tag is a number"), bytes));
    }
    tagged.sort();
    put_varint(out, tagged.len() as u64);
    for (tag, bytes) in tagged {
        put_varint(out, u64::from(tag));
        put_varint(out, bytes.len() as u64);
        out.extend(bytes);
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// An answer: its correlation id and body. Every byte must be accounted for.
pub fn decode_response(api: &Api, version: i16, frame: &[u8]) -> Read<(i32, Value)> {
    let message = &api.response;
    let flexible = message.flexible.holds(version);
    let mut reader = Reader { rest: frame, version, flexible };
    let correlation = i32::from_be_bytes(reader.array("correlation id")?);
    // The header of ApiVersions has no tags in any version: it must be readable to all.
    if flexible && api.key != 18 && reader.tags(&[])? != Map::new() {
        return Err(Bad("tags in the header".to_owned()));
    }
    let body = reader.fields(&message.fields)?;
    match reader.rest.len() {
        0 => Ok((correlation, body)),
        left => Err(Bad(format!("{left} bytes left over"))),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, what: &str) -> Read<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(Bad(format!("{what}: {count} bytes, {} there", self.rest.len())));
        };
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Read<[u8; N]> {
        Ok(self.take(N, what)?.try_into().expect("take gives what was asked for"))
    }

    fn varint(&mut self, what: &str) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..=28).step_by(7) {
            let [byte] = self.array(what)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if shift > 0 && byte == 0 {
                    Err(Bad(format!("{what}: a varint longer than it need be")))
                } else {
                    Ok(value)
                };
            }
        }
        Err(Bad(format!("{what}: a varint without end")))
    }

    fn fields(&mut self, fields: &[Field]) -> Read<Value> {
        let mut out = Map::new();
        let version = self.version;
        let here = fields.iter().filter(|field| field.versions.holds(version));
        for field in here.clone().filter(|field| field.tag_in(version).is_none()) {
            out.insert(field.name.clone(), self.value(&field.kind, field)?);
        }
        if self.flexible {
            out.extend(self.tags(fields)?);
        }
        for field in here.filter(|field| field.tag_in(version).is_some()) {
            out.entry(field.name.clone()).or_insert_with(|| default_of(field));
        }
        Ok(Value::Object(out))
    }

    fn tags(&mut self, fields: &[Field]) -> Read<Map<String, Value>> {
        let mut out = Map::new();
        let mut unknown = Map::new();
        let mut last = None;
        for _ in 0..self.varint("tags")? {
            let tag = self.varint("tag")?;
            if last.is_some_and(|last| last >= tag) {
                return Err(Bad(format!("tag {tag} is out of order")));
            }
            last = Some(tag);
            let size = self.varint("tag size")? as usize;
            let body = self.take(size, "tag")?;
            let mine = |field: &&Field| {
                field.versions.holds(self.version)
                    && field.tag_in(self.version).map(u64::from) == Some(tag)
            };
            let Some(field) = fields.iter().find(mine) else {
                unknown.insert(tag.to_string(), hex(body));
                continue;
            };
            let mut inner = Reader { rest: body, version: self.version, flexible: true };
            let value = inner.value(&field.kind, field)?;
            if !inner.rest.is_empty() {
                return Err(Bad(format!("{}: bytes left over in its tag", field.name)));
            }
            out.insert(field.name.clone(), value);
        }
        if !unknown.is_empty() {
            out.insert("_tags".to_owned(), Value::Object(unknown));
        }
        Ok(out)
    }

    fn value(&mut self, kind: &Type, field: &Field) -> Read<Value> {
        let name = &field.name;
        let read = match kind {
            Type::Bool => match self.array(name)? {
                [0] => json!(false),
                [1] => json!(true),
                [other] => return Err(Bad(format!("{name}: {other} is no bool"))),
            },
            Type::Int(size, signed) => {
                let bytes = self.take(*size, name)?;
                let negative = *signed && bytes[0] & 0x80 != 0;
                let mut full = if negative { [0xff; 8] } else { [0; 8] };
                full[8 - size..].copy_from_slice(bytes);
                json!(i64::from_be_bytes(full))
            }
            Type::Float => json!(f64::from_be_bytes(self.array(name)?)),
            Type::Uuid => hex(&self.array::<16>(name)?)["hex"].take(),
            Type::Struct(fields) if field.nullable.holds(self.version) => match self.array(name)? {
                [0xff] => Value::Null,
                [1] => self.fields(fields)?,
                [other] => return Err(Bad(format!("{name}: {other} instead of 1 or -1"))),
            },
            Type::Struct(fields) => self.fields(fields)?,
            Type::String | Type::Bytes | Type::Array(_) => {
                let Some(length) = self.length(kind, name)? else {
                    if !field.nullable.holds(self.version) {
                        return Err(Bad(format!("{name}: null, which it may not be")));
                    }
                    return Ok(Value::Null);
                };
                self.sized(kind, length, field)?
            }
        };
        Ok(read)
    }

    fn length(&mut self, kind: &Type, name: &str) -> Read<Option<usize>> {
        let length = if self.flexible {
            self.varint(name)? as i64 - 1
        } else if matches!(kind, Type::String) {
            i64::from(i16::from_be_bytes(self.array(name)?))
        } else {
            i64::from(i32::from_be_bytes(self.array(name)?))
        };
        match usize::try_from(length) {
            Ok(length) if length <= self.rest.len() => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            _ => Err(Bad(format!("{name}: length {length} with {} bytes left", self.rest.len()))),
        }
    }

    fn sized(&mut self, kind: &Type, length: usize, field: &Field) -> Read<Value> {
        match kind {
            Type::String => {
                let bytes = self.take(length, &field.name)?;
                let text = std::str::from_utf8(bytes);
                Ok(json!(text.map_err(|_| Bad(format!("{}: not UTF-8", field.name)))?))
            }
            Type::Bytes => {
                let bytes = self.take(length, &field.name)?;
                let plain = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
                if plain { Ok(json!(String::from_utf8_lossy(bytes))) } else { Ok(hex(bytes)) }
            }
            Type::Array(element) => {
                let items = (0..length).map(|_| match &**element {
                    Type::Struct(fields) => self.fields(fields),
                    other => self.value(other, field),
                });
                items.collect::<Read<Vec<Value>>>().map(Value::Array)
            }
            _ => unreachable!("only these have a length"),
        }
    }
}

#[cfg(test)]
mod tests;
