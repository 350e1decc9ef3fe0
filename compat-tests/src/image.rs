//! A small ext4 file system in a file: it can lose its power, and it can run full.
//!
//! Needs root and loop devices. Where they are missing, `Image::new` says why, and the test prints
//! that it did not run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::ioctl;

/// EXT4_IOC_SHUTDOWN, `_IOR('X', 125, __u32)`: the same number as XFS_IOC_GOINGDOWN.
const SHUTDOWN: ioctl::Opcode = ioctl::opcode::read::<u32>(b'X', 125);

/// EXT4_GOING_FLAGS_NOLOGFLUSH: nothing more reaches the disk, not even the journal in memory.
const NO_LOG_FLUSH: u32 = 2;

/// A mounted image; unmounted and removed when dropped.
pub struct Image {
    home: tempfile::TempDir,
    mounted: bool,
}

impl Image {
    /// A new file system of `mib` MiB, or why there is none.
    pub fn new(mib: u64) -> Result<Image, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        let home = tempfile::Builder::new().prefix("gracchus-image-").tempdir();
        let home = home.map_err(|error| error.to_string())?;
        let mut image = Image { home, mounted: false };
        let file = File::create(image.file()).map_err(|error| error.to_string())?;
        file.set_len(mib << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(image.dir()).map_err(|error| error.to_string())?;
        let path = image.file().display().to_string();
        run("mkfs.ext4", &["-q", "-m", "0", "-E", "lazy_itable_init=0", &path])?;
        image.mount()?;
        Ok(image)
    }

    /// Where it is mounted.
    pub fn dir(&self) -> PathBuf {
        self.home.path().join("mnt")
    }

    /// Pulls the plug: what was not synced is gone, and nothing can be written until `restore`.
    pub fn cut_power(&self) -> Result<(), String> {
        let root = File::open(self.dir()).map_err(|error| error.to_string())?;
        // SAFETY: the opcode takes a pointer to a u32 and reads it.
        let done =
            unsafe { ioctl::ioctl(&root, ioctl::Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH)) };
        done.map_err(|error| format!("the shutdown ioctl: {error}"))
    }

    /// Mounts again after a cut; nobody may have a file open in it.
    pub fn restore(&mut self) -> Result<(), String> {
        self.unmount()?;
        self.mount()
    }

    fn mount(&mut self) -> Result<(), String> {
        let (file, dir) = (self.file().display().to_string(), self.dir().display().to_string());
        run("mount", &["-t", "ext4", "-o", "loop", &file, &dir])?;
        self.mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match run("umount", &[&self.dir().display().to_string()]) {
                Ok(()) => break,
                // A killed process may hold its files for a moment more.
                Err(_) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20))
                }
                Err(error) => return Err(error),
            }
        }
        self.mounted = false;
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("image")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.mounted
            && let Err(error) = self.unmount()
        {
            eprintln!("{} stays mounted: {error}", self.dir().display());
        }
    }
}

/// Bytes that may still be written to the file system of `path`.
pub fn free_bytes(path: &Path) -> u64 {
    let stat = rustix::fs::statvfs(path).expect("statvfs");
    stat.f_bavail * stat.f_frsize
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    // Debian keeps these out of an ordinary user's path.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
