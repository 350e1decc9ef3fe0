//! Every field of every request and response of Apache Kafka 4.4.0, as static tables.
//!
//! The tables come from `schema/kafka-4.4.txt` through `build.rs`. Here is only what they are
//! made of and how to look things up; walking a body with them is `shape`, making one `random`.

/// First and last version, both included; none when the first is above the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub min: i16,
    pub max: i16,
}

impl Versions {
    /// Whether `version` is one of these.
    #[inline]
    pub const fn holds(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

/// One API: a request, its response, and where they are served.
#[derive(Debug)]
pub struct Api {
    pub key: i16,
    /// Kafka's name, without "Request".
    pub name: &'static str,
    /// The lowest version that Kafka 4.4 decodes. (It *advertises* Produce from 0.)
    pub min: i16,
    /// The highest, an unstable one included.
    pub max: i16,
    /// The highest version is not finished: Kafka 4.4 neither shows nor takes it by default.
    pub latest_unstable: bool,
    /// The first version with compact lengths and tagged fields; `i16::MAX` if there is none.
    pub flexible_from: i16,
    /// Served on a broker's listeners.
    pub broker_listener: bool,
    /// Served on a controller's listeners.
    pub controller_listener: bool,
    pub request: &'static Struct,
    pub response: &'static Struct,
}

impl Api {
    /// Whether the schema has this version.
    #[inline]
    pub const fn has(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// The highest version that is served by default.
    #[inline]
    pub const fn max_stable(&self) -> i16 {
        if self.latest_unstable { self.max - 1 } else { self.max }
    }

    /// Whether a broker takes requests of this version.
    #[inline]
    pub const fn serves(&self, version: i16) -> bool {
        self.min <= version && version <= self.max_stable()
    }

    /// Whether this version has compact lengths and tagged fields.
    #[inline]
    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }
}

/// A body, or a struct in one.
#[derive(Debug)]
pub struct Struct {
    pub name: &'static str,
    /// In wire order; a field that is not in a version is not on its wire.
    pub fields: &'static [Field],
    /// The bytes of the smallest encoding, by version from 0 on.
    pub smallest: &'static [u16],
    /// About how many bytes one takes when decoded, what it points at not counted.
    pub memory: u32,
}

impl Struct {
    /// The field that a tag means. Kafka's parsers know a tag in all versions once it means
    /// something in one; whether it does in this one is in the field.
    #[inline]
    pub fn tagged(&self, tag: u32) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.is_tagged() && field.tag == tag)
    }
}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub ty: Type,
    pub versions: Versions,
    /// The versions in which it may be null.
    pub nullable: Versions,
    /// Its tag in the versions of `tagged`.
    pub tag: u32,
    /// The versions in which it is carried in the tagged-field section.
    pub tagged: Versions,
    /// What it is when it is not on the wire.
    pub default: Default,
}

impl Field {
    /// Whether there is a version in which it is carried in the tagged-field section.
    pub const fn is_tagged(&self) -> bool {
        self.tagged.min <= self.tagged.max
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    /// Like bytes: record batches.
    Records,
    Array(&'static Type),
    Struct(&'static Struct),
}

/// The default of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// 0, false, "", no elements, the nil uuid, or a struct of defaults.
    Zero,
    Int(i64),
    True,
    Null,
}

const fn field(
    name: &'static str,
    ty: Type,
    versions: (i16, i16),
    nullable: (i16, i16),
    tag: u32,
    tagged: (i16, i16),
    default: Default,
) -> Field {
    const fn range((min, max): (i16, i16)) -> Versions {
        Versions { min, max }
    }
    let (versions, nullable, tagged) = (range(versions), range(nullable), range(tagged));
    Field { name, ty, versions, nullable, tag, tagged, default }
}

mod tables {
    use super::{Api, Default, Struct, Type, field};

    include!(concat!(env!("OUT_DIR"), "/tables.rs"));

    /// Where in `APIS` a key is, without a search.
    #[inline]
    pub(super) fn position(key: i16) -> Option<usize> {
        let slot = INDEX.get(usize::try_from(key).ok()?)?;
        (*slot != u8::MAX).then_some(usize::from(*slot))
    }
}

pub use tables::APIS;

/// The API of a key, if Kafka 4.4 has one.
#[inline]
pub fn api(key: i16) -> Option<&'static Api> {
    APIS.get(tables::position(key)?)
}
