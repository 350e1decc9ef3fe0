//! What goes wrong inside, as error codes. Every match is exhaustive: a new failure does not
//! compile until its code is chosen.

use protocol_compat::error::ErrorCode;
use protocol_compat::hot::produce::ProducePartitionResponse;
use storage::errors::{AppendError, ReadError};

use crate::partition::WriteError;

/// The code of a refused or failed append.
pub fn append_code(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        AppendError::RecordListTooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        AppendError::Malformed(_) | AppendError::OffsetsBehind { .. } => ErrorCode::CorruptMessage,
        AppendError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The code of a read that gave nothing.
pub fn read_code(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The entry of a Produce answer for an append that failed. Refusals by the producer state carry
/// the real log start offset (seen on Kafka 4.4.0).
pub fn produce_answer(
    index: i32,
    error: &WriteError,
    log_start_offset: i64,
) -> ProducePartitionResponse {
    let code = write_code(error);
    let mut response = ProducePartitionResponse::error(index, code.code());
    if matches!(
        code,
        ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::InvalidTxnState
    ) {
        response.log_start_offset = log_start_offset;
    }
    response
}

/// The code of a write to a partition that did not happen.
pub fn write_code(error: &WriteError) -> ErrorCode {
    match error {
        WriteError::NotLeader => ErrorCode::NotLeaderOrFollower,
        WriteError::Offline => ErrorCode::KafkaStorageError,
        WriteError::Log(error) => append_code(error),
    }
}
