//! Well-formed random bodies from a seed, for tests: every field of the table, in any version.
//!
//! Two kinds. A plain body is what Kafka's own writer would make. An odd body says the same in
//! all the ways that Kafka's parser takes but its writer never uses.

use bytes::{BufMut, BytesMut};

use crate::rewrite::{Version, put_default, put_marker};
use crate::schema::{self, Api, Default, Field, Struct, Type};
use crate::wire;

/// Most elements of an array.
const ELEMENTS_MAX: u64 = 3;

/// SplitMix64: small, and the same numbers from a seed for ever.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Numbers that depend on nothing but the seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A body written in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// As a Kafka client writes it.
    pub plain: Vec<u8>,
    /// The same message, written oddly.
    pub odd: Vec<u8>,
}

/// A request body; `None` if there is no such API or version.
pub fn request(seed: u64, key: i16, version: i16) -> Option<Vec<u8>> {
    let api = schema::api(key).filter(|api| api.has(version))?;
    Some(Generator::new(seed, api, version, false).body(api.request).plain)
}

/// A response body; `None` if there is no such API or version.
pub fn response(seed: u64, key: i16, version: i16) -> Option<Vec<u8>> {
    let api = schema::api(key).filter(|api| api.has(version))?;
    Some(Generator::new(seed, api, version, false).body(api.response).plain)
}

/// A request body in its plain and in an odd form; `None` if there is no such API or version.
///
/// Both mean the same to Kafka. In the plain form, too, tagged fields may be at their default.
pub fn odd_request(seed: u64, key: i16, version: i16) -> Option<Body> {
    let api = schema::api(key).filter(|api| api.has(version))?;
    Some(Generator::new(seed, api, version, true).body(api.request))
}

struct Generator {
    rng: Rng,
    version: Version,
    odd: bool,
}

/// Both forms at once.
#[derive(Default)]
struct Out {
    plain: BytesMut,
    odd: BytesMut,
}

impl Out {
    fn both(&mut self, bytes: &[u8]) {
        self.plain.put_slice(bytes);
        self.odd.put_slice(bytes);
    }
}

impl Generator {
    fn new(seed: u64, api: &Api, version: i16, odd: bool) -> Self {
        // Different messages from one seed should not begin alike.
        let salt = (api.key as u64) << 32 | version as u64;
        let mut rng = Rng::new(seed ^ salt.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.any();
        let version = Version { number: version, flexible: api.is_flexible(version) };
        Generator { rng, version, odd }
    }

    fn body(mut self, item: &'static Struct) -> Body {
        let mut out = Out::default();
        self.structure(item, &mut out);
        if self.oddly() {
            for _ in 0..self.rng.below(20) {
                out.odd.put_u8(self.rng.any() as u8);
            }
        }
        Body { plain: out.plain.to_vec(), odd: out.odd.to_vec() }
    }

    /// Whether to be odd this time.
    fn oddly(&mut self) -> bool {
        self.odd && self.rng.once_in(4)
    }

    fn structure(&mut self, item: &'static Struct, out: &mut Out) {
        for field in item.fields {
            if field.versions.holds(self.version.number) && !field.tagged.holds(self.version.number)
            {
                self.field(field, false, out);
            }
        }
        if self.version.flexible {
            self.tags(item, out);
        }
    }

    fn tags(&mut self, item: &'static Struct, out: &mut Out) {
        let mut plain: Vec<(u32, BytesMut)> = Vec::new();
        let mut odd: Vec<(u32, BytesMut)> = Vec::new();
        for field in item.fields {
            if !field.tagged.holds(self.version.number) || self.rng.once_in(3) {
                continue;
            }
            let mut payload = Out::default();
            self.field(field, true, &mut payload);
            if !self.odd && self.is_default(field, &payload.plain) {
                continue;
            }
            if self.oddly() {
                let mut earlier = Out::default();
                self.field(field, true, &mut earlier);
                odd.push((field.tag, earlier.odd));
            }
            plain.push((field.tag, payload.plain));
            odd.push((field.tag, payload.odd));
        }
        plain.sort_by_key(|(tag, _)| *tag);
        self.unknown_tags(item, &mut odd);
        if odd.is_empty() && self.oddly() {
            self.uvarint(&mut out.odd, 0x8000_0000 | self.rng.clone().any() as u32);
        } else {
            self.uvarint(&mut out.odd, odd.len() as u32);
        }
        for (tag, payload) in odd {
            self.uvarint(&mut out.odd, tag);
            let known = item.tagged(tag).is_some();
            let wrong = known && self.oddly();
            let size = if wrong { self.rng.any() as u32 } else { payload.len() as u32 };
            self.uvarint(&mut out.odd, size);
            out.odd.put_slice(&payload);
        }
        wire::put_uvarint(&mut out.plain, plain.len() as u32);
        for (tag, payload) in plain {
            wire::put_uvarint(&mut out.plain, tag);
            wire::put_uvarint(&mut out.plain, payload.len() as u32);
            out.plain.put_slice(&payload);
        }
    }

    /// Adds unknown tags, and puts all where they should not be, keeping each tag's last its last.
    fn unknown_tags(&mut self, item: &'static Struct, odd: &mut Vec<(u32, BytesMut)>) {
        while self.oddly() {
            let mut payload = BytesMut::new();
            for _ in 0..self.rng.below(5) {
                payload.put_u8(self.rng.any() as u8);
            }
            let tag = if self.rng.once_in(2) { 100 } else { self.rng.any() as u32 };
            if item.tagged(tag).is_none() {
                let place = self.rng.below(odd.len() as u64 + 1) as usize;
                odd.insert(place, (tag, payload));
            }
        }
        if self.oddly() {
            odd.sort_by_key(|(tag, _)| std::cmp::Reverse(*tag));
        }
    }

    fn is_default(&self, field: &'static Field, payload: &[u8]) -> bool {
        let mut default = BytesMut::new();
        put_default(&mut default, self.version, field);
        default.as_ref() == payload
    }

    fn field(&mut self, field: &'static Field, in_tag: bool, out: &mut Out) {
        let nullable = field.nullable.holds(self.version.number);
        match field.ty {
            Type::Struct(item) if nullable => {
                let present = self.rng.once_in(2);
                self.marker(in_tag, present, out);
                if present {
                    self.structure(item, out);
                }
            }
            ty => {
                let null = nullable && self.rng.once_in(3);
                self.value(ty, null, field.default, out);
            }
        }
    }

    fn marker(&mut self, in_tag: bool, present: bool, out: &mut Out) {
        put_marker(&mut out.plain, in_tag, present);
        if in_tag || !self.oddly() {
            put_marker(&mut out.odd, in_tag, present);
        } else {
            let marker = self.rng.below(128) as u8;
            out.odd.put_u8(if present { marker } else { 0x80 | marker });
        }
    }

    fn value(&mut self, ty: Type, null: bool, default: Default, out: &mut Out) {
        match ty {
            Type::Bool if self.oddly() => out.both(&[self.rng.any() as u8]),
            Type::Bool => out.both(&[self.rng.below(2) as u8]),
            Type::Int8 => out.both(&(self.int(default) as i8).to_be_bytes()),
            Type::Int16 | Type::Uint16 => out.both(&(self.int(default) as i16).to_be_bytes()),
            Type::Int32 => out.both(&(self.int(default) as i32).to_be_bytes()),
            Type::Int64 => out.both(&self.int(default).to_be_bytes()),
            Type::Float64 => out.both(&(self.rng.below(1000) as f64 / 8.0).to_be_bytes()),
            Type::Uuid => {
                out.both(&self.rng.any().to_be_bytes());
                out.both(&self.rng.any().to_be_bytes());
            }
            Type::String | Type::Bytes | Type::Records | Type::Array(_) if null => {
                self.null(matches!(ty, Type::String), out);
            }
            Type::String => self.string(out),
            Type::Bytes | Type::Records => {
                let len = self.rng.below(40) as usize;
                self.len(false, len, out);
                for _ in 0..len {
                    out.both(&[self.rng.any() as u8]);
                }
            }
            Type::Array(element) => {
                let count = self.rng.below(ELEMENTS_MAX + 1) as usize;
                self.len(false, count, out);
                for _ in 0..count {
                    self.value(*element, false, Default::Zero, out);
                }
            }
            Type::Struct(item) => self.structure(item, out),
        }
    }

    /// Small numbers, any number, or the default.
    fn int(&mut self, default: Default) -> i64 {
        match (self.rng.below(4), default) {
            (0, Default::Int(value)) => value,
            (0 | 1, _) => self.rng.below(10) as i64 - 1,
            _ => self.rng.any() as i64,
        }
    }

    fn string(&mut self, out: &mut Out) {
        let mut bytes = Vec::new();
        for _ in 0..self.rng.below(12) {
            match self.rng.below(20) {
                0 => bytes.extend_from_slice("é→😀".as_bytes()),
                _ => bytes.push(b'a' + self.rng.below(26) as u8),
            }
        }
        if self.oddly() {
            for _ in 0..1 + self.rng.below(4) {
                bytes.push(0x80 | self.rng.any() as u8);
            }
        }
        let text = wire::text(&bytes);
        wire::put_string(&mut out.plain, self.version.flexible, &text);
        let mut odd = Out::default();
        self.len(true, bytes.len(), &mut odd);
        out.odd.put_slice(&odd.odd);
        out.odd.put_slice(&bytes);
    }

    /// The length of a string, else of bytes or an array.
    fn len(&mut self, string: bool, len: usize, out: &mut Out) {
        match (self.version.flexible, string) {
            (true, _) => {
                wire::put_uvarint(&mut out.plain, len as u32 + 1);
                self.uvarint(&mut out.odd, len as u32 + 1);
            }
            (false, true) => out.both(&(len as i16).to_be_bytes()),
            (false, false) => out.both(&(len as i32).to_be_bytes()),
        }
    }

    fn null(&mut self, string: bool, out: &mut Out) {
        let less = if self.oddly() { self.rng.below(0x7fff) as i32 } else { 0 };
        match (self.version.flexible, string) {
            (true, _) => {
                out.plain.put_u8(0);
                self.uvarint(&mut out.odd, (-less) as u32);
            }
            (false, true) => {
                out.plain.put_i16(-1);
                out.odd.put_i16(-1 - less as i16);
            }
            (false, false) => {
                out.plain.put_i32(-1);
                out.odd.put_i32(-1 - less);
            }
        }
    }

    /// A varint, now and then longer than it need be.
    fn uvarint(&mut self, out: &mut BytesMut, value: u32) {
        if !self.oddly() {
            wire::put_uvarint(out, value);
            return;
        }
        for shift in [0, 7, 14, 21] {
            out.put_u8((value >> shift) as u8 | 0x80);
        }
        out.put_u8((value >> 28) as u8);
    }
}
