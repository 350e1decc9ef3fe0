//! What the controller does unasked: fencing silent brokers, giving partitions their preferred
//! leader back, unclean elections where they are allowed.

#[cfg(test)]
mod tests;

use super::Controller;
use super::change::Target;
use super::election::Election;
use super::view::View;
use crate::record::MetadataRecord;

/// As many elections are held in one go (Kafka's `MAX_ELECTIONS_PER_IMBALANCE`).
const ELECTIONS_MAX: usize = 1_000;

impl Controller {
    /// When [`Controller::tick`] should be called next, in milliseconds since 1970; `i64::MAX` =
    /// never.
    pub fn next_deadline(&self) -> i64 {
        let unfenced = self.pending.brokers().filter(|broker| !broker.fenced);
        unfenced
            .map(|broker| self.sessions.deadline_ms(broker.id))
            .chain([self.next_rebalance_ms, self.next_unclean_ms])
            .min()
            .unwrap_or(i64::MAX)
    }

    /// Does one piece of what is due and returns its records, which may be cut into several
    /// entries; like decided records they go through [`Controller::apply_pending`]. Call it again
    /// while the deadline has passed. An empty list means that nothing was to be done for the piece
    /// that was due.
    pub fn tick(&mut self, now_ms: i64) -> Vec<MetadataRecord> {
        // One broker at a time: the next one shall see what became of the partitions.
        let silent = self
            .pending
            .brokers()
            .find(|broker| !broker.fenced && self.sessions.deadline_ms(broker.id) <= now_ms);
        if let Some(broker) = silent {
            return self.view().fence_records(broker.id, broker.epoch);
        }
        if now_ms >= self.next_rebalance_ms {
            let records = self.view().preferred_elections(ELECTIONS_MAX);
            self.next_rebalance_ms = match self.settings.rebalance_interval_ms {
                _ if records.len() == ELECTIONS_MAX => now_ms,
                Some(interval_ms) => now_ms.saturating_add(interval_ms),
                None => i64::MAX,
            };
            return records;
        }
        if now_ms >= self.next_unclean_ms {
            let records = self.view().unclean_elections(ELECTIONS_MAX);
            let more = records.len() == ELECTIONS_MAX;
            let wait_ms = if more { 0 } else { self.settings.unclean_interval_ms };
            self.next_unclean_ms = now_ms.saturating_add(wait_ms);
            return records;
        }
        Vec::new()
    }
}

impl View<'_> {
    /// Partitions led by another than their first replica, if that one can lead.
    fn preferred_elections(self, max: usize) -> Vec<MetadataRecord> {
        self.partitions()
            .filter(|(_, _, partition)| partition.replicas.first() != Some(&partition.leader))
            .filter_map(|(topic, index, partition)| {
                let target = Target::keep(partition, Election::Preferred);
                self.change(topic, index, partition, target)
            })
            .take(max)
            .map(MetadataRecord::PartitionChange)
            .collect()
    }

    /// Partitions without a leader whose topics would rather lose records than wait.
    fn unclean_elections(self, max: usize) -> Vec<MetadataRecord> {
        self.partitions()
            .filter(|(topic, _, partition)| {
                partition.leader().is_none() && self.election(&topic.name) == Election::Unclean
            })
            .filter_map(|(topic, index, partition)| {
                let target = Target::keep(partition, Election::Unclean);
                self.change(topic, index, partition, target)
            })
            .take(max)
            .map(MetadataRecord::PartitionChange)
            .collect()
    }
}
