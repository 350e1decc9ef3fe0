//! Between the machine's records and the bytes of `__consumer_offsets`.

use bytes::{BufMut, Bytes, BytesMut};
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::wire::*;

use super::hard::{GroupValue, MemberValue, OffsetValue, Record};
use super::messages::Name;

/// The records of one step as one batch, as Kafka's coordinator writes it: no producer, base sequence 0.
pub fn batch(records: &[Record], now_ms: i64) -> BytesMut {
    let mut builder = BatchBuilder::new(0, Codec::None).producer(-1, -1, 0, false);
    for record in records {
        let (key, value) = encode(record);
        builder.append(now_ms, Some(&key), value.as_deref(), &[]);
    }
    builder.build()
}

fn encode(record: &Record) -> (BytesMut, Option<BytesMut>) {
    let mut key = BytesMut::new();
    let mut out = BytesMut::new();
    match record {
        Record::Group { group, value } => {
            key.put_i16(2);
            put_string(&mut key, false, group);
            let Some(value) = value else { return (key, None) };
            out.put_i16(3);
            put_string(&mut out, false, value.protocol_type.as_deref().unwrap_or_default());
            out.put_i32(value.generation);
            put_nullable_string(&mut out, false, value.protocol.as_deref());
            put_nullable_string(&mut out, false, value.leader.as_deref());
            out.put_i64(value.state_since_ms.unwrap_or(-1));
            out.put_i32(value.members.len() as i32);
            for member in &value.members {
                put_string(&mut out, false, &member.member_id);
                put_nullable_string(&mut out, false, member.instance_id.as_deref());
                put_string(&mut out, false, &member.client_id);
                put_string(&mut out, false, &member.client_host);
                out.put_i32(member.rebalance_timeout_ms);
                out.put_i32(member.session_timeout_ms);
                put_nullable_bytes(&mut out, false, Some(&member.subscription));
                put_nullable_bytes(&mut out, false, Some(&member.assignment));
            }
            (key, Some(out))
        }
        Record::Offset { group, topic, partition, value } => {
            key.put_i16(1);
            put_string(&mut key, false, group);
            put_string(&mut key, false, topic);
            key.put_i32(*partition);
            let Some(value) = value else { return (key, None) };
            out.put_i16(1);
            out.put_i64(value.offset);
            put_string(&mut out, false, &value.metadata);
            out.put_i64(value.commit_ms);
            out.put_i64(value.expire_ms.unwrap_or(-1));
            (key, Some(out))
        }
    }
}

/// Reads one record; `None` for a type that is not known.
///
/// Errors: what is wrong with it.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Option<Record>, String> {
    let key = key.ok_or("a record without a key")?;
    read(key, value).map_err(|error| format!("{error:?}"))
}

fn read(key: &[u8], value: Option<&[u8]>) -> Result<Option<Record>, Malformed> {
    let mut key = Reader::new(key);
    let name = |bytes: &[u8]| Name::from(text(bytes));
    match key.i16()? {
        2 => {
            let group = name(key.string(false)?);
            let Some(value) = value else { return Ok(Some(Record::Group { group, value: None })) };
            let mut r = Reader::new(value);
            r.i16()?;
            let protocol_type = Some(name(r.string(false)?)).filter(|text| !text.is_empty());
            let generation = r.i32()?;
            let protocol = r.nullable_string(false)?.map(name);
            let leader = r.nullable_string(false)?.map(name);
            let state_since_ms = Some(r.i64()?).filter(|at| *at != -1);
            let mut members = Vec::new();
            for _ in 0..r.count(false, 1)? {
                members.push(MemberValue {
                    member_id: name(r.string(false)?),
                    instance_id: r.nullable_string(false)?.map(name),
                    client_id: name(r.string(false)?),
                    client_host: name(r.string(false)?),
                    rebalance_timeout_ms: r.i32()?,
                    session_timeout_ms: r.i32()?,
                    subscription: Bytes::copy_from_slice(r.bytes(false)?),
                    assignment: Bytes::copy_from_slice(r.bytes(false)?),
                });
            }
            let value =
                GroupValue { protocol_type, generation, protocol, leader, state_since_ms, members };
            Ok(Some(Record::Group { group, value: Some(value) }))
        }
        1 => {
            let (group, topic) = (name(key.string(false)?), name(key.string(false)?));
            let partition = key.i32()?;
            let Some(value) = value else {
                return Ok(Some(Record::Offset { group, topic, partition, value: None }));
            };
            let mut r = Reader::new(value);
            r.i16()?;
            let value = OffsetValue {
                offset: r.i64()?,
                leader_epoch: -1,
                metadata: name(r.string(false)?),
                commit_ms: r.i64()?,
                expire_ms: Some(r.i64()?).filter(|at| *at != -1),
                topic_id: uuid::Uuid::nil(),
            };
            Ok(Some(Record::Offset { group, topic, partition, value: Some(value) }))
        }
        _ => Ok(None),
    }
}
