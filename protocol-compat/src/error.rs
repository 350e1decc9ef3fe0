//! The error codes of the protocol: number, name, whether a client should try again, and a text.
//!
//! One table declares them all. Which error a situation deserves is decided by whoever meets it;
//! this module only names the codes.

/// Declares the codes once: variant, number, Kafka's name, retriable or fatal, our own text.
macro_rules! error_codes {
    ($($variant:ident = $code:literal $name:literal $retry:ident $message:literal;)*) => {
        /// An error code of the protocol, as of Apache Kafka 4.4 (`Errors`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant = $code,)*
        }

        /// Every code, ascending.
        pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

        impl ErrorCode {
            /// The number on the wire.
            pub const fn code(self) -> i16 {
                self as i16
            }

            /// The code with this number, if there is one.
            pub const fn from_code(code: i16) -> Option<ErrorCode> {
                match code {
                    $($code => Some(ErrorCode::$variant),)*
                    _ => None,
                }
            }

            /// Kafka's name of the code, for example `CORRUPT_MESSAGE`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }

            /// Whether Kafka's own clients try the same request again.
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(ErrorCode::$variant => error_codes!(@$retry),)*
                }
            }

            /// What the code means, in a short sentence without a full stop.
            pub const fn message(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $message,)*
                }
            }
        }
    };
    (@retry) => { true };
    (@fatal) => { false };
}

error_codes! {
    UnknownServerError = -1 "UNKNOWN_SERVER_ERROR" fatal "the server met an error it cannot name";
    None = 0 "NONE" fatal "no error";
    OffsetOutOfRange = 1 "OFFSET_OUT_OF_RANGE" fatal "the offset lies outside the log";
    CorruptMessage = 2 "CORRUPT_MESSAGE" retry "the batch is damaged: checksum or layout is wrong";
    UnknownTopicOrPartition = 3 "UNKNOWN_TOPIC_OR_PARTITION" retry
        "no such topic or partition here";
    InvalidFetchSize = 4 "INVALID_FETCH_SIZE" fatal "the fetch size is not usable";
    LeaderNotAvailable = 5 "LEADER_NOT_AVAILABLE" retry "the partition has no leader right now";
    NotLeaderOrFollower = 6 "NOT_LEADER_OR_FOLLOWER" retry
        "this broker neither leads nor follows the partition";
    RequestTimedOut = 7 "REQUEST_TIMED_OUT" retry "the request ran out of time";
    BrokerNotAvailable = 8 "BROKER_NOT_AVAILABLE" fatal "the broker is not there";
    ReplicaNotAvailable = 9 "REPLICA_NOT_AVAILABLE" retry "the replica is not there";
    MessageTooLarge = 10 "MESSAGE_TOO_LARGE" fatal "the batch is larger than the topic allows";
    StaleControllerEpoch = 11 "STALE_CONTROLLER_EPOCH" fatal "the controller epoch is too old";
    OffsetMetadataTooLarge = 12 "OFFSET_METADATA_TOO_LARGE" fatal
        "the metadata of the offset commit is too long";
    NetworkException = 13 "NETWORK_EXCEPTION" retry "the connection broke before the answer";
    CoordinatorLoadInProgress = 14 "COORDINATOR_LOAD_IN_PROGRESS" retry
        "the coordinator is still loading its state";
    CoordinatorNotAvailable = 15 "COORDINATOR_NOT_AVAILABLE" retry
        "no coordinator is ready for this key";
    NotCoordinator = 16 "NOT_COORDINATOR" retry "this broker is not the coordinator for this key";
    InvalidTopicException = 17 "INVALID_TOPIC_EXCEPTION" fatal
        "the topic name is not legal or not open to clients";
    RecordListTooLarge = 18 "RECORD_LIST_TOO_LARGE" fatal "the batch is larger than a segment";
    NotEnoughReplicas = 19 "NOT_ENOUGH_REPLICAS" retry
        "too few in-sync replicas to accept the write";
    NotEnoughReplicasAfterAppend = 20 "NOT_ENOUGH_REPLICAS_AFTER_APPEND" retry
        "the write is stored, but too few replicas stayed in sync";
    InvalidRequiredAcks = 21 "INVALID_REQUIRED_ACKS" fatal "acks must be -1, 0 or 1";
    IllegalGeneration = 22 "ILLEGAL_GENERATION" fatal "the generation is not the current one";
    InconsistentGroupProtocol = 23 "INCONSISTENT_GROUP_PROTOCOL" fatal
        "the member shares no protocol with its group";
    InvalidGroupId = 24 "INVALID_GROUP_ID" fatal "the group id is not legal";
    UnknownMemberId = 25 "UNKNOWN_MEMBER_ID" fatal "the coordinator does not know this member";
    InvalidSessionTimeout = 26 "INVALID_SESSION_TIMEOUT" fatal
        "the session timeout is outside the allowed range";
    RebalanceInProgress = 27 "REBALANCE_IN_PROGRESS" fatal "the group is rebalancing";
    InvalidCommitOffsetSize = 28 "INVALID_COMMIT_OFFSET_SIZE" fatal
        "the offset commit is too large";
    TopicAuthorizationFailed = 29 "TOPIC_AUTHORIZATION_FAILED" fatal "no permission on the topic";
    GroupAuthorizationFailed = 30 "GROUP_AUTHORIZATION_FAILED" fatal "no permission on the group";
    ClusterAuthorizationFailed = 31 "CLUSTER_AUTHORIZATION_FAILED" fatal
        "no permission on the cluster";
    InvalidTimestamp = 32 "INVALID_TIMESTAMP" fatal "a timestamp is outside the allowed range";
    UnsupportedSaslMechanism = 33 "UNSUPPORTED_SASL_MECHANISM" fatal
        "the SASL mechanism is not enabled";
    IllegalSaslState = 34 "ILLEGAL_SASL_STATE" fatal "the SASL step came out of order";
    UnsupportedVersion = 35 "UNSUPPORTED_VERSION" fatal
        "the version of the request is not supported";
    TopicAlreadyExists = 36 "TOPIC_ALREADY_EXISTS" fatal "a topic of this name exists";
    InvalidPartitions = 37 "INVALID_PARTITIONS" fatal "the number of partitions is not usable";
    InvalidReplicationFactor = 38 "INVALID_REPLICATION_FACTOR" fatal
        "the replication factor is not usable";
    InvalidReplicaAssignment = 39 "INVALID_REPLICA_ASSIGNMENT" fatal
        "the replica assignment is not usable";
    InvalidConfig = 40 "INVALID_CONFIG" fatal "a configuration value is not legal";
    NotController = 41 "NOT_CONTROLLER" retry "this node is not the active controller";
    InvalidRequest = 42 "INVALID_REQUEST" fatal
        "the request contradicts itself or breaks a rule of the protocol";
    UnsupportedForMessageFormat = 43 "UNSUPPORTED_FOR_MESSAGE_FORMAT" fatal
        "the message format of the topic does not allow this";
    PolicyViolation = 44 "POLICY_VIOLATION" fatal "a policy of the cluster forbids this";
    OutOfOrderSequenceNumber = 45 "OUT_OF_ORDER_SEQUENCE_NUMBER" fatal
        "the sequence number does not follow the last one";
    DuplicateSequenceNumber = 46 "DUPLICATE_SEQUENCE_NUMBER" fatal
        "the sequence number was seen before";
    InvalidProducerEpoch = 47 "INVALID_PRODUCER_EPOCH" fatal
        "the producer epoch is older than the current one";
    InvalidTxnState = 48 "INVALID_TXN_STATE" fatal
        "the transaction is not in a state that allows this";
    InvalidProducerIdMapping = 49 "INVALID_PRODUCER_ID_MAPPING" fatal
        "the producer id does not belong to this transactional id";
    InvalidTransactionTimeout = 50 "INVALID_TRANSACTION_TIMEOUT" fatal
        "the transaction timeout is above the limit";
    ConcurrentTransactions = 51 "CONCURRENT_TRANSACTIONS" retry
        "another change of the same transaction is still under way";
    TransactionCoordinatorFenced = 52 "TRANSACTION_COORDINATOR_FENCED" fatal
        "the transaction coordinator is no longer the current one";
    TransactionalIdAuthorizationFailed = 53 "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" fatal
        "no permission on the transactional id";
    SecurityDisabled = 54 "SECURITY_DISABLED" fatal "security features are turned off";
    OperationNotAttempted = 55 "OPERATION_NOT_ATTEMPTED" fatal
        "not attempted, because another part of the request failed";
    KafkaStorageError = 56 "KAFKA_STORAGE_ERROR" retry
        "the disk failed while reading or writing the log";
    LogDirNotFound = 57 "LOG_DIR_NOT_FOUND" fatal "the log directory is not one of this broker";
    SaslAuthenticationFailed = 58 "SASL_AUTHENTICATION_FAILED" fatal "authentication failed";
    UnknownProducerId = 59 "UNKNOWN_PRODUCER_ID" fatal "nothing is known of this producer id";
    ReassignmentInProgress = 60 "REASSIGNMENT_IN_PROGRESS" fatal
        "a reassignment of the partition is under way";
    DelegationTokenAuthDisabled = 61 "DELEGATION_TOKEN_AUTH_DISABLED" fatal
        "delegation tokens are not enabled here";
    DelegationTokenNotFound = 62 "DELEGATION_TOKEN_NOT_FOUND" fatal "no such delegation token";
    DelegationTokenOwnerMismatch = 63 "DELEGATION_TOKEN_OWNER_MISMATCH" fatal
        "the principal is not an owner or renewer of the token";
    DelegationTokenRequestNotAllowed = 64 "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" fatal
        "delegation tokens cannot be requested over this connection";
    DelegationTokenAuthorizationFailed = 65 "DELEGATION_TOKEN_AUTHORIZATION_FAILED" fatal
        "no permission on the delegation token";
    DelegationTokenExpired = 66 "DELEGATION_TOKEN_EXPIRED" fatal "the delegation token has expired";
    InvalidPrincipalType = 67 "INVALID_PRINCIPAL_TYPE" fatal
        "the type of the principal is not supported";
    NonEmptyGroup = 68 "NON_EMPTY_GROUP" fatal "the group still has members";
    GroupIdNotFound = 69 "GROUP_ID_NOT_FOUND" fatal "no such group";
    FetchSessionIdNotFound = 70 "FETCH_SESSION_ID_NOT_FOUND" retry "no such fetch session";
    InvalidFetchSessionEpoch = 71 "INVALID_FETCH_SESSION_EPOCH" retry
        "the fetch session epoch is not the expected one";
    ListenerNotFound = 72 "LISTENER_NOT_FOUND" retry "the leader has no listener of this name";
    TopicDeletionDisabled = 73 "TOPIC_DELETION_DISABLED" fatal "deleting topics is turned off";
    FencedLeaderEpoch = 74 "FENCED_LEADER_EPOCH" retry
        "the leader epoch of the request is older than the current one";
    UnknownLeaderEpoch = 75 "UNKNOWN_LEADER_EPOCH" retry
        "the leader epoch of the request is newer than any known here";
    UnsupportedCompressionType = 76 "UNSUPPORTED_COMPRESSION_TYPE" fatal
        "the compression type is not supported here";
    StaleBrokerEpoch = 77 "STALE_BROKER_EPOCH" fatal "the broker epoch is too old";
    OffsetNotAvailable = 78 "OFFSET_NOT_AVAILABLE" retry
        "the leader does not know its high watermark yet";
    MemberIdRequired = 79 "MEMBER_ID_REQUIRED" fatal
        "join again with the member id given in the answer";
    PreferredLeaderNotAvailable = 80 "PREFERRED_LEADER_NOT_AVAILABLE" retry
        "the preferred leader is not available";
    GroupMaxSizeReached = 81 "GROUP_MAX_SIZE_REACHED" fatal "the group is full";
    FencedInstanceId = 82 "FENCED_INSTANCE_ID" fatal
        "another member took over this group instance id";
    EligibleLeadersNotAvailable = 83 "ELIGIBLE_LEADERS_NOT_AVAILABLE" retry
        "no replica is eligible to lead";
    ElectionNotNeeded = 84 "ELECTION_NOT_NEEDED" retry "the partition has the right leader already";
    NoReassignmentInProgress = 85 "NO_REASSIGNMENT_IN_PROGRESS" fatal
        "no reassignment is under way";
    GroupSubscribedToTopic = 86 "GROUP_SUBSCRIBED_TO_TOPIC" fatal
        "the group is subscribed to the topic";
    InvalidRecord = 87 "INVALID_RECORD" fatal "a record breaks a rule, so the batch was refused";
    UnstableOffsetCommit = 88 "UNSTABLE_OFFSET_COMMIT" retry
        "offsets of an open transaction are not yet decided";
    ThrottlingQuotaExceeded = 89 "THROTTLING_QUOTA_EXCEEDED" retry
        "a quota is used up; try again later";
    ProducerFenced = 90 "PRODUCER_FENCED" fatal
        "a newer producer with the same transactional id took over";
    ResourceNotFound = 91 "RESOURCE_NOT_FOUND" fatal "no such resource";
    DuplicateResource = 92 "DUPLICATE_RESOURCE" fatal "the resource is named more than once";
    UnacceptableCredential = 93 "UNACCEPTABLE_CREDENTIAL" fatal
        "the credential does not meet the requirements";
    InconsistentVoterSet = 94 "INCONSISTENT_VOTER_SET" fatal
        "the sender and the recipient disagree on the set of voters";
    InvalidUpdateVersion = 95 "INVALID_UPDATE_VERSION" fatal
        "the feature version is not acceptable";
    FeatureUpdateFailed = 96 "FEATURE_UPDATE_FAILED" fatal "the feature update failed";
    PrincipalDeserializationFailure = 97 "PRINCIPAL_DESERIALIZATION_FAILURE" fatal
        "the forwarded principal cannot be read";
    SnapshotNotFound = 98 "SNAPSHOT_NOT_FOUND" fatal "no such snapshot";
    PositionOutOfRange = 99 "POSITION_OUT_OF_RANGE" fatal "the position lies outside the snapshot";
    UnknownTopicId = 100 "UNKNOWN_TOPIC_ID" retry "no such topic id";
    DuplicateBrokerRegistration = 101 "DUPLICATE_BROKER_REGISTRATION" fatal
        "a broker with this id is registered already";
    BrokerIdNotRegistered = 102 "BROKER_ID_NOT_REGISTERED" fatal
        "no broker with this id is registered";
    InconsistentTopicId = 103 "INCONSISTENT_TOPIC_ID" retry "the topic id does not match the log";
    InconsistentClusterId = 104 "INCONSISTENT_CLUSTER_ID" fatal "the cluster id does not match";
    TransactionalIdNotFound = 105 "TRANSACTIONAL_ID_NOT_FOUND" fatal "no such transactional id";
    FetchSessionTopicIdError = 106 "FETCH_SESSION_TOPIC_ID_ERROR" retry
        "a fetch session must name topics in one way only";
    IneligibleReplica = 107 "INELIGIBLE_REPLICA" fatal
        "the new in-sync set names a replica that may not join it";
    NewLeaderElected = 108 "NEW_LEADER_ELECTED" fatal "the change made another replica the leader";
    OffsetMovedToTieredStorage = 109 "OFFSET_MOVED_TO_TIERED_STORAGE" fatal
        "the offset has moved to the remote tier";
    FencedMemberEpoch = 110 "FENCED_MEMBER_EPOCH" fatal
        "the member epoch is not the current one; join again";
    UnreleasedInstanceId = 111 "UNRELEASED_INSTANCE_ID" fatal
        "another member still holds this group instance id";
    UnsupportedAssignor = 112 "UNSUPPORTED_ASSIGNOR" fatal
        "the assignor is not available, or the members share none";
    StaleMemberEpoch = 113 "STALE_MEMBER_EPOCH" fatal
        "the member epoch is too old; ask again with the new one";
    MismatchedEndpointType = 114 "MISMATCHED_ENDPOINT_TYPE" fatal
        "the request was sent to the wrong kind of endpoint";
    UnsupportedEndpointType = 115 "UNSUPPORTED_ENDPOINT_TYPE" fatal
        "this kind of endpoint is not known here";
    UnknownControllerId = 116 "UNKNOWN_CONTROLLER_ID" fatal "no such controller";
    UnknownSubscriptionId = 117 "UNKNOWN_SUBSCRIPTION_ID" fatal
        "the metrics subscription has changed";
    TelemetryTooLarge = 118 "TELEMETRY_TOO_LARGE" fatal "the metrics are larger than the limit";
    InvalidRegistration = 119 "INVALID_REGISTRATION" fatal "the registration is not acceptable";
    TransactionAbortable = 120 "TRANSACTION_ABORTABLE" fatal "the transaction must be aborted";
    InvalidRecordState = 121 "INVALID_RECORD_STATE" fatal
        "the record is not in a state that allows this";
    ShareSessionNotFound = 122 "SHARE_SESSION_NOT_FOUND" retry "no such share session";
    InvalidShareSessionEpoch = 123 "INVALID_SHARE_SESSION_EPOCH" retry
        "the share session epoch is not the expected one";
    FencedStateEpoch = 124 "FENCED_STATE_EPOCH" fatal
        "the state epoch of the share partition is too old";
    InvalidVoterKey = 125 "INVALID_VOTER_KEY" fatal "the voter key does not match this node";
    DuplicateVoter = 126 "DUPLICATE_VOTER" fatal "the voter is in the set already";
    VoterNotFound = 127 "VOTER_NOT_FOUND" fatal "the voter is not in the set";
    InvalidRegularExpression = 128 "INVALID_REGULAR_EXPRESSION" fatal
        "the regular expression cannot be read";
    RebootstrapRequired = 129 "REBOOTSTRAP_REQUIRED" fatal
        "the client must start again from its bootstrap servers";
    StreamsInvalidTopology = 130 "STREAMS_INVALID_TOPOLOGY" fatal "the topology is not usable";
    StreamsInvalidTopologyEpoch = 131 "STREAMS_INVALID_TOPOLOGY_EPOCH" fatal
        "the topology epoch is not usable";
    StreamsTopologyFenced = 132 "STREAMS_TOPOLOGY_FENCED" fatal "a newer topology is in use";
    ShareSessionLimitReached = 133 "SHARE_SESSION_LIMIT_REACHED" retry
        "no more share sessions fit here";
    GroupDeletionFailed = 134 "GROUP_DELETION_FAILED" fatal "the group could not be deleted";
    StreamsTopologyDescriptionUpdateFailed = 135 "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED" fatal
        "the topology description could not be updated";
    ControllerIdNotRegistered = 136 "CONTROLLER_ID_NOT_REGISTERED" fatal
        "no controller with this id is registered";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}

impl std::error::Error for ErrorCode {}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> i16 {
        error.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dense_and_come_back() {
        assert_eq!(ALL.len(), 138);
        for (code, error) in (-1i16..).zip(ALL) {
            assert_eq!(error.code(), code);
            assert_eq!(ErrorCode::from_code(code), Some(*error));
        }
        assert_eq!(ErrorCode::from_code(-2), None);
        assert_eq!(ErrorCode::from_code(137), None);
    }

    /// kafka-protocol knows most of the codes: numbers and retry marks must agree with it.
    #[test]
    fn agrees_with_kafka_protocol() {
        use kafka_protocol::ResponseError;
        for error in ALL {
            let Some(other) = ResponseError::try_from_code(error.code()) else { continue };
            if matches!(other, ResponseError::Unknown(_)) {
                continue;
            }
            let name: String = error
                .name()
                .split('_')
                .map(|part| part[..1].to_owned() + &part[1..].to_lowercase())
                .collect();
            assert_eq!(format!("{other:?}"), name, "{error}");
        }
    }

    #[track_caller]
    fn check(code: i16, name: &str, retriable: bool) {
        let error = ErrorCode::from_code(code).expect("known code");
        assert_eq!((error.name(), error.is_retriable()), (name, retriable));
    }

    #[test]
    fn names_and_marks() {
        check(-1, "UNKNOWN_SERVER_ERROR", false);
        check(2, "CORRUPT_MESSAGE", true);
        check(29, "TOPIC_AUTHORIZATION_FAILED", false);
        check(51, "CONCURRENT_TRANSACTIONS", true);
        check(87, "INVALID_RECORD", false);
        check(133, "SHARE_SESSION_LIMIT_REACHED", true);
        check(136, "CONTROLLER_ID_NOT_REGISTERED", false);
        assert_eq!(ErrorCode::CorruptMessage.to_string(), "CORRUPT_MESSAGE (2)");
    }
}
