//! IncrementalAlterConfigs, which librdkafka has and the rdkafka crate does not wrap.

use std::ffi::{CStr, CString};

use rdkafka::admin::AdminClient;
use rdkafka::bindings as ffi;
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaRespErr;

use crate::client::{Answer, PATIENCE};

/// One operation on one setting.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Set(&'a str, &'a str),
    Delete(&'a str),
    Append(&'a str, &'a str),
    Subtract(&'a str, &'a str),
}

impl<'a> Change<'a> {
    fn parts(self) -> (ffi::rd_kafka_AlterConfigOpType_t, &'a str, Option<&'a str>) {
        use ffi::rd_kafka_AlterConfigOpType_t as Op;
        match self {
            Change::Set(name, value) => (Op::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, name, Some(value)),
            Change::Delete(name) => (Op::RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, name, None),
            Change::Append(name, value) => {
                (Op::RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND, name, Some(value))
            }
            Change::Subtract(name, value) => {
                (Op::RD_KAFKA_ALTER_CONFIG_OP_TYPE_SUBTRACT, name, Some(value))
            }
        }
    }
}

/// Changes a topic's settings; those not named stay.
pub fn alter_topic(
    admin: &AdminClient<DefaultClientContext>,
    topic: &str,
    changes: &[Change<'_>],
) -> Answer<()> {
    let client = admin.inner().native_ptr();
    let topic = CString::new(topic).expect("no NUL in a name");
    // SAFETY: every pointer comes from librdkafka and is destroyed once, after its last use; the
    // strings outlive the calls, which copy them.
    unsafe {
        let kind = ffi::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC;
        let mut resource = ffi::rd_kafka_ConfigResource_new(kind, topic.as_ptr());
        for change in changes {
            let (op, name, value) = change.parts();
            let name = CString::new(name).expect("no NUL in a name");
            let value = value.map(|value| CString::new(value).expect("no NUL in a value"));
            let value = value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
            let error = ffi::rd_kafka_ConfigResource_add_incremental_config(
                resource,
                name.as_ptr(),
                op,
                value,
            );
            assert!(error.is_null(), "librdkafka refuses {change:?}");
        }
        let queue = ffi::rd_kafka_queue_new(client);
        let none = std::ptr::null();
        ffi::rd_kafka_IncrementalAlterConfigs(client, &mut resource, 1, none, queue);
        let event = ffi::rd_kafka_queue_poll(queue, PATIENCE.as_millis() as i32);
        let code = if event.is_null() {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__TIMED_OUT
        } else {
            code_of(event)
        };
        ffi::rd_kafka_event_destroy(event);
        ffi::rd_kafka_queue_destroy(queue);
        ffi::rd_kafka_ConfigResource_destroy(resource);
        match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(RDKafkaErrorCode::from(code)),
        }
    }
}

/// The error of the whole answer, else of its one resource.
///
/// # Safety
/// `event` is an answer to IncrementalAlterConfigs, not yet destroyed.
unsafe fn code_of(event: *mut ffi::rd_kafka_event_t) -> RDKafkaRespErr {
    // SAFETY: the caller vouches for the event; what is read lives as long as it.
    unsafe {
        let code = ffi::rd_kafka_event_error(event);
        if code != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return code;
        }
        let result = ffi::rd_kafka_event_IncrementalAlterConfigs_result(event);
        let mut count = 0;
        let all = ffi::rd_kafka_IncrementalAlterConfigs_result_resources(result, &mut count);
        assert_eq!(count, 1, "one answer for one question");
        let code = ffi::rd_kafka_ConfigResource_error(*all);
        let text = ffi::rd_kafka_ConfigResource_error_string(*all);
        if !text.is_null() {
            println!("the broker says: {}", CStr::from_ptr(text).to_string_lossy());
        }
        code
    }
}
