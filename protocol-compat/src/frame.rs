//! Where a frame ends: a four-byte size, then that many bytes.
//!
//! What the bytes mean is `header` and `shape`.

/// The bytes of the size field in front of each frame.
pub const SIZE_LEN: usize = 4;

/// The smallest frame that can hold a request header (key, version, correlation id).
pub const REQUEST_LEN_MIN: usize = 8;

/// A size that no peer may send; the connection is closed (`NetworkReceive` of Kafka does so too).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of negative size {0}")]
    Negative(i32),
    /// Above `socket.request.max.bytes`, or another limit the caller has.
    #[error("a frame of {size} bytes, more than {max}")]
    TooLarge { size: usize, max: usize },
}

/// The length of the first frame in `buf`, its size field not counted, or `None` while not all
/// of it is there. A frame above `max` is refused as soon as its size is known.
///
/// The frame is `buf[SIZE_LEN..SIZE_LEN + len]`, and the next one starts right behind it.
pub fn split(buf: &[u8], max: usize) -> Result<Option<usize>, FrameError> {
    match announced(buf, max)? {
        Some(len) if buf.len() - SIZE_LEN >= len => Ok(Some(len)),
        _ => Ok(None),
    }
}

/// The length the first frame in `buf` will have, once its four size bytes are there: lets a
/// reader make room for all of it at once.
pub fn announced(buf: &[u8], max: usize) -> Result<Option<usize>, FrameError> {
    let Some(size) = buf.first_chunk::<SIZE_LEN>() else { return Ok(None) };
    let size = i32::from_be_bytes(*size);
    let len = usize::try_from(size).map_err(|_| FrameError::Negative(size))?;
    if len > max {
        return Err(FrameError::TooLarge { size: len, max });
    }
    Ok(Some(len))
}
