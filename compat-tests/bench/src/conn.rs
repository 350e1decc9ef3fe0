//! One connection: frames out, frames in, blocking.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::wire::{self, FetchLimits, Reader};

/// No answer takes longer, or the run is over.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Conn {
    pub fn open(address: &str) -> Result<Conn> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Conn { stream, buffer: Vec::new() })
    }

    /// A second handle of the same connection, for a thread that only reads.
    pub fn reader(&self) -> Result<Conn> {
        Ok(Conn { stream: self.stream.try_clone()?, buffer: Vec::new() })
    }

    pub fn send(&mut self, frame: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(frame)?)
    }

    /// The next response: its correlation id, and its body.
    pub fn receive(&mut self) -> Result<(i32, &[u8])> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        self.stream.read_exact(&mut self.buffer[..length])?;
        let mut reader = Reader(&self.buffer[..length]);
        Ok((reader.i32()?, reader.0))
    }

    pub fn call(&mut self, frame: &[u8]) -> Result<&[u8]> {
        self.send(frame)?;
        Ok(self.receive()?.1)
    }

    /// Makes a topic, and waits until each of its partitions has a leader.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<()> {
        let mut body = Reader(self.call(&wire::create_topic(name, partitions, configs))?);
        body.i32()?;
        body.i32()?;
        body.string()?;
        let error = body.i16()?;
        ensure!(error == 0, "creating {name} failed with error {error}");
        let deadline = Instant::now() + PATIENCE;
        while self.led_partitions(name)? < partitions {
            ensure!(Instant::now() < deadline, "{name} has no leaders");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Kafka tells of leaders a moment before these know of it.
        let limits = FetchLimits { wait_ms: 1, bytes_min: 1, partition_bytes_max: 1 };
        let all: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
        let look = wire::fetch(0, name, &all, limits);
        while let Err(error) = wire::fetched(self.call(&look)?) {
            ensure!(Instant::now() < deadline, "{name} is not served: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub fn delete_topic(&mut self, name: &str) -> Result<()> {
        self.call(&wire::delete_topic(name))?;
        Ok(())
    }

    /// How many partitions of a topic have a leader; none when there is no such topic yet.
    pub fn led_partitions(&mut self, name: &str) -> Result<i32> {
        let mut body = Reader(self.call(&wire::metadata(name))?);
        body.i32()?;
        for _ in 0..body.i32()? {
            body.i32()?;
            body.string()?;
            body.i32()?;
            body.string()?;
        }
        body.string()?;
        body.i32()?;
        let mut led = 0;
        for _ in 0..body.i32()? {
            body.i16()?;
            body.string()?;
            body.i8()?;
            for _ in 0..body.i32()? {
                let error = body.i16()?;
                body.i32()?;
                led += i32::from(error == 0 && body.i32()? >= 0);
                if error != 0 {
                    body.i32()?;
                }
                body.i32()?;
                for _ in 0..3 {
                    let count = body.i32()?.max(0) as usize;
                    body.take(4 * count)?;
                }
            }
            body.i32()?;
        }
        Ok(led)
    }
}
