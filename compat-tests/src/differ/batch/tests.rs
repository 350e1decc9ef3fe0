//! What is built reads back, with every codec, and forged fields show.

use super::*;

#[test]
fn every_codec_reads_back() {
    let want = json!(["0 +0ms \"k1\"=\"one\"", "1 +0ms \"k2\"=\"two\"", "2 +0ms null=\"three\"",]);
    for (name, codec) in CODECS {
        let read = parse(&batch(&three()).codec(codec).bytes());
        assert_eq!(read[0]["records"], want, "{name}");
        assert_eq!(read[0]["attributes"], json!(codec));
        assert_eq!(read[0]["crcHolds"], json!(true));
    }
    let raw = batch(&three()).codec(2).forge(|batch| batch.unframed = true);
    assert_eq!(parse(&raw.bytes())[0]["records"], want);
}

#[test]
fn forged_fields_show() {
    let forged = values(&["a"]).forge(|batch| {
        batch.crc = Some(1);
        batch.count = Some(9);
        batch.producer = Some((-1, 2, 3));
    });
    let mut bytes = forged.bytes();
    bytes.extend([0; 5]);
    let read = parse(&bytes);
    assert_eq!(read[0]["crcHolds"], json!(false));
    assert_eq!(read[0]["count"], json!(9));
    assert_eq!(read[0]["sequence"], json!(3));
    assert_eq!(read[1], json!({"cutShortAfter": 5}));
}
