//! A log directory: one entry of `log.dirs`, held by one process, with its identity and its
//! partition directories.
//!
//! Owns `.lock`, `meta.properties`, `.kafka_cleanshutdown` and the meaning of directory names. What
//! is inside a partition directory is `log/`'s; deleting what is listed for it is the
//! housekeeper's. Source: `LogManager`, `MetaPropertiesEnsemble`, `CleanShutdownFileHandler`,
//! `UnifiedLog` (names).

pub mod meta;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol_compat::ids::{TopicPartition, valid_topic_name};
use thiserror::Error;
use uuid::Uuid;

use crate::disk::{Disk, OpenMode, create_dirs, read_to_vec, write_atomic};
use meta::{FORMAT_VERSION, MetaProblem, MetaProperties, usable_directory_id};

pub const LOCK_FILE: &str = ".lock";
pub const META_FILE: &str = "meta.properties";
pub const CLEAN_STOP_FILE: &str = ".kafka_cleanshutdown";
/// Written and removed at open to learn that the directory takes files.
const PROBE_FILE: &str = ".probe.tmp";
/// Left by a process that saw a sync fail: what it wrote may be in the page cache alone, and count
/// as clean there, so that no later sync writes it. It need not be durable: a loss of power empties
/// the page cache, too.
pub const SYNC_FAILED_FILE: &str = "gracchus-sync-failed";

/// Neither file has a reason to be longer.
const SMALL_FILE_BYTES_MAX: usize = 64 << 10;

/// Why a log directory cannot be used. The text is for the operator and names the directory.
#[derive(Debug, Error)]
pub enum DirError {
    #[error("log directory {} cannot be used: {what}: {source}", dir.display())]
    Unusable { dir: PathBuf, what: &'static str, source: io::Error },
    #[error(
        "log directory {} is in use: another Gracchus or Apache Kafka process holds its lock file; \
         stop that process or give this one another log.dirs",
        dir.display()
    )]
    Locked { dir: PathBuf },
    #[error("{} is damaged: {reason}", file.display())]
    Malformed { file: PathBuf, reason: String },
    #[error(
        "{}: {key} is {found}, this version of Gracchus knows {known}; \
         the directory was used by a newer version",
        file.display()
    )]
    TooNew { file: PathBuf, key: &'static str, found: String, known: u32 },
    #[error(
        "log directory {} belongs to cluster {found}, this node to cluster {expected}; \
         use another directory, or remove this one if its data is not needed",
        dir.display()
    )]
    WrongCluster { dir: PathBuf, found: String, expected: String },
    #[error(
        "log directory {} belongs to node {found}, this is node {expected} (node.id)",
        dir.display()
    )]
    WrongNode { dir: PathBuf, found: i32, expected: i32 },
}

/// Whose directory it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// `None`: take the directory's; a new directory then has none until
    /// [`LogDir::set_cluster_id`].
    pub cluster_id: Option<String>,
    pub node_id: i32,
    /// The id that a directory without one gets: fresh and random.
    pub new_directory_id: Uuid,
}

/// What the marker of a clean stop said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanStop {
    /// The broker epoch of the run that ended (KIP-966), where the marker held one.
    pub broker_epoch: Option<i64>,
}

/// The directories in a log directory, each list in name order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// `topic-N`.
    pub partitions: Vec<PartitionDir>,
    /// `*-delete`: to be removed in the background.
    pub deleted: Vec<PathBuf>,
    /// `*-stray`: no longer assigned when Kafka last looked. Left alone.
    pub stray: Vec<PathBuf>,
    /// `*-future`: moves between directories that did not end. Left alone.
    pub future: Vec<PathBuf>,
    /// Directories of other names. Left alone.
    pub other: Vec<PathBuf>,
}

/// One partition's directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PartitionDir {
    pub tp: TopicPartition,
    pub path: PathBuf,
}

/// A log directory that this process holds until the value is dropped.
pub struct LogDir {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    meta: MetaProperties,
    directory_id: Uuid,
    clean_stop: Option<CleanStop>,
    sync_failed: bool,
    _lock: Box<dyn Send + Sync>,
}

/// A log directory that is held and fits its owner; not written to yet.
pub struct Claim {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    owner: Owner,
    /// Where the directory's own name, and those above it, are new.
    grown: Vec<PathBuf>,
    found: Option<MetaProperties>,
    lock: Box<dyn Send + Sync>,
}

impl Claim {
    /// Makes the directory's names durable, completes its identity, reads and removes the marker of
    /// a clean stop.
    pub fn settle(self) -> Result<LogDir, DirError> {
        let Claim { disk, path, owner, grown, found, lock } = self;
        let at = |what| {
            let dir = path.clone();
            move |source| DirError::Unusable { dir, what, source }
        };
        grown.iter().try_for_each(|dir| disk.sync_dir(dir)).map_err(at("cannot create it"))?;
        let (meta, directory_id) = take_identity(&*disk, &path, found.as_ref(), &owner)?;
        let clean_stop = take_clean_stop(&*disk, &path).map_err(at("clean-stop marker"))?;
        let sync_failed = disk.stat(&path.join(SYNC_FAILED_FILE)).map_err(at("cannot read it"))?;
        let sync_failed = sync_failed.is_some();
        Ok(LogDir { disk, path, meta, directory_id, clean_stop, sync_failed, _lock: lock })
    }
}

impl LogDir {
    /// Takes a log directory: [`LogDir::claim`] and [`Claim::settle`] in one.
    pub fn open(disk: Arc<dyn Disk>, path: &Path, owner: &Owner) -> Result<LogDir, DirError> {
        LogDir::claim(disk, path, owner)?.settle()
    }

    /// Creates a log directory when absent, locks it, checks its identity. A refused directory is
    /// left as it was found.
    pub fn claim(disk: Arc<dyn Disk>, path: &Path, owner: &Owner) -> Result<Claim, DirError> {
        assert!(usable_directory_id(owner.new_directory_id), "a reserved directory id");
        let at = |what| move |source| DirError::Unusable { dir: path.to_owned(), what, source };
        let grown = create_dirs(&*disk, path).map_err(at("cannot create it"))?;
        let lock = match disk.lock(&path.join(LOCK_FILE)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(DirError::Locked { dir: path.to_owned() });
            }
            Err(source) => return Err(at("cannot take its lock file")(source)),
        };
        probe(&*disk, path).map_err(at("cannot write to it"))?;
        let found = check_identity(&*disk, path, owner)?;
        Ok(Claim { disk, path: path.to_owned(), owner: owner.clone(), grown, found, lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub fn directory_id(&self) -> Uuid {
        self.directory_id
    }

    pub fn cluster_id(&self) -> Option<&str> {
        self.meta.cluster_id.as_deref()
    }

    pub fn node_id(&self) -> i32 {
        self.meta.node_id
    }

    /// The marker found at open; `None` after a crash or in a new directory.
    pub fn clean_stop(&self) -> Option<CleanStop> {
        self.clean_stop
    }

    /// Whether a sync failed since the last clean stop: what is not known to be durable has to be
    /// written again.
    pub fn sync_failed(&self) -> bool {
        self.sync_failed
    }

    /// Where a partition's directory is, or would be.
    pub fn partition_path(&self, tp: &TopicPartition) -> PathBuf {
        self.path.join(tp.to_string())
    }

    /// Writes down the cluster that the node has joined.
    ///
    /// # Errors
    /// `WrongCluster` when the directory already belongs to another.
    pub fn set_cluster_id(&mut self, cluster_id: &str) -> Result<(), DirError> {
        check_cluster(&self.path, self.cluster_id(), Some(cluster_id))?;
        if self.meta.cluster_id.is_none() {
            self.meta.cluster_id = Some(cluster_id.to_owned());
            write_meta(&*self.disk, &self.path, &self.meta)?;
        }
        Ok(())
    }

    /// What lies in the directory.
    pub fn list(&self) -> Result<Listing, DirError> {
        let fail =
            |source| DirError::Unusable { dir: self.path.clone(), what: "cannot list it", source };
        let mut listing = Listing::default();
        for entry in self.disk.list(&self.path).map_err(fail)? {
            if !entry.is_dir {
                continue;
            }
            let path = self.path.join(&entry.name);
            match kind_of(&entry.name) {
                Kind::Partition(tp) => listing.partitions.push(PartitionDir { tp, path }),
                Kind::Deleted => listing.deleted.push(path),
                Kind::Stray => listing.stray.push(path),
                Kind::Future => listing.future.push(path),
                Kind::Other => listing.other.push(path),
            }
        }
        Ok(listing)
    }

    /// Leaves the marker of a clean stop, after everything in the directory was closed and synced.
    /// Dropping the value without it is an unclean stop.
    pub fn leave_marker(&self, broker_epoch: i64) -> Result<(), DirError> {
        let fail = |source| DirError::Unusable {
            dir: self.path.clone(),
            what: "cannot write the clean-stop marker",
            source,
        };
        match self.disk.remove_file(&self.path.join(SYNC_FAILED_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let text = format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}");
        write_atomic(&*self.disk, &self.path.join(CLEAN_STOP_FILE), text.as_bytes()).map_err(fail)
    }

    /// Ends the hold: the marker, then the lock is free.
    pub fn close(self, broker_epoch: i64) -> Result<(), DirError> {
        self.leave_marker(broker_epoch)
    }
}

/// Tells the next process that a sync failed in this log directory.
///
/// # Errors
/// The disk's; then a loss of power may take records away that the next process shows.
pub fn note_failed_sync(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    disk.open(&dir.join(SYNC_FAILED_FILE), OpenMode::Create).map(drop)
}

/// Writes and removes a file, so that a read-only directory is found at start and not at the first
/// new segment.
fn probe(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let path = dir.join(PROBE_FILE);
    disk.open(&path, OpenMode::Create)?;
    disk.remove_file(&path)
}

/// The directory's identity, checked; `None` when it has none yet.
fn check_identity(
    disk: &dyn Disk,
    dir: &Path,
    owner: &Owner,
) -> Result<Option<MetaProperties>, DirError> {
    let found = read_meta(disk, dir)?;
    if let Some(found) = &found {
        check_cluster(dir, found.cluster_id.as_deref(), owner.cluster_id.as_deref())?;
        if found.node_id != owner.node_id {
            let (found, expected) = (found.node_id, owner.node_id);
            return Err(DirError::WrongNode { dir: dir.to_owned(), found, expected });
        }
    }
    Ok(found)
}

/// The identity, completed and written where something was missing.
fn take_identity(
    disk: &dyn Disk,
    dir: &Path,
    old: Option<&MetaProperties>,
    owner: &Owner,
) -> Result<(MetaProperties, Uuid), DirError> {
    let directory_id = old.and_then(|old| old.directory_id).unwrap_or(owner.new_directory_id);
    let meta = MetaProperties {
        cluster_id: old.and_then(|old| old.cluster_id.clone()).or(owner.cluster_id.clone()),
        node_id: owner.node_id,
        directory_id: Some(directory_id),
        format_version: Some(FORMAT_VERSION),
        others: old.map(|old| old.others.clone()).unwrap_or_default(),
    };
    if old != Some(&meta) {
        write_meta(disk, dir, &meta)?;
    }
    Ok((meta, directory_id))
}

fn check_cluster(dir: &Path, found: Option<&str>, wanted: Option<&str>) -> Result<(), DirError> {
    match (found, wanted) {
        (Some(found), Some(expected)) if found != expected => Err(DirError::WrongCluster {
            dir: dir.to_owned(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The identity in a directory that nobody needs to hold; `None` when it has none yet.
pub fn read_meta(disk: &dyn Disk, dir: &Path) -> Result<Option<MetaProperties>, DirError> {
    let file = dir.join(META_FILE);
    let bytes = match read_to_vec(disk, &file, SMALL_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(DirError::Malformed { file, reason: error.to_string() });
        }
        Err(source) => {
            let what = "cannot read meta.properties";
            return Err(DirError::Unusable { dir: dir.to_owned(), what, source });
        }
    };
    match MetaProperties::parse(&String::from_utf8_lossy(&bytes)) {
        Ok(meta) => Ok(Some(meta)),
        Err(MetaProblem::Malformed(reason)) => Err(DirError::Malformed { file, reason }),
        Err(MetaProblem::TooNew { key, found, known }) => {
            Err(DirError::TooNew { file, key, found, known })
        }
    }
}

fn write_meta(disk: &dyn Disk, dir: &Path, meta: &MetaProperties) -> Result<(), DirError> {
    let what = "cannot write meta.properties";
    write_atomic(disk, &dir.join(META_FILE), meta.print().as_bytes())
        .map_err(|source| DirError::Unusable { dir: dir.to_owned(), what, source })
}

/// Reads the marker and removes it for good: a crash from now on is an unclean stop.
fn take_clean_stop(disk: &dyn Disk, dir: &Path) -> io::Result<Option<CleanStop>> {
    let path = dir.join(CLEAN_STOP_FILE);
    let bytes = match read_to_vec(disk, &path, SMALL_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Its presence is the message; older Kafkas left it empty.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(error) => return Err(error),
    };
    let broker_epoch = parse_broker_epoch(&String::from_utf8_lossy(&bytes));
    disk.remove_file(&path)?;
    disk.sync_dir(dir)?;
    Ok(Some(CleanStop { broker_epoch }))
}

/// The number after `"brokerEpoch":` in a marker of version 0.
fn parse_broker_epoch(text: &str) -> Option<i64> {
    let number = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\""))?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        let end = rest.find([',', '}', ' ', '\n']).unwrap_or(rest.len());
        rest.get(..end)?.parse::<i64>().ok()
    };
    number("brokerEpoch").filter(|epoch| *epoch >= 0 && number("version") == Some(0))
}

enum Kind {
    Partition(TopicPartition),
    Deleted,
    Stray,
    Future,
    Other,
}

fn kind_of(name: &str) -> Kind {
    // `<topic>-<partition>.<unique id>-<suffix>`; the topic may be cut to make the name fit.
    if let Some((head, suffix)) = name.rsplit_once('-')
        && head.contains('.')
    {
        match suffix {
            "delete" => return Kind::Deleted,
            "stray" => return Kind::Stray,
            "future" => return Kind::Future,
            _ => {}
        }
    }
    parse_partition_name(name).map_or(Kind::Other, Kind::Partition)
}

/// `topic-3` as the partition it names. Exact: `topic-03` or `topic-+3` name none. Kafka's metadata
/// log, which is not a partition of ours, names none either.
pub fn parse_partition_name(name: &str) -> Option<TopicPartition> {
    let (topic, digits) = name.rsplit_once('-')?;
    let partition: i32 = digits.parse().ok()?;
    if partition.to_string() != digits || partition < 0 {
        return None;
    }
    if valid_topic_name(topic).is_err() || topic == "__cluster_metadata" {
        return None;
    }
    Some(TopicPartition::new(topic, partition))
}

#[cfg(test)]
mod tests;
