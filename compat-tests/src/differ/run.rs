//! Running cases against a broker, several at a time, and the recording of Kafka's answers.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::compare::{self, Difference, Pin, pin_line};
use super::context::{Step, Stop, T};
use super::table;

/// What each case saw.
pub type Seen = BTreeMap<String, Map<String, Value>>;

type Run = Box<dyn Fn(&mut T) -> Step + Send + Sync>;

/// A named sequence of steps that yields observations.
pub struct Case {
    pub name: String,
    /// The key of an API without which there is nothing to compare.
    needs: Option<i16>,
    run: Run,
}

/// All cases, by name.
#[derive(Default)]
pub struct Cases {
    pub list: Vec<Case>,
}

impl Cases {
    pub fn add(
        &mut self,
        name: impl Into<String>,
        run: impl Fn(&mut T) -> Step + Send + Sync + 'static,
    ) {
        self.list.push(Case { name: name.into(), needs: None, run: Box::new(run) });
    }

    /// A case for brokers that advertise that API.
    pub fn add_needing(
        &mut self,
        api: &str,
        name: impl Into<String>,
        run: impl Fn(&mut T) -> Step + Send + Sync + 'static,
    ) {
        let needs = Some(table::api(api).key);
        self.list.push(Case { name: name.into(), needs, run: Box::new(run) });
    }

    /// Leaves those whose name contains one of the words.
    pub fn only(&mut self, words: &[&str]) {
        self.list.retain(|case| words.iter().any(|word| case.name.contains(word)));
    }

    /// Leaves out those whose API is not among the keys; how many went.
    pub fn only_served(&mut self, keys: &[i16]) -> usize {
        let before = self.list.len();
        self.list.retain(|case| case.needs.is_none_or(|key| keys.contains(&key)));
        before - self.list.len()
    }
}

/// Waits until groups and producer ids are served; the keys of the APIs that are advertised.
pub fn warm_up(address: &str) -> Result<Vec<i16>, Stop> {
    let mut t = T::new(address, "warm-up", 0);
    t.group("g")?;
    t.producer_id()?;
    let answer = t.need("ApiVersions", 0, json!({}))?;
    let apis = answer["ApiKeys"].as_array().into_iter().flatten();
    Ok(apis.filter_map(|api| api["ApiKey"].as_i64()).map(|key| key as i16).collect())
}

/// What every case sees at that broker, so many at a time.
pub fn run(cases: &[&Case], address: &str, at_a_time: usize, attempt: u8) -> Seen {
    let next = AtomicUsize::new(0);
    let seen = Mutex::new(Seen::new());
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut t = T::new(address, &case.name, attempt);
                    // A mistake of one case, such as a misspelt field, is not to end the others.
                    let run = AssertUnwindSafe(|| (case.run)(&mut t));
                    let step = catch_unwind(run).unwrap_or_else(|cause| {
                        let cause = cause.downcast_ref::<String>().cloned();
                        Err(Stop(format!("panicked: {}", cause.unwrap_or_default())))
                    });
                    let saw = t.finish(step);
                    seen.lock().expect("no case panics").insert(case.name.clone(), saw);
                }
            });
        }
    });
    seen.into_inner().expect("no case panics")
}

/// Differences printed for one case.
const SHOWN_MAX: usize = 8;

/// What came of a comparison.
#[derive(Default)]
pub struct Outcome {
    /// Cases that agree, or differ as they are meant to.
    pub agree: usize,
    /// Differences that are meant, by pins.
    pub pinned: usize,
    /// Case and difference.
    pub wrong: Vec<(String, Difference)>,
    /// Cases with pins whose difference is not there.
    pub stale: Vec<(String, Pin)>,
}

impl Outcome {
    /// Adds the pins with patterns that nothing fits any more.
    pub fn find_idle(&mut self, kafka: &Seen, ours: &Seen, pins: &[Pin]) {
        for pin in pins.iter().filter(|pin| !pin.is_strict()) {
            let mut about = ours.iter().filter(|(case, _)| pin.is_about(case));
            let in_use = about.any(|(case, seen)| {
                of_case(kafka, case, seen).iter().any(|difference| pin.means(difference))
            });
            if !in_use {
                self.stale.push((pin.case.clone(), pin.clone()));
            }
        }
    }

    /// Prints what is not as it should be; all of it, as lines for a file of pins, where
    /// DIFFER_ALL is set.
    pub fn print(&self) {
        let mut shown = (String::new(), 0);
        let is_everything = std::env::var_os("DIFFER_ALL").is_some();
        for (case, difference) in &self.wrong {
            if shown.0 != *case {
                println!("DIFFERS: {case}");
                shown = (case.clone(), 0);
            }
            shown.1 += 1;
            if is_everything {
                println!("    {}", pin_line(case, difference));
            }
            if is_everything || shown.1 <= SHOWN_MAX {
                let short = |value: &serde_json::Value| {
                    value.to_string().chars().take(300).collect::<String>()
                };
                let (kafka, ours) = (short(&difference.kafka), short(&difference.ours));
                println!("    {}: Kafka {kafka}, here {ours}", difference.path);
            }
        }
        for (case, pin) in &self.stale {
            println!("NO LONGER SO: {case} {} is not {} ({})", pin.path, pin.ours, pin.why);
        }
    }

    /// The names of the cases that are not as they should be.
    pub fn bad_cases(&self) -> Vec<String> {
        let wrong = self.wrong.iter().map(|(case, _)| case);
        let stale = self.stale.iter().map(|(case, _)| case);
        let mut names: Vec<String> = wrong.chain(stale).cloned().collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The differences of one case.
fn of_case(kafka: &Seen, case: &str, ours: &Map<String, Value>) -> Vec<Difference> {
    let Some(kafka) = kafka.get(case) else {
        let (kafka, ours) = (json!("not recorded"), json!("run"));
        return vec![Difference { path: String::new(), kafka, ours }];
    };
    compare::differences(&Value::Object(kafka.clone()), &Value::Object(ours.clone()))
}

/// Compares what was seen, case by case.
pub fn compare(kafka: &Seen, ours: &Seen, pins: &[Pin]) -> Outcome {
    let mut outcome = Outcome::default();
    for (case, ours) in ours {
        let found = of_case(kafka, case, ours);
        let meant: Vec<&Pin> = pins.iter().filter(|pin| pin.is_about(case)).collect();
        let mut agrees = true;
        for difference in &found {
            if meant.iter().any(|pin| pin.means(difference)) {
                outcome.pinned += 1;
            } else {
                agrees = false;
                outcome.wrong.push((case.clone(), difference.clone()));
            }
        }
        for pin in meant.into_iter().filter(|pin| pin.is_strict()) {
            if !found.iter().any(|difference| pin.means(difference)) {
                agrees = false;
                outcome.stale.push((case.clone(), pin.clone()));
            }
        }
        outcome.agree += usize::from(agrees);
    }
    outcome
}

/// The recorded answers: a file for each group of cases, a line for each observation.
pub struct Recording(pub PathBuf);

impl Recording {
    pub fn load(&self) -> Seen {
        let mut all = Seen::new();
        for path in self.files() {
            let text = std::fs::read_to_string(&path).expect("a recording can be read");
            let part: BTreeMap<String, Map<String, Value>> =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            all.extend(part);
        }
        all
    }

    /// Writes all of it anew; how many bytes.
    pub fn store(&self, seen: &Seen) -> usize {
        std::fs::create_dir_all(&self.0).expect("the directory of recordings");
        self.files().iter().for_each(|old| std::fs::remove_file(old).expect("an old recording"));
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for (case, observations) in seen {
            let group = case.split('/').next().expect("split gives one at least");
            let text = files.entry(group).or_default();
            text.push_str(if text.is_empty() { "{\n" } else { ",\n" });
            text.push_str(&format!("{}: {{\n", json!(case)));
            let lines =
                observations.iter().map(|(label, value)| format!("  {}: {value}", json!(label)));
            text.push_str(&lines.collect::<Vec<_>>().join(",\n"));
            text.push_str("\n}");
        }
        let mut bytes = 0;
        for (group, text) in files {
            let text = text + "\n}\n";
            bytes += text.len();
            std::fs::write(self.0.join(format!("{group}.json")), text).expect("a new recording");
        }
        bytes
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
        entries.map(|entry| entry.path()).filter(|path| is_json(path)).collect()
    }
}
