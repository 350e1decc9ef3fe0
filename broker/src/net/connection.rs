//! One connection: drain the socket, act on every complete frame, flush once.
//!
//! Requests run in order on the connection's own shard. A Produce that waits for the disk does not
//! hold up the requests behind it; anything else does, as in Kafka, where one request of a
//! connection is at work at a time. Responses leave in request order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use protocol_compat::frame;

use super::ConnInfo;
use super::buffer::{READ_BYTES, ReadBuffer};
use super::out::{Out, Reply};
use crate::apis::produce::PendingProduce;
use crate::apis::{self, Answer, Started};
use crate::env::{BoxFuture, Conn};
use crate::node::Node;
use crate::partition::flush::Drain;

/// One connection may have this many requests in flight; then its socket is not read.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 64;

/// This many bytes may wait to be written to one connection; then its socket is not read.
pub const QUEUED_BYTES_MAX: usize = 4 << 20;

/// After so many reads the connection lets others of its shard have a turn.
const READS_PER_TURN: usize = 16;
/// A client that waits for an answer is let go after so long, whatever it asked to wait.
const OWED_MS_MAX: i64 = 3_600_000;

/// Why a connection ended, when it was not the peer's plain close.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] frame::FrameError),
    #[error("{0}")]
    Request(String),
    #[error("nothing was read or written for connections.max.idle.ms")]
    Idle,
}

enum Slot {
    Ready(Reply),
    /// Answered when the records are as durable as its acks ask.
    Acks(Box<PendingProduce>),
    /// The request at work; always the last.
    Running,
}

struct Connection {
    conn: Box<dyn Conn>,
    info: Arc<ConnInfo>,
    node: Arc<Node>,
    input: ReadBuffer,
    slots: VecDeque<Slot>,
    running: Option<BoxFuture<Answer>>,
    /// Bytes of answers that wait in `slots` for the ones before them.
    held_bytes: usize,
    out: Out,
    /// No more requests; close when everything is answered.
    ending: bool,
    active_ms: i64,
    timer: Option<(i64, BoxFuture<()>)>,
    /// Bytes charged to the process budget for a large frame.
    charged: usize,
}

/// Serves one connection until it ends.
///
/// # Errors
/// Why it was closed, unless the peer closed it between two requests.
pub async fn serve(
    conn: Box<dyn Conn>,
    info: Arc<ConnInfo>,
    node: Arc<Node>,
) -> Result<(), Closed> {
    let active_ms = node.env.clock.mono_ms();
    let mut connection = Connection {
        conn,
        info,
        node,
        input: ReadBuffer::default(),
        slots: VecDeque::new(),
        running: None,
        held_bytes: 0,
        out: Out::default(),
        ending: false,
        active_ms,
        timer: None,
        charged: 0,
    };
    poll_fn(|cx| connection.poll(cx)).await
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.node.budget.release(self.charged);
    }
}

impl Connection {
    /// Does all that can be done now.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let mut reads = 0;
        loop {
            let mut moved = self.poll_running(cx)?;
            moved |= self.start_requests(cx)?;
            moved |= self.release_answers();
            let queued_bytes = self.out.queued_bytes();
            let flushed = match self.out.poll_flush(&*self.conn, cx) {
                Poll::Ready(result) => {
                    result?;
                    true
                }
                Poll::Pending => false,
            };
            if self.out.queued_bytes() < queued_bytes {
                self.active_ms = self.node.env.clock.mono_ms();
            }
            if self.ending && self.slots.is_empty() {
                return if flushed { Poll::Ready(Ok(())) } else { self.poll_timer(cx) };
            }
            if reads >= READS_PER_TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.poll_read(cx)? {
                reads += 1;
            } else if !moved {
                return self.poll_timer(cx);
            }
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> Result<bool, Closed> {
        let Some(running) = &mut self.running else {
            return Ok(false);
        };
        let Poll::Ready(answer) = running.as_mut().poll(cx) else {
            return Ok(false);
        };
        self.running = None;
        let last = self.slots.pop_back();
        assert!(matches!(last, Some(Slot::Running)), "the request at work is the last");
        self.take_answer(answer)?;
        Ok(true)
    }

    fn take_answer(&mut self, answer: Answer) -> Result<(), Closed> {
        match answer {
            Answer::Reply(reply) => {
                self.held_bytes += reply.bytes.len();
                self.slots.push_back(Slot::Ready(reply));
            }
            Answer::Silence => {}
            Answer::Close(reason) => {
                if self.slots.is_empty() && self.out.is_empty() {
                    return Err(Closed::Request(reason));
                }
                tracing::debug!(peer = %self.info.peer, reason, "connection closes");
                self.ending = true;
            }
        }
        Ok(())
    }

    fn may_start(&self) -> bool {
        !self.ending
            && self.running.is_none()
            && self.slots.len() < REQUESTS_IN_FLIGHT_MAX
            && self.out.queued_bytes() + self.held_bytes < QUEUED_BYTES_MAX
    }

    /// Starts every complete frame of the buffer that may start.
    fn start_requests(&mut self, cx: &mut Context<'_>) -> Result<bool, Closed> {
        let mut moved = false;
        let _drain = Drain::begin();
        while self.may_start() {
            let max = self.node.request_bytes_max();
            let filled = self.input.filled();
            let Some(len) = frame::split(filled, max)? else { break };
            let frame = &mut filled[4..4 + len];
            let started = apis::start(&self.node, &self.info, frame, cx.waker());
            self.input.consume(4 + len);
            moved = true;
            match started {
                Started::Done(answer) => self.take_answer(answer)?,
                Started::Acks(pending) => self.slots.push_back(Slot::Acks(pending)),
                Started::Running(future) => {
                    self.running = Some(future);
                    self.slots.push_back(Slot::Running);
                    self.poll_running(cx)?;
                }
            }
        }
        if moved {
            self.active_ms = self.node.env.clock.mono_ms();
        }
        Ok(moved)
    }

    /// Moves finished answers from the front of the line to the output.
    fn release_answers(&mut self) -> bool {
        let mut moved = false;
        while let Some(slot) = self.slots.front_mut() {
            let reply = match slot {
                Slot::Running => break,
                Slot::Ready(reply) => {
                    self.held_bytes -= reply.bytes.len();
                    std::mem::take(reply)
                }
                Slot::Acks(pending) => {
                    let now_ms = self.node.env.clock.mono_ms();
                    match pending.try_finish(now_ms) {
                        Some(reply) => reply,
                        None => break,
                    }
                }
            };
            self.slots.pop_front();
            self.out.push(reply);
            moved = true;
        }
        if moved {
            self.active_ms = self.node.env.clock.mono_ms();
        }
        moved
    }

    /// Reads once, if there is something to do with more bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<bool, Closed> {
        if !self.may_start() {
            if self.running.is_some() {
                // A Fetch may wait for minutes, and there are as many as consumers.
                self.let_go();
            }
            return Ok(false);
        }
        let pending = self.pending_frame()?;
        if pending.is_some_and(|frame| frame <= self.input.filled_len()) {
            // It waited for a place, and there is one now: it is started before anything is read.
            return Ok(true);
        }
        if let Some(frame) = pending
            && !self.charge(frame, cx)
        {
            return Ok(false);
        }
        match self.conn.poll_readable(cx) {
            Poll::Pending => {
                self.let_go();
                return Ok(false);
            }
            Poll::Ready(ready) => ready?,
        }
        match self.conn.try_read(self.input.room(pending)) {
            Ok(0) => {
                if self.slots.is_empty() && self.input.filled_len() > 0 {
                    return Err(Closed::Request(
                        "the peer closed in the middle of a request".into(),
                    ));
                }
                self.ending = true;
                Ok(true)
            }
            Ok(len) => {
                self.input.grow(len);
                self.active_ms = self.node.env.clock.mono_ms();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Poll again so that the waker is registered for the next readiness.
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Nothing to read now: who only waits owns no buffer, who began a request a small one.
    fn let_go(&mut self) {
        self.input.settle();
        if self.input.capacity() <= READ_BYTES {
            self.node.budget.release(std::mem::take(&mut self.charged));
        }
    }

    /// The whole length of the frame that the buffer begins, prefix included, if it is known.
    fn pending_frame(&mut self) -> Result<Option<usize>, Closed> {
        let max = self.node.request_bytes_max();
        let filled = self.input.filled();
        let Some(len) = frame::announced(filled, max)? else {
            return Ok(None);
        };
        apis::check_size(filled, len).map_err(Closed::Request)?;
        Ok(Some(4 + len))
    }

    /// Charges a frame that needs a buffer of its own to the process; false while it must wait.
    fn charge(&mut self, frame: usize, cx: &mut Context<'_>) -> bool {
        if frame <= READ_BYTES || self.charged >= frame {
            return true;
        }
        // Nobody waits while it holds what another one waits for.
        if self.charged > 0 && self.input.shrink() {
            self.node.budget.release(std::mem::take(&mut self.charged));
        }
        let more = frame - self.charged;
        if !self.node.budget.try_charge(more, cx.waker()) {
            return false;
        }
        self.charged = frame;
        true
    }

    /// Who waits for an answer is not idle. What answers take has bounds of its own, but for the
    /// wait of a Fetch, which the client chooses.
    fn idle_ms_max(&self) -> i64 {
        let idle_ms = self.node.idle_ms_max();
        if self.slots.is_empty() { idle_ms } else { idle_ms.max(OWED_MS_MAX) }
    }

    /// Waits for the next deadline: an acknowledgement that times out, or idleness.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        loop {
            let now_ms = self.node.env.clock.mono_ms();
            let idle_ms = self.active_ms + self.idle_ms_max();
            if now_ms >= idle_ms {
                return Poll::Ready(Err(Closed::Idle));
            }
            let acks_ms = self.slots.front().and_then(|slot| match slot {
                Slot::Acks(pending) => Some(pending.deadline_ms()),
                Slot::Ready(_) | Slot::Running => None,
            });
            let due_ms = acks_ms.map_or(idle_ms, |acks| acks.min(idle_ms));
            if self.timer.as_ref().is_none_or(|(at, _)| *at > due_ms) {
                self.timer = Some((due_ms, self.node.env.clock.sleep_until(due_ms)));
            }
            let Some((at, timer)) = &mut self.timer else {
                return Poll::Pending;
            };
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let acks_due = acks_ms.is_some_and(|acks| acks <= *at);
            self.timer = None;
            if acks_due {
                // The answer of a timed out acknowledgement leaves in the next round.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}
