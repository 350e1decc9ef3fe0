//! The epoch cache: lookups, assignments and truncations from either end.

use super::*;

/// `epoch:start` entries, as text.
fn cache(text: &str) -> EpochCache {
    let mut cache = EpochCache::default();
    for entry in text.split_whitespace() {
        let (epoch, start) = entry.split_once(':').expect("epoch:start");
        cache.assign(epoch.parse().expect("an epoch"), start.parse().expect("an offset"));
    }
    cache
}

#[track_caller]
fn check(cache: &EpochCache, want: &str) {
    let entry = |e: &EpochEntry| format!("{}:{}", e.epoch, e.start_offset);
    let got: Vec<String> = cache.entries().iter().map(entry).collect();
    assert_eq!(got.join(" "), want);
    let rises = |w: &[EpochEntry]| w[0].epoch < w[1].epoch && w[0].start_offset < w[1].start_offset;
    assert!(cache.entries().windows(2).all(rises));
    assert_eq!(EpochCache::decode(&cache.encode()).map(|c| c.entries), Some(cache.entries.clone()));
}

#[test]
fn assigning() {
    check(&cache("1:0 3:10 5:20"), "1:0 3:10 5:20");
    check(&cache("1:0 1:5"), "1:0");
    check(&cache("1:5 1:3"), "1:3");
    check(&cache("-1:0"), "");
    // An epoch without records gives way to the next one at the same offset.
    check(&cache("1:0 2:10 3:10"), "1:0 3:10");
    // An older leader's records replace what contradicts them.
    check(&cache("1:0 3:10 5:20 2:15"), "1:0 2:15");
    check(&cache("1:0 3:10 5:20 4:5"), "1:0 4:5");
    check(&cache("1:5 2:0"), "2:0");
}

#[test]
fn ends_of_epochs() {
    let check = |entries: &str, asked: i32, want: (i32, i64)| {
        assert_eq!(cache(entries).end_offset(asked, 100), want, "{entries}, epoch {asked}");
    };
    let entries = "1:10 3:20 5:30";
    check(entries, 0, (0, 10));
    check(entries, 1, (1, 20));
    check(entries, 2, (1, 20));
    check(entries, 3, (3, 30));
    check(entries, 4, (3, 30));
    check(entries, 5, (5, 100));
    check(entries, 6, UNDEFINED);
    check(entries, -1, UNDEFINED);
    check(entries, -2, (-2, 10));
    check("", 0, UNDEFINED);
    check("0:0 4:5", 1, (0, 5));
}

#[test]
fn epochs_of_offsets() {
    let cache = cache("1:10 3:20");
    let got: Vec<Option<i32>> = [0, 9, 10, 19, 20, 99].map(|at| cache.epoch_of(at)).to_vec();
    assert_eq!(got, [None, None, Some(1), Some(1), Some(3), Some(3)]);
}

#[test]
fn truncating() {
    let from_end = |offset: i64, want: &str| {
        let mut cache = cache("1:0 3:10 5:20");
        cache.take_changed();
        cache.truncate_from_end(offset);
        check(&cache, want);
        assert_eq!(cache.take_changed(), want != "1:0 3:10 5:20");
    };
    from_end(21, "1:0 3:10 5:20");
    from_end(20, "1:0 3:10");
    from_end(1, "1:0");
    from_end(0, "");
    let from_start = |offset: i64, want: &str| {
        let mut cache = cache("1:0 3:10 5:20");
        cache.take_changed();
        cache.truncate_from_start(offset);
        check(&cache, want);
        assert_eq!(cache.take_changed(), want != "1:0 3:10 5:20");
    };
    from_start(-1, "1:0 3:10 5:20");
    from_start(0, "1:0 3:10 5:20");
    from_start(5, "1:5 3:10 5:20");
    from_start(10, "3:10 5:20");
    from_start(25, "5:25");
}

#[test]
fn file_bytes_never_change() {
    assert_eq!(cache("").encode(), "0\n0\n");
    assert_eq!(cache("0:0 7:12345678901").encode(), "0\n2\n0 0\n7 12345678901\n");
}

#[test]
fn half_a_file_is_none() {
    for bad in [
        "",
        "0",
        "0\n",
        "1\n0\n",
        "0\n1\n",
        "0\n1\n0 0\n1 1\n",
        "0\n2\n0 0\n",
        "0\n1\n0\n",
        "0\n1\nx 0\n",
        "0\n2\n1 0\n1 1\n",
        "0\n2\n1 5\n2 5\n",
        "0\n1\n-1 0\n",
    ] {
        assert_eq!(EpochCache::decode(bad), None, "{bad:?}");
    }
    let whole = cache("0:0 7:10").encode();
    let cuts = (0..whole.len() - 1).filter(|end| EpochCache::decode(&whole[..*end]).is_some());
    // Only a digit of the last number can be lost unseen, and no write ends there: it has its name
    // after it is durable.
    assert!(cuts.eq([whole.len() - 2]));
}
