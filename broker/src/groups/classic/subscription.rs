//! What the members of a consumer group subscribe to, as far as their metadata tells.

use std::collections::BTreeSet;

use super::state::Group;
use crate::groups::messages::Name;

/// The topics of all members under the group's protocol. `None` if the coordinator cannot tell: another
/// protocol type, no generation yet, or metadata it cannot read (Kafka's `computeSubscribedTopics`).
pub fn of_group(group: &Group) -> Option<BTreeSet<Name>> {
    if !group.is_consumer() {
        return None;
    }
    let mut topics = BTreeSet::new();
    if group.members().len() == 0 {
        return Some(topics);
    }
    let protocol = group.protocol.as_deref()?;
    for (_, member) in group.members() {
        topics.extend(read(&member.metadata(protocol))?);
    }
    Some(topics)
}

fn read(metadata: &[u8]) -> Option<Vec<Name>> {
    let mut rest = metadata.get(2..)?;
    let count = i32::from_be_bytes(*take(&mut rest)?);
    let mut topics = Vec::new();
    for _ in 0..count.max(0) {
        let length = usize::try_from(i16::from_be_bytes(*take(&mut rest)?)).ok()?;
        let (topic, after) = rest.split_at_checked(length)?;
        topics.push(Name::from(std::str::from_utf8(topic).ok()?));
        rest = after;
    }
    Some(topics)
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(head)
}
