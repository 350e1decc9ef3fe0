//! What waits to be written to one connection: bytes and slices of files, in order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use storage::disk::File;

use crate::env::Conn;

/// One response frame: bytes, with slices of files spliced in at given places.
#[derive(Default)]
pub struct Reply {
    pub bytes: BytesMut,
    /// `(at, slice)`: the slice belongs before byte `at` of `bytes`; ascending.
    pub files: Vec<(usize, FileSlice)>,
}

impl From<BytesMut> for Reply {
    fn from(bytes: BytesMut) -> Reply {
        Reply { bytes, files: Vec::new() }
    }
}

/// A range of a file that goes out as it is.
#[derive(Clone)]
pub struct FileSlice {
    pub file: Arc<dyn File>,
    pub position: u64,
    pub len: usize,
}

/// Small replies are gathered into one write up to this size.
const GATHER_BYTES_MAX: usize = 128 << 10;

/// After this many bytes the connection lets others of its shard have a turn.
const TURN_BYTES_MAX: usize = 1 << 20;

enum Chunk {
    Bytes(BytesMut),
    File(FileSlice),
}

/// The output queue of a connection.
#[derive(Default)]
pub struct Out {
    chunks: VecDeque<Chunk>,
    queued_bytes: usize,
}

impl Out {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes that wait, those of files included.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    pub fn push(&mut self, mut reply: Reply) {
        let mut taken = 0;
        for (at, slice) in reply.files {
            let head = reply.bytes.split_to(at - taken);
            taken = at;
            self.push_bytes(head);
            self.queued_bytes += slice.len;
            self.chunks.push_back(Chunk::File(slice));
        }
        self.push_bytes(reply.bytes);
    }

    fn push_bytes(&mut self, bytes: BytesMut) {
        if bytes.is_empty() {
            return;
        }
        self.queued_bytes += bytes.len();
        if let Some(Chunk::Bytes(last)) = self.chunks.back_mut()
            && last.len() + bytes.len() <= GATHER_BYTES_MAX
        {
            last.extend_from_slice(&bytes);
            return;
        }
        self.chunks.push_back(Chunk::Bytes(bytes));
    }

    /// Writes until nothing is left (ready) or the stream takes no more (pending).
    ///
    /// # Errors
    /// The stream's own; also a file that ended before its slice did.
    pub fn poll_flush(&mut self, conn: &dyn Conn, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut turn = 0;
        while let Some(chunk) = self.chunks.front_mut() {
            if turn >= TURN_BYTES_MAX {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let sent = match chunk {
                Chunk::Bytes(bytes) => conn.try_write(bytes),
                Chunk::File(slice) => {
                    let len = slice.len.min(TURN_BYTES_MAX);
                    conn.try_send_file(&*slice.file, slice.position, len)
                }
            };
            match sent {
                Ok(0) => {
                    let text = "the stream or the file ended in the middle of an answer";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
                }
                Ok(len) => {
                    turn += len;
                    self.sent(len);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match conn.poll_writable(cx) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn sent(&mut self, len: usize) {
        self.queued_bytes -= len;
        let done = match self.chunks.front_mut() {
            Some(Chunk::Bytes(bytes)) => {
                bytes.advance(len);
                bytes.is_empty()
            }
            Some(Chunk::File(slice)) => {
                slice.position += len as u64;
                slice.len -= len;
                slice.len == 0
            }
            None => false,
        };
        if done {
            self.chunks.pop_front();
        }
    }
}
