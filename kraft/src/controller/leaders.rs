//! ElectLeaders: elections that somebody asked for. Who wins is `election.rs`.

#[cfg(test)]
mod tests;

use protocol_compat::error::ErrorCode;

use super::change::Target;
use super::election::Election;
use super::request::{ElectLeaders, ElectedLeaders, PartitionResult, Refusal};
use super::view::View;
use crate::record::MetadataRecord;

impl View<'_> {
    pub(super) fn elect_leaders(
        self,
        request: &ElectLeaders,
    ) -> (Vec<MetadataRecord>, ElectedLeaders) {
        let election = match request.election {
            0 => Election::Preferred,
            1 => Election::Unclean,
            _ => return (Vec::new(), unknown_election(request)),
        };
        let (mut records, mut topics) = (Vec::new(), Vec::new());
        match &request.topics {
            Some(asked) => {
                for (topic, partitions) in asked {
                    let results = partitions.iter().map(|partition| PartitionResult {
                        partition: *partition,
                        result: self.elect_leader(topic, *partition, election, &mut records),
                    });
                    let results = results.collect();
                    topics.push((topic.clone(), results));
                }
            }
            None => {
                for topic in self.image.topics() {
                    let results = (0..topic.partition_count()).map(|partition| PartitionResult {
                        partition,
                        result: self.elect_leader(&topic.name, partition, election, &mut records),
                    });
                    // Asked for all, nobody wants to hear of those that needed nothing.
                    let worth_telling = results.filter(|partition| !needs_nothing(partition));
                    let worth_telling = worth_telling.collect();
                    topics.push((topic.name.to_string(), worth_telling));
                }
            }
        }
        (records, ElectedLeaders { code: ErrorCode::None, topics })
    }

    fn elect_leader(
        self,
        topic: &str,
        index: i32,
        election: Election,
        records: &mut Vec<MetadataRecord>,
    ) -> Result<(), Refusal> {
        let unknown = |what: &str, name: String| {
            let text = format!("No such {what} as {name}");
            Refusal::new(ErrorCode::UnknownTopicOrPartition, text)
        };
        let found = self.image.topic(topic);
        let found = found.ok_or_else(|| unknown("topic", topic.to_string()))?;
        let partition = found.partition(index);
        let partition =
            partition.ok_or_else(|| unknown("partition", format!("{topic}-{index}")))?;
        let preferred = election == Election::Preferred;
        let needed = match partition.leader() {
            Some(leader) if preferred => partition.replicas.first() != Some(&leader),
            Some(_) => false,
            None => true,
        };
        if !needed {
            let text = "Leader election not needed for topic partition.";
            return Err(Refusal::new(ErrorCode::ElectionNotNeeded, text));
        }
        let target = Target::keep(partition, election);
        match self.change(found, index, partition, target) {
            Some(change) => {
                records.push(MetadataRecord::PartitionChange(change));
                Ok(())
            }
            None if preferred => Err(Refusal::new(
                ErrorCode::PreferredLeaderNotAvailable,
                "The preferred leader was not available.",
            )),
            None => Err(Refusal::new(
                ErrorCode::EligibleLeadersNotAvailable,
                "Eligible topic partition leaders are not available.",
            )),
        }
    }
}

fn needs_nothing(partition: &PartitionResult) -> bool {
    matches!(&partition.result, Err(refusal) if refusal.code == ErrorCode::ElectionNotNeeded)
}

/// Every partition that was named gets the error, and the request too if it named any.
fn unknown_election(request: &ElectLeaders) -> ElectedLeaders {
    let text = format!("Unknown election type {}", request.election);
    let refusal = Refusal::new(ErrorCode::InvalidRequest, text);
    let asked = request.topics.as_deref().unwrap_or_default();
    let topics = asked.iter().map(|(topic, partitions)| {
        let results = partitions.iter().map(|partition| PartitionResult {
            partition: *partition,
            result: Err(refusal.clone()),
        });
        (topic.clone(), results.collect())
    });
    let nothing = request.topics.as_ref().is_some_and(Vec::is_empty);
    let code = if nothing { ErrorCode::None } else { ErrorCode::InvalidRequest };
    ElectedLeaders { code, topics: topics.collect() }
}
