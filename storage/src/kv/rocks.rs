//! `Kv` on RocksDB, in a profile for small state: fast to open, few threads, a few MiB at most.
//!
//! Owns the options and the mapping of errors. The store is one keyspace in one directory; callers
//! keep apart by key prefixes. Calls block, so they belong on a thread of their own.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, Error, ErrorKind, IteratorMode,
    LogLevel, Options, ReadOptions, WriteBatch, WriteOptions,
};

use super::{Kv, KvBatch, KvError, KvOp, Pairs};

const MIB: usize = 1 << 20;
/// Two write buffers of this size at most; metadata is small and a flush is cheap.
const WRITE_BUFFER_BYTES: usize = 4 * MIB;
/// Data, index and filter blocks together.
const BLOCK_CACHE_BYTES: usize = 2 * MIB;
/// Written log after which RocksDB flushes and drops it: bounds the replay at start.
const WAL_BYTES_MAX: u64 = 16 << 20;
const OPEN_FILES_MAX: i32 = 64;

/// A RocksDB directory. Dropping it closes the store; that must happen before the process exits.
pub struct RocksKv {
    db: DB,
}

impl RocksKv {
    /// Opens or creates the store in `path`. About 10 ms when the last stop was clean.
    ///
    /// After a power cut the write-ahead log is replayed to its first damaged record, which is
    /// where unsynced writes end.
    ///
    /// # Errors
    /// `Io` when the directory cannot be used or another process has it open, `Corrupt` when the
    /// store's checks fail.
    pub fn open(path: &Path) -> Result<RocksKv, KvError> {
        let db = DB::open(&tiny_profile(), path).map_err(of_rocks)?;
        Ok(RocksKv { db })
    }
}

fn tiny_profile() -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE_BYTES));
    blocks.set_cache_index_and_filter_blocks(true);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_max_write_buffer_number(2);
    options.set_db_write_buffer_size(2 * WRITE_BUFFER_BYTES);
    options.set_max_total_wal_size(WAL_BYTES_MAX);
    options.set_compression_type(DBCompressionType::None);
    options.set_max_open_files(OPEN_FILES_MAX);
    options.set_max_background_jobs(2);
    // Opening starts this many threads, whether or not there are files for them.
    options.set_max_file_opening_threads(1);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(MIB);
    options.set_log_level(LogLevel::Warn);
    // No periodic statistics: they cost a thread's wake-ups and log lines that nobody reads.
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_skip_stats_update_on_db_open(true);
    options
}

impl Kv for RocksKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.db.get(key).map_err(of_rocks)
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Pairs, KvError> {
        if from >= to {
            return Ok(Pairs::new());
        }
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to);
        let mode = IteratorMode::From(from, Direction::Forward);
        let mut pairs = Pairs::new();
        for pair in self.db.iterator_opt(mode, options).take(limit) {
            let (key, value) = pair.map_err(of_rocks)?;
            pairs.push((key.into_vec(), value.into_vec()));
        }
        Ok(pairs)
    }

    fn write(&mut self, batch: KvBatch, sync: bool) -> Result<(), KvError> {
        let mut writes = WriteBatch::default();
        for op in &batch.ops {
            match op {
                KvOp::Put { key, value } => writes.put(key, value),
                KvOp::Delete { key } => writes.delete(key),
                KvOp::DeleteRange { from, to } if from < to => writes.delete_range(from, to),
                KvOp::DeleteRange { .. } => {}
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.db.write_opt(writes, &options).map_err(of_rocks)
    }
}

fn of_rocks(error: Error) -> KvError {
    match error.kind() {
        ErrorKind::Corruption => KvError::Corrupt(error.into_string()),
        _ => KvError::Io(error.into_string()),
    }
}
