//! A page in Prometheus' text format: families in order, each with its lines together.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// At most this many lines; what is beyond is counted.
pub const LINES_MAX: usize = 200_000;

/// One kind of number: its name, and what it says.
pub struct Gauge {
    pub name: &'static str,
    pub help: &'static str,
}

#[derive(Default)]
pub struct Page {
    families: BTreeMap<&'static str, (&'static str, String)>,
    lines: usize,
    left_out: usize,
}

impl Page {
    /// One value of a gauge.
    pub fn set(&mut self, gauge: &Gauge, labels: &[(&str, &dyn Display)], value: impl Display) {
        let (_, lines) =
            self.families.entry(gauge.name).or_insert_with(|| (gauge.help, String::new()));
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        lines.push_str(gauge.name);
        for (index, (label, text)) in labels.iter().enumerate() {
            lines.push(if index == 0 { '{' } else { ',' });
            let _writing_to_memory_works = write!(lines, "{label}=\"{}\"", Escaped(*text));
        }
        let end = if labels.is_empty() { " " } else { "} " };
        let _writing_to_memory_works = writeln!(lines, "{end}{value}");
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        let left_out = self.left_out;
        self.lines = 0;
        self.set(&LEFT_OUT, &[], left_out);
        let mut text = String::new();
        for (name, (help, lines)) in self.families {
            let _writing_to_memory_works =
                write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{lines}");
        }
        text
    }
}

const LEFT_OUT: Gauge = Gauge {
    name: "gracchus_metrics_lines_left_out",
    help: "Lines that did not fit into the bound of one scrape.",
};

/// A label value with what would end it escaped.
struct Escaped<'a>(&'a dyn Display);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.to_string().chars() {
            match letter {
                '\\' => out.write_str("\\\\")?,
                '"' => out.write_str("\\\"")?,
                '\n' => out.write_str("\\n")?,
                other => out.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Gauge, Page};

    #[test]
    fn families_keep_their_lines_together_and_labels_are_escaped() {
        let (a, b) = (Gauge { name: "a", help: "A." }, Gauge { name: "b", help: "B." });
        let mut page = Page::default();
        page.set(&b, &[("g", &"x\"y\n")], 1);
        page.set(&a, &[], 2);
        page.set(&b, &[("g", &"z"), ("p", &3)], 4);
        let text = page.finish();
        let want = "# HELP a A.\n# TYPE a gauge\na 2\n# HELP b B.\n# TYPE b gauge\n\
                    b{g=\"x\\\"y\\n\"} 1\nb{g=\"z\",p=\"3\"} 4\n";
        assert!(text.starts_with(want), "{text}");
    }
}
