//! What every `Kv` must do, as checks that run against any of them, in one store, one after the
//! other. Panics on a broken promise.

use super::{Kv, KvBatch, KvError, Pairs};

/// Runs all checks on an empty store.
///
/// # Errors
/// Whatever the store answered where it should have answered OK.
pub fn run(kv: &mut dyn Kv) -> Result<(), KvError> {
    points(kv)?;
    scans(kv)?;
    ranges(kv)?;
    order_in_a_batch(kv)?;
    any_bytes(kv)?;
    against_a_model(kv)
}

fn all(kv: &dyn Kv) -> Result<Pairs, KvError> {
    kv.scan(b"", &[0xff; 40], usize::MAX)
}

fn clear(kv: &mut dyn Kv) -> Result<(), KvError> {
    let mut batch = KvBatch::new();
    batch.delete_range(b"", [0xff; 40]);
    kv.write(batch, true)?;
    assert_eq!(all(kv)?, []);
    Ok(())
}

fn put(kv: &mut dyn Kv, pairs: &[(&str, &str)]) -> Result<(), KvError> {
    let mut batch = KvBatch::new();
    for (key, value) in pairs {
        batch.put(*key, *value);
    }
    kv.write(batch, false)
}

fn keys(kv: &dyn Kv, from: &str, to: &str, limit: usize) -> Result<String, KvError> {
    let pairs = kv.scan(from.as_bytes(), to.as_bytes(), limit)?;
    let names = pairs.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned());
    Ok(names.collect::<Vec<_>>().join(" "))
}

fn points(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    assert_eq!(kv.get(b"a")?, None);
    put(kv, &[("a", "1"), ("b", "")])?;
    assert_eq!(kv.get(b"a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(kv.get(b"b")?.as_deref(), Some(&b""[..]), "an empty value is a value");
    put(kv, &[("a", "2")])?;
    assert_eq!(kv.get(b"a")?.as_deref(), Some(&b"2"[..]));
    let mut batch = KvBatch::new();
    batch.delete(*b"a").delete(*b"never");
    kv.write(batch, true)?;
    assert_eq!(kv.get(b"a")?, None);
    kv.write(KvBatch::new(), true)
}

fn scans(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    put(kv, &[("b", "2"), ("a", "1"), ("c", "3"), ("ab", "4"), ("d", "5")])?;
    assert_eq!(keys(kv, "a", "d", 100)?, "a ab b c");
    assert_eq!(keys(kv, "a", "z", 3)?, "a ab b");
    assert_eq!(keys(kv, "aa", "c", 100)?, "ab b");
    assert_eq!(keys(kv, "c", "a", 100)?, "");
    assert_eq!(keys(kv, "a", "a", 100)?, "");
    assert_eq!(keys(kv, "a", "z", 0)?, "");
    Ok(())
}

fn ranges(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    put(kv, &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")])?;
    let mut batch = KvBatch::new();
    batch.delete_range(*b"b", *b"d").delete_range(*b"z", *b"a").delete_range(*b"a", *b"a");
    kv.write(batch, false)?;
    assert_eq!(keys(kv, "a", "z", 100)?, "a d");
    put(kv, &[("c", "5")])?;
    assert_eq!(keys(kv, "a", "z", 100)?, "a c d", "a range does not outlive its batch");
    Ok(())
}

fn order_in_a_batch(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    let mut batch = KvBatch::new();
    batch.put(*b"a", *b"1").put(*b"a", *b"2").put(*b"b", *b"1").delete(*b"b");
    batch.put(*b"c", *b"1").delete_range(*b"c", *b"d").put(*b"c", *b"2");
    kv.write(batch, true)?;
    assert_eq!(kv.get(b"a")?.as_deref(), Some(&b"2"[..]));
    assert_eq!(kv.get(b"b")?, None);
    assert_eq!(kv.get(b"c")?.as_deref(), Some(&b"2"[..]));
    Ok(())
}

fn any_bytes(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    let big = vec![7; 300_000];
    let mut batch = KvBatch::new();
    batch.put([0, 0xff, 0], big.clone()).put([0xff, 0xfe], [0]).put([], *b"empty key");
    kv.write(batch, true)?;
    assert_eq!(kv.get(&[0, 0xff, 0])?, Some(big));
    assert_eq!(kv.get(&[])?.as_deref(), Some(&b"empty key"[..]));
    let order: Vec<usize> = all(kv)?.iter().map(|(key, _)| key.len()).collect();
    assert_eq!(order, [0, 3, 2], "keys are compared byte by byte, unsigned");
    Ok(())
}

/// A fixed walk of puts, deletes and ranges, compared with a sorted map.
fn against_a_model(kv: &mut dyn Kv) -> Result<(), KvError> {
    clear(kv)?;
    let mut model = std::collections::BTreeMap::new();
    let mut state = 12_345_u32;
    let mut next = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % bound
    };
    for round in 0..200_u32 {
        let mut batch = KvBatch::new();
        for _ in 0..next(6) {
            let (key, other) = (next(64).to_be_bytes(), next(64).to_be_bytes());
            match next(10) {
                0 => {
                    batch.delete_range(key, other);
                    model.retain(|at: &Vec<u8>, _| *at < key.to_vec() || *at >= other.to_vec());
                }
                1..=3 => {
                    batch.delete(key);
                    model.remove(key.as_slice());
                }
                _ => {
                    batch.put(key, round.to_be_bytes());
                    model.insert(key.to_vec(), round.to_be_bytes().to_vec());
                }
            }
        }
        kv.write(batch, next(2) == 0)?;
        let want: Pairs = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(all(kv)?, want);
    }
    Ok(())
}
