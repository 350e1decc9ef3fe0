//! What the members of a consumer group subscribe to, as far as their metadata tells.

use std::collections::BTreeSet;

use protocol_compat::consumer_protocol::subscribed_topics;

use super::state::Group;
use crate::groups::messages::Name;

/// The topics of all members under the group's protocol. `None` if the coordinator cannot tell:
/// another protocol type, no generation yet, or metadata it cannot read (Kafka's
/// `computeSubscribedTopics`).
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
        topics.extend(subscribed_topics(&member.metadata(protocol))?.into_iter().map(Name::from));
    }
    Some(topics)
}
