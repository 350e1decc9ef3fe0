//! Turns `schema/kafka-4.4.txt` into the static tables of `src/schema.rs`.
//!
//! The text is the only place where fields are written down. A line that cannot be understood
//! stops the build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// First and last version, both included.
type Versions = (i16, i16);

const NEVER: Versions = (1, 0);
const OPEN: i16 = i16::MAX;

#[derive(Default)]
struct Field {
    name: String,
    /// Without the `[]`.
    ty: String,
    array: bool,
    versions: Versions,
    nullable: Option<Versions>,
    tag: Option<(u32, Versions)>,
    default: Option<String>,
}

/// A struct of one message: its name and fields, nested types by name.
struct Struct {
    name: String,
    fields: Vec<Field>,
}

struct Message {
    kind: String,
    key: i16,
    name: String,
    versions: Versions,
    flexible: Versions,
    listeners: String,
    latest_unstable: bool,
    /// The first is the body itself.
    structs: Vec<Struct>,
}

fn main() {
    let path = "schema/kafka-4.4.txt";
    println!("cargo:rerun-if-changed={path}");
    println!("cargo:rerun-if-changed=build.rs");
    let text = std::fs::read_to_string(path).expect("the schema file is in the crate");
    let messages = parse(&text);
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let generated = generate(&messages);
    std::fs::write(Path::new(&out).join("tables.rs"), generated).expect("write the tables");
}

fn parse(text: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // The struct that each level of indentation adds its fields to.
    let mut open: Vec<usize> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = number + 1;
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let depth = (line.len() - trimmed.len()) / 2;
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        if depth == 0 {
            messages.push(heading(&words, at));
            open = vec![0];
            continue;
        }
        let message = messages.last_mut().unwrap_or_else(|| panic!("line {at}: no message yet"));
        if words[0] == "struct" {
            assert!(depth == 1, "line {at}: a named struct stands at the top of its message");
            message.structs.push(Struct { name: words[1].to_owned(), fields: Vec::new() });
            open = vec![0, message.structs.len() - 1];
            continue;
        }
        open.truncate(depth);
        if depth > open.len() {
            // The first child of the field before: that field's type is defined here.
            let parent = *open.last().expect("the body is always open");
            let field = message.structs[parent].fields.last();
            let ty = field.unwrap_or_else(|| panic!("line {at}: nested in nothing")).ty.clone();
            message.structs.push(Struct { name: ty, fields: Vec::new() });
            open.push(message.structs.len() - 1);
        }
        let index = *open.last().expect("the body is always open");
        message.structs[index].fields.push(field(&words, at));
    }
    messages
}

fn heading(words: &[&str], at: usize) -> Message {
    let mut message = Message {
        kind: words[0].to_owned(),
        key: words[1].parse().unwrap_or(-1),
        name: words[2].to_owned(),
        versions: NEVER,
        flexible: NEVER,
        listeners: String::new(),
        latest_unstable: false,
        structs: vec![Struct { name: words[2].to_owned(), fields: Vec::new() }],
    };
    for word in &words[3..] {
        match word.split_once('=') {
            Some(("versions", range)) => message.versions = versions(range, at),
            Some(("flexible", range)) => message.flexible = versions(range, at),
            Some(("listeners", names)) => message.listeners = names.to_owned(),
            None if *word == "latest-unstable" => message.latest_unstable = true,
            _ => panic!("line {at}: {word}"),
        }
    }
    message
}

fn field(words: &[&str], at: usize) -> Field {
    let (array, ty) = match words[1].strip_prefix("[]") {
        Some(element) => (true, element),
        None => (false, words[1]),
    };
    let mut field = Field {
        name: words[0].to_owned(),
        ty: ty.to_owned(),
        array,
        versions: versions(words[2], at),
        ..Field::default()
    };
    for word in &words[3..] {
        match word.split_once('=') {
            Some(("null", range)) => field.nullable = Some(versions(range, at)),
            Some(("tag", value)) => {
                let (tag, range) = value.split_once('@').unwrap_or_else(|| panic!("line {at}"));
                let tag = tag.parse().unwrap_or_else(|_| panic!("line {at}: {word}"));
                field.tag = Some((tag, versions(range, at)));
            }
            Some(("default", value)) => field.default = Some(value.trim_matches('"').to_owned()),
            // Of the request header only, which `src/header.rs` reads by hand.
            Some(("entity" | "flexible", _)) => {}
            None if ["ignorable", "key", "zerocopy"].contains(word) => {}
            _ => panic!("line {at}: {word}"),
        }
    }
    field
}

fn versions(range: &str, at: usize) -> Versions {
    let number = |text: &str| -> i16 {
        text.parse().unwrap_or_else(|_| panic!("line {at}: versions {range}"))
    };
    match (range, range.strip_suffix('+'), range.split_once('-')) {
        ("none", ..) => NEVER,
        (_, Some(from), _) => (number(from), OPEN),
        (_, _, Some((from, to))) => (number(from), number(to)),
        _ => (number(range), number(range)),
    }
}

fn holds(versions: Versions, version: i16) -> bool {
    versions.0 <= version && version <= versions.1
}

/// One message on its way into the tables.
struct Emitter<'a> {
    message: &'a Message,
    /// Index in `message.structs` by type name.
    by_name: BTreeMap<&'a str, usize>,
}

fn generate(messages: &[Message]) -> String {
    let mut out = String::new();
    let mut apis: BTreeMap<i16, String> = BTreeMap::new();
    let served = |kind: &str| {
        let kind = kind.to_owned();
        messages.iter().filter(move |message| message.kind == kind)
    };
    for message in served("request").chain(served("response")) {
        Emitter::new(message).emit(&mut out);
    }
    for request in served("request") {
        let response = served("response").find(|message| message.key == request.key);
        let response = response.unwrap_or_else(|| panic!("{} has no response", request.name));
        assert_eq!(request.versions, response.versions, "{}", request.name);
        assert_eq!(request.flexible, response.flexible, "{}", request.name);
        let name = request.name.strip_suffix("Request").unwrap_or(&request.name);
        let flexible_from = if request.flexible == NEVER { OPEN } else { request.flexible.0 };
        let row = format!(
            "Api {{ key: {}, name: {:?}, min: {}, max: {}, latest_unstable: {}, \
             flexible_from: {flexible_from}, \
             broker_listener: {}, controller_listener: {}, request: &REQUEST_{}_0, \
             response: &RESPONSE_{}_0 }},\n",
            request.key,
            name,
            request.versions.0,
            request.versions.1,
            request.latest_unstable,
            request.listeners.contains("broker"),
            request.listeners.contains("controller"),
            request.key,
            request.key,
        );
        assert!(apis.insert(request.key, row).is_none(), "two requests with key {}", request.key);
    }
    let last = apis.keys().next_back().copied().unwrap_or(-1);
    writeln!(out, "pub static APIS: &[Api] = &[").expect("a string takes it");
    let mut index = String::new();
    let mut rows = 0;
    for key in 0..=last {
        match apis.get(&key) {
            Some(row) => {
                out.push_str(row);
                write!(index, "{rows}, ").expect("a string takes it");
                rows += 1;
            }
            None => index.push_str("u8::MAX, "),
        }
    }
    writeln!(out, "];\nstatic INDEX: [u8; {}] = [{index}];", last + 1).expect("a string takes it");
    out
}

impl<'a> Emitter<'a> {
    fn new(message: &'a Message) -> Self {
        let names = message.structs.iter().enumerate();
        let by_name: BTreeMap<&str, usize> =
            names.map(|(index, item)| (item.name.as_str(), index)).collect();
        assert_eq!(by_name.len(), message.structs.len(), "{}: a type twice", message.name);
        Emitter { message, by_name }
    }

    fn emit(&self, out: &mut String) {
        for (index, item) in self.message.structs.iter().enumerate() {
            let smallest: Vec<String> = (0..=self.message.versions.1)
                .map(|version| self.struct_min(item, version).to_string())
                .collect();
            writeln!(
                out,
                "static {}: Struct = Struct {{ name: {:?}, smallest: &[{}], memory: {}, fields: &[",
                self.ident(index),
                item.name,
                smallest.join(", "),
                self.struct_memory(item),
            )
            .expect("a string takes it");
            for field in &item.fields {
                self.emit_field(out, field);
            }
            out.push_str("] };\n");
        }
    }

    fn emit_field(&self, out: &mut String, field: &Field) {
        let base = self.base_type(&field.ty);
        let ty = if field.array { format!("Type::Array(&{base})") } else { base };
        let (min, max) = field.versions;
        let (null_min, null_max) = field.nullable.unwrap_or(NEVER);
        let (tag, (tag_min, tag_max)) = match field.tag {
            Some((tag, versions)) => (tag, versions),
            None => (0, NEVER),
        };
        writeln!(
            out,
            "  field({:?}, {ty}, ({min}, {max}), ({null_min}, {null_max}), {tag}, \
             ({tag_min}, {tag_max}), {}),",
            field.name,
            default(field),
        )
        .expect("a string takes it");
    }

    fn ident(&self, index: usize) -> String {
        format!("{}_{}_{index}", self.message.kind.to_uppercase(), self.message.key)
    }

    fn resolve(&self, ty: &str) -> usize {
        *self.by_name.get(ty).unwrap_or_else(|| panic!("{}: type {ty}", self.message.name))
    }

    fn base_type(&self, ty: &str) -> String {
        let name = match ty {
            "bool" => "Bool",
            "int8" => "Int8",
            "int16" => "Int16",
            "uint16" => "Uint16",
            "int32" => "Int32",
            "int64" => "Int64",
            "float64" => "Float64",
            "uuid" => "Uuid",
            "string" => "String",
            "bytes" => "Bytes",
            "records" => "Records",
            _ => return format!("Type::Struct(&{})", self.ident(self.resolve(ty))),
        };
        format!("Type::{name}")
    }

    /// The smallest encoding of a struct in a version.
    fn struct_min(&self, item: &Struct, version: i16) -> usize {
        let flexible = holds(self.message.flexible, version);
        let mut sum = usize::from(flexible);
        for field in &item.fields {
            let tagged = field.tag.is_some_and(|(_, versions)| holds(versions, version));
            if holds(field.versions, version) && !tagged {
                sum += self.field_min(field, version, flexible);
            }
        }
        sum
    }

    fn field_min(&self, field: &Field, version: i16, flexible: bool) -> usize {
        if field.array {
            return if flexible { 1 } else { 4 };
        }
        match (field.ty.as_str(), flexible) {
            ("bool" | "int8", _) => 1,
            ("int16" | "uint16", _) => 2,
            ("int32", _) => 4,
            ("int64" | "float64", _) => 8,
            ("uuid", _) => 16,
            ("string" | "bytes" | "records", true) => 1,
            ("string", false) => 2,
            ("bytes" | "records", false) => 4,
            _ if field.nullable.is_some_and(|versions| holds(versions, version)) => 1,
            (ty, _) => self.struct_min(&self.message.structs[self.resolve(ty)], version),
        }
    }

    /// About how many bytes a decoded struct takes in memory, what it points at not counted.
    fn struct_memory(&self, item: &Struct) -> usize {
        let fields: usize = item.fields.iter().map(|field| self.field_memory(field)).sum();
        // The map of unknown tags that kafka-protocol keeps in each struct.
        (fields + 24).next_multiple_of(8)
    }

    fn field_memory(&self, field: &Field) -> usize {
        if field.array {
            return 24;
        }
        match field.ty.as_str() {
            "bool" | "int8" => 1,
            "int16" | "uint16" => 2,
            "int32" => 4,
            "int64" | "float64" => 8,
            "uuid" => 16,
            "string" | "bytes" | "records" => 32,
            ty => self.struct_memory(&self.message.structs[self.resolve(ty)]),
        }
    }
}

/// What a field is when it is not on the wire.
fn default(field: &Field) -> String {
    let Some(text) = &field.default else { return "Default::Zero".to_owned() };
    let number = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match (text.as_str(), number) {
        ("null", _) => "Default::Null".to_owned(),
        ("" | "false", _) | (_, Some(0)) => "Default::Zero".to_owned(),
        ("true", _) => "Default::True".to_owned(),
        (_, Some(number)) => format!("Default::Int({number})"),
        _ => panic!("default {text} of {}", field.name),
    }
}
