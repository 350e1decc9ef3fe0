//! The codecs of record batches, and their framings as Kafka's clients write them.
//!
//! `inflate` reads, piece by piece, with bounded memory; `deflate` writes what Kafka's own writer
//! would. Which codec a batch bears is in its header; what is inside is not known here.

mod deflate;
mod inflate;
mod lz4_frame;
mod xerial;

pub(crate) use deflate::Deflater;
pub(crate) use inflate::Inflater;

/// A codec of record batches; the number is the one in the batch attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

impl Codec {
    /// All codecs, by number.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    /// The codec with this number in the attributes; 5 to 7 are unknown.
    pub fn from_number(number: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(number)).copied()
    }

    /// The codec of this name, as [`Codec::name`] gives it.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// The number in the attributes of a batch.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Kafka's name; `none` for no compression (the topic configuration says `uncompressed`).
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    /// The level used where none is configured (Kafka `GzipCompression`, `Lz4Compression`,
    /// `ZstdCompression`); 0 for codecs without levels.
    pub fn default_level(self) -> i32 {
        match self {
            Codec::Gzip => -1,
            Codec::Lz4 => 9,
            Codec::Zstd => 3,
            Codec::None | Codec::Snappy => 0,
        }
    }

    /// `input` in this codec's framing. `level` is the one of Kafka's configuration for the codec
    /// (see [`Codec::default_level`]); one out of range is moved into it.
    pub fn compress(self, level: i32, input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        let mut deflater = Deflater::new(self, level, Vec::new(), usize::MAX)?;
        deflater.write(input)?;
        deflater.finish()
    }

    /// Inflates `input` into `out`, whose old content goes. At most `limit` bytes are produced:
    /// what would exceed it is refused as soon as it shows, before memory is taken for it.
    pub fn decompress(
        self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        out.clear();
        let mut inflater = Inflater::new(self, input, limit)?;
        while inflater.fill(out)? > 0 {}
        Ok(())
    }
}

impl std::fmt::Display for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why bytes could not be inflated or deflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The output would exceed the limit given; work stopped there.
    #[error("exceeds {limit} bytes")]
    TooLarge { limit: usize },
    /// The bytes are no frame of this codec, or a damaged one.
    #[error("damaged {0} data")]
    Damaged(Codec),
    /// The compressor refused to work; seen only when memory is short.
    #[error("{0} compressor failed")]
    Failed(Codec),
}

#[cfg(test)]
mod tests;
