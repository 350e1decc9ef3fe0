//! What one line of the configuration table is: name, type, default, bounds, scope, meaning.
//! The lines themselves are in `keys/`; reading and checking a value is `value.rs`.

use std::marker::PhantomData;

use super::value::Value;

/// One setting, as it is declared in `keys/`.
#[derive(Debug)]
pub struct Row {
    /// The name in `server.properties` and in DescribeConfigs.
    pub name: &'static str,
    pub kind: Kind,
    /// `None` where Kafka shows null: nothing is set unless somebody sets it.
    pub default: Option<Value>,
    pub bounds: Bounds,
    pub importance: Importance,
    pub scope: Scope,
    pub meaning: Meaning,
    /// Left out of DescribeConfigs unless set, as Kafka does with its internal settings.
    pub internal: bool,
    /// For topic and group settings: the broker settings that give the default, strongest first.
    pub broker: &'static [&'static str],
    pub(super) raw_doc: &'static str,
}

impl Row {
    /// What the setting does, in one sentence, without trailing line breaks.
    pub fn doc(&self) -> String {
        self.raw_doc.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The sentence clients get with DescribeConfigs: the doc and whether it holds here.
    pub fn long_doc(&self) -> String {
        match self.meaning {
            Meaning::Acts => self.doc(),
            Meaning::Later => format!("{} Accepted, but without effect yet.", self.doc()),
            Meaning::Never => format!("{} Accepted, but without effect in Gracchus.", self.doc()),
        }
    }

    /// A password: its value is never shown.
    pub fn sensitive(&self) -> bool {
        self.kind == Kind::Password
    }
}

/// Types as DescribeConfigs numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Kind {
    Unknown = 0,
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl Kind {
    /// The number on the wire.
    pub fn code(self) -> i8 {
        self as i8
    }

    /// The word used in messages and in the generated page.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::Int => "int",
            Kind::Short => "short",
            Kind::Long => "long",
            Kind::Double => "double",
            Kind::List => "list",
            Kind::Class => "class",
            Kind::Password => "password",
        }
    }
}

/// How weighty a setting is, as Kafka documents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// Whether a setting can change while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Read at start only.
    ReadOnly,
    /// For one broker, not as the cluster's default.
    PerBroker,
    /// For one broker or as the cluster's default.
    Cluster,
    /// Like `Cluster`, and not a line of `server.properties` at all.
    DynamicOnly,
    /// Belongs to a topic, a group or a client-metrics subscription; always changeable.
    Resource,
}

/// Whether setting it changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It does what it says.
    Acts,
    /// What it governs is not there yet.
    Later,
    /// What it governs will not exist in Gracchus.
    Never,
}

/// Which values are good.
#[derive(Clone, Copy, Debug)]
pub enum Bounds {
    Any,
    AtLeast(i64),
    /// Both ends included.
    Between(i64, i64),
    /// -1, or 1 to 9.
    GzipLevel,
    Ratio(f64, f64),
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    NonEmpty,
    /// A list of such words only; may be empty.
    ListOf(&'static [&'static str]),
    /// A list without empty elements; may be empty itself.
    List,
    NonEmptyList,
    /// `*`, or `partition:broker` pairs.
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` and an ISO 8601 duration.
    OffsetReset,
}

/// A row together with the Rust type of its value, so that a wrong read does not compile.
#[derive(Debug)]
pub struct Key<T> {
    pub row: &'static Row,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    pub(super) const fn of(row: &'static Row) -> Key<T> {
        Key { row, kind: PhantomData }
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Key<T> {
        *self
    }
}

impl<T> Copy for Key<T> {}

/// Declares a marker type for `Key`, its wire type, and how its default is written in `keys/`.
macro_rules! marker {
    ($name:ident, $kind:ident, $from:ty, $value:ident => $default:expr) => {
        #[doc = concat!("Marks keys of type ", stringify!($kind), ".")]
        #[derive(Debug)]
        pub enum $name {}
        impl $name {
            pub(super) const KIND: Kind = Kind::$kind;
            pub(super) const fn default($value: $from) -> Option<Value> {
                $default
            }
        }
    };
}

/// The same for a type that may be null: `None` is the only default.
macro_rules! nullable {
    ($name:ident, $kind:ident) => {
        #[doc = concat!("Marks keys of type ", stringify!($kind), " that are null by default.")]
        #[derive(Debug)]
        pub enum $name {}
        impl $name {
            pub(super) const KIND: Kind = Kind::$kind;
            pub(super) const fn default(none: Option<Value>) -> Option<Value> {
                none
            }
        }
    };
}

marker!(Bool, Boolean, bool, value => Some(Value::Bool(value)));
marker!(Int, Int, i32, value => Some(Value::Int(value as i64)));
marker!(Short, Short, i16, value => Some(Value::Int(value as i64)));
marker!(Long, Long, i64, value => Some(Value::Int(value)));
marker!(Double, Double, f64, value => Some(Value::Double(value)));
marker!(Text, String, &'static str, value => Some(Value::borrowed(value)));
marker!(List, List, &'static str, value => Some(Value::borrowed(value)));
marker!(Class, Class, &'static str, value => Some(Value::borrowed(value)));
nullable!(OptInt, Int);
nullable!(OptLong, Long);
nullable!(OptText, String);
nullable!(OptList, List);
nullable!(OptClass, Class);
nullable!(Secret, Password);

/// Keys whose value is always there and reads as text: strings and class names.
pub trait Textual {}
impl Textual for Text {}
impl Textual for Class {}

/// Keys whose value may be missing and reads as text.
pub trait OptTextual {}
impl OptTextual for OptText {}
impl OptTextual for OptClass {}
impl OptTextual for Secret {}

/// Whether a constant is named after its setting: upper case, underscores for dots.
pub(super) const fn spells(constant: &str, name: &str) -> bool {
    let (constant, name) = (constant.as_bytes(), name.as_bytes());
    let mut at = 0;
    while at < constant.len() && at < name.len() {
        let want = if name[at] == b'.' { b'_' } else { name[at].to_ascii_uppercase() };
        if constant[at] != want {
            return false;
        }
        at += 1;
    }
    constant.len() == name.len()
}

/// Whether the word `internal` stands there.
macro_rules! flag {
    () => {
        false
    };
    (internal) => {
        true
    };
}
pub(crate) use flag;

/// Turns table lines into a static array and one typed `Key` per line.
///
/// A line: doc sentence, constant, name, type = default, bounds, importance scope meaning, and if
/// needed `internal` and the broker settings behind a topic or group setting.
macro_rules! rows {
    ($rows:ident; $(
        $(#[doc = $doc:literal])+
        $id:ident $name:literal $kind:ident = $default:expr, $bounds:expr,
        $importance:ident $scope:ident $meaning:ident $($internal:ident)?
        $(<- $($broker:literal)+)? ;
    )+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum At { $($id),+ }

        /// The lines of this file, in order.
        pub static $rows: [$crate::config::row::Row; [$(At::$id as usize),+].len()] = [$(
            $crate::config::row::Row {
                name: $name,
                kind: $crate::config::row::$kind::KIND,
                default: $crate::config::row::$kind::default($default),
                bounds: $bounds,
                importance: $crate::config::row::Importance::$importance,
                scope: $crate::config::row::Scope::$scope,
                meaning: $crate::config::row::Meaning::$meaning,
                internal: $crate::config::row::flag!($($internal)?),
                broker: &[$($($broker),+)?],
                raw_doc: concat!($($doc, "\n"),+),
            }
        ),+];

        $(
            const _: () = assert!($crate::config::row::spells(stringify!($id), $name));
            $(#[doc = $doc])+
            pub const $id: $crate::config::row::Key<$crate::config::row::$kind> =
                $crate::config::row::Key::of(&$rows[At::$id as usize]);
        )+
    };
}
pub(crate) use rows;
