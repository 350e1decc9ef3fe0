//! The codecs of record batches, and their framings as Kafka's clients write them.
//!
//! Which codec a batch bears is in its header; what is inside is not known here.

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
    /// The codec with this number in the attributes; 5 to 7 are unknown.
    pub fn from_number(number: u8) -> Option<Codec> {
        Some(match number {
            0 => Codec::None,
            1 => Codec::Gzip,
            2 => Codec::Snappy,
            3 => Codec::Lz4,
            4 => Codec::Zstd,
            _ => return None,
        })
    }

    /// The number in the attributes of a batch.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The name in configurations; `none` for no compression.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

/// Why bytes could not be inflated or deflated.
#[derive(Debug, thiserror::Error)]
pub enum CompressionError {
    /// The output would exceed the limit given; inflating stopped there.
    #[error("inflates to more than {limit} bytes")]
    TooLarge { limit: usize },
    /// The bytes are no frame of this codec, or a damaged one.
    #[error("{0} data is damaged")]
    Damaged(&'static str),
}
