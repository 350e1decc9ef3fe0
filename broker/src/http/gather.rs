//! What is looked at only when somebody scrapes: offsets, sizes, lags, counts.
//!
//! Broker names are the Strimzi spelling of Kafka's JMX names; topic and group offsets have the
//! names of kafka_exporter, which lag dashboards and alerts know.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::page::{Gauge, Page};
use crate::node::Node;
use crate::partition::Partition;
use crate::progress::Phase;

macro_rules! gauges {
    ($($id:ident = $name:literal, $help:literal;)+) => {
        $(const $id: Gauge = Gauge { name: $name, help: $help };)+
        /// Every gauge of this page, for its reference.
        pub const ALL: &[Gauge] = &[$(Gauge { name: $name, help: $help }),+];
    };
}

gauges! {
    BROKER_STATE = "kafka_server_kafkaserver_brokerstate",
        "3 when everything serves, 2 while logs recover.";
    PARTITIONS = "kafka_server_replicamanager_partitioncount",
        "Partitions on this node.";
    LEADERS = "kafka_server_replicamanager_leadercount",
        "Partitions that this node leads.";
    UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions",
        "Led partitions whose in-sync set is not whole.";
    UNDER_MIN_ISR = "kafka_server_replicamanager_underminisrpartitioncount",
        "Led partitions below min.insync.replicas.";
    OFFLINE_REPLICAS = "kafka_server_replicamanager_offlinereplicacount",
        "Partitions that cannot serve because of their disk.";
    PRODUCER_IDS = "kafka_server_replicamanager_produceridcount",
        "Producers that partitions remember.";
    ACTIVE_CONTROLLER = "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the node that leads the quorum.";
    TOPICS = "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics of the cluster.";
    ALL_PARTITIONS = "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions of the cluster.";
    NO_LEADER = "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a leader.";
    ACTIVE_BROKERS = "kafka_controller_kafkacontroller_activebrokercount",
        "Brokers that may lead.";
    FENCED_BROKERS = "kafka_controller_kafkacontroller_fencedbrokercount",
        "Brokers that may not lead.";
    OFFLINE_DIRS = "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.";
    CONNECTIONS = "kafka_server_socket_server_metrics_connection_count",
        "Open connections.";
    SESSIONS = "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions.";
    SESSION_PARTITIONS = "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "Partitions that fetch sessions follow.";
    APPLIED = "kafka_server_brokermetadatametrics_last_applied_record_offset",
        "Last entry of the metadata log that was applied.";
    LOG_SIZE = "kafka_log_log_size",
        "Bytes of a partition's log.";
    LOG_START = "kafka_log_log_logstartoffset",
        "First offset of a partition.";
    LOG_END = "kafka_log_log_logendoffset",
        "Next offset of a partition.";
    SEGMENTS = "kafka_log_log_numlogsegments",
        "Segments of a partition.";
    DIR_USABLE = "gracchus_log_dir_usable_bytes",
        "Bytes that a log directory can still take.";
    TOPIC_CURRENT = "kafka_topic_partition_current_offset",
        "High watermark of a partition.";
    TOPIC_OLDEST = "kafka_topic_partition_oldest_offset",
        "First offset of a partition.";
    TOPIC_LEADER = "kafka_topic_partition_leader",
        "Node that leads a partition.";
    TOPIC_REPLICAS = "kafka_topic_partition_replicas",
        "Replicas of a partition.";
    TOPIC_ISR = "kafka_topic_partition_in_sync_replica",
        "Replicas of a partition that are in sync.";
    TOPIC_PARTITIONS = "kafka_topic_partitions",
        "Partitions of a topic.";
    GROUPS = "kafka_server_group_coordinator_metrics_group_count",
        "Groups by state.";
    GROUP_MEMBERS = "kafka_consumergroup_members",
        "Members of a group.";
    GROUP_OFFSET = "kafka_consumergroup_current_offset",
        "Committed offset of a group.";
    GROUP_LAG = "kafka_consumergroup_lag",
        "High watermark less committed offset.";
}

/// Everything that this module knows, in the text format.
pub fn gather(node: &Node) -> String {
    let mut page = Page::default();
    let partitions = node.partitions.all();
    broker(node, &partitions, &mut page);
    cluster(node, &mut page);
    for partition in &partitions {
        of_partition(partition, &mut page);
    }
    groups(node, &partitions, &mut page);
    page.finish()
}

fn broker(node: &Node, partitions: &[Arc<Partition>], page: &mut Page) {
    page.set(&BROKER_STATE, &[], if node.progress.phase() == Phase::Ready { 3 } else { 2 });
    page.set(&PARTITIONS, &[], partitions.len());
    let count = |is: &dyn Fn(&Partition) -> bool| {
        partitions.iter().filter(|partition| is(partition)).count()
    };
    page.set(&LEADERS, &[], count(&Partition::is_leader));
    let offline = count(&Partition::is_offline) + node.progress.failed();
    page.set(&OFFLINE_REPLICAS, &[], offline);
    let min_isr =
        |at: &Partition| at.is_leader() && at.isr_len() < at.settings().effective_min_isr(1);
    page.set(&UNDER_MIN_ISR, &[], count(&min_isr));
    let producers: usize =
        partitions.iter().map(|at| at.with_log(|log| log.producers().len())).sum();
    page.set(&PRODUCER_IDS, &[], producers);
    page.set(&CONNECTIONS, &[], node.connections.total());
    let sessions = node.sessions.lock();
    page.set(&SESSIONS, &[], sessions.len());
    page.set(&SESSION_PARTITIONS, &[], sessions.partitions());
    drop(sessions);
    page.set(&OFFLINE_DIRS, &[], 0);
    for dir in node.dirs.dirs() {
        if let Ok(space) = node.env.disk.space(dir.log_dir.path()) {
            page.set(&DIR_USABLE, &[("dir", &dir.shown)], space.usable);
        }
    }
}

fn cluster(node: &Node, page: &mut Page) {
    let image = node.quorum.image();
    let leads = node.quorum.leader() == Some(node.id);
    page.set(&ACTIVE_CONTROLLER, &[], i32::from(leads));
    page.set(&APPLIED, &[], image.last_applied());
    page.set(&TOPICS, &[], image.topic_count());
    let (mut all, mut leaderless, mut under) = (0, 0, 0);
    for topic in image.topics() {
        page.set(&TOPIC_PARTITIONS, &[("topic", &topic.name)], topic.partitions.len());
        for (index, partition) in topic.partitions.iter().enumerate() {
            all += 1;
            leaderless += i32::from(partition.leader().is_none());
            let led_here = partition.leader() == Some(node.id);
            under += i32::from(led_here && partition.isr.len() < partition.replicas.len());
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("topic", &topic.name), ("partition", &index)];
            page.set(&TOPIC_LEADER, &labels, partition.leader().unwrap_or(-1));
            page.set(&TOPIC_REPLICAS, &labels, partition.replicas.len());
            page.set(&TOPIC_ISR, &labels, partition.isr.len());
        }
    }
    page.set(&ALL_PARTITIONS, &[], all);
    page.set(&NO_LEADER, &[], leaderless);
    page.set(&UNDER_REPLICATED, &[], under);
    let active = image.brokers().filter(|broker| broker.is_active()).count();
    page.set(&ACTIVE_BROKERS, &[], active);
    page.set(&FENCED_BROKERS, &[], image.brokers().count() - active);
}

fn of_partition(partition: &Partition, page: &mut Page) {
    let labels: [(&str, &dyn std::fmt::Display); 2] =
        [("topic", &partition.tp.topic), ("partition", &partition.tp.partition)];
    let view = partition.view();
    page.set(&LOG_SIZE, &labels, view.size_bytes());
    page.set(&SEGMENTS, &labels, view.segments().len());
    page.set(&LOG_START, &labels, partition.log_start_offset());
    page.set(&LOG_END, &labels, partition.log_end_offset());
    page.set(&TOPIC_OLDEST, &labels, partition.log_start_offset());
    page.set(&TOPIC_CURRENT, &labels, partition.high_watermark());
}

fn groups(node: &Node, partitions: &[Arc<Partition>], page: &mut Page) {
    let mut states: BTreeMap<&'static str, usize> = BTreeMap::new();
    for group in node.groups.summaries() {
        *states.entry(group.state.name()).or_default() += 1;
        page.set(&GROUP_MEMBERS, &[("consumergroup", &group.group)], group.members);
    }
    for (state, count) in states {
        page.set(&GROUPS, &[("state", &state)], count);
    }
    let ends: BTreeMap<(&str, i32), i64> = partitions
        .iter()
        .map(|at| ((&*at.tp.topic, at.tp.partition), at.high_watermark()))
        .collect();
    for committed in node.groups.committed_offsets() {
        let labels: [(&str, &dyn std::fmt::Display); 3] = [
            ("consumergroup", &committed.group),
            ("topic", &committed.topic),
            ("partition", &committed.partition),
        ];
        page.set(&GROUP_OFFSET, &labels, committed.offset);
        if let Some(end) = ends.get(&(&*committed.topic, committed.partition)) {
            page.set(&GROUP_LAG, &labels, (end - committed.offset).max(0));
        }
    }
}
