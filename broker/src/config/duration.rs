//! ISO 8601 durations as Java's `Duration.parse` takes them: days, hours, minutes, seconds.

/// The duration in milliseconds, fractions of one cut off; `None` when `text` is not one.
///
/// `P1DT2H3M4.5S`, any case, each part optional but not all, signs allowed in front of the
/// whole and of each part.
pub fn parse_ms(text: &str) -> Option<i64> {
    let upper = text.to_ascii_uppercase();
    let (negative, rest) = sign(&upper);
    let rest = rest.strip_prefix('P')?;
    let (days, times) = match rest.split_once('T') {
        Some((days, times)) if !times.is_empty() => (days, times),
        Some(_) => return None,
        None => (rest, ""),
    };
    if days.is_empty() && times.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    if !days.is_empty() {
        total += whole(days.strip_suffix('D')?)? * 86_400_000;
    }
    let mut rest = times;
    for (unit, scale) in [('H', 3_600_000), ('M', 60_000)] {
        if let Some((head, tail)) = rest.split_once(unit) {
            total += whole(head)? * scale;
            rest = tail;
        }
    }
    if !rest.is_empty() {
        total += seconds_ms(rest.strip_suffix('S')?)?;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn whole(text: &str) -> Option<i128> {
    text.parse::<i64>().ok().map(i128::from)
}

fn seconds_ms(text: &str) -> Option<i128> {
    let Some((whole_part, fraction)) = text.split_once(['.', ',']) else {
        return Some(whole(text)? * 1000);
    };
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let millis: i128 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let negative = whole_part.starts_with('-');
    Some(whole(whole_part)? * 1000 + if negative { -millis } else { millis })
}
