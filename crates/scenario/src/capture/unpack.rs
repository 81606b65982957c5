//! Compressed files, known by their first bytes: gzip (RFC 1952) and Zstandard (RFC 8878). Several members or
//! frames in a row are one file.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// An empty raw block, the last one of its frame (RFC 8878, section 3.1.1.2), and the octets of a checksum.
const ZSTD_LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// After a first byte of which only the upper four bits are given (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// `file` as it was before it was compressed.
pub(super) fn unpack<'a>(file: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    // A pipe may hand over a byte at a time.
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head)?;
    let is_gzip = head.starts_with(&GZIP);
    let is_zstd = head == ZSTD || head.len() == 4 && head[0] & 0xf0 == 0x50 && head[1..] == ZSTD_SKIPPABLE;
    let whole = io::Cursor::new(head).chain(file);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else if is_zstd {
        Box::new(Zstd { source: whole, decoder: FrameDecoder::new(), in_frame: false, fault: None })
    } else {
        Box::new(whole)
    })
}

/// Frames one after another.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Why the file cannot be read on. What was decoded up to there comes first.
    fault: Option<(io::ErrorKind, String)>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if let Some((kind, fault)) = &self.fault {
                return Err(io::Error::new(*kind, fault.clone()));
            }
            if self.in_frame && !self.decoder.is_finished() {
                let one = || BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.source, one()) {
                    let is_end = self.source.fill_buf()?.is_empty();
                    let kind = if is_end { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::Other };
                    self.fault = Some((kind, error.to_string()));
                    // The decoder holds a window back, which may be the whole file, until a frame ends.
                    self.decoder.decode_blocks(&ZSTD_LAST_BLOCK[..], one()).map_err(io::Error::other)?;
                }
            } else if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.begin()?;
            }
        }
    }
}

impl<R: BufRead> Zstd<R> {
    /// Reads the header of a frame, or skips one without data.
    fn begin(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match self.decoder.reset(&mut self.source) {
            Ok(()) => {
                self.in_frame = true;
                Ok(())
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                let skipped = io::copy(&mut (&mut self.source).take(u64::from(length)), &mut io::sink())?;
                if skipped == u64::from(length) { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write as _;

    /// Hands over one byte at a time, as a slow pipe.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        unpack(Slow(bytes))?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_and_frames_in_a_row_are_one_file() {
        let (first, second) = ([7; 70_000], [9; 10]);
        let both = [&first[..], &second].concat();
        let zstd = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        assert_eq!(unpacked(&[gzip(&first), gzip(&second)].concat()).unwrap(), both);
        assert_eq!(unpacked(&[zstd(&first), skippable.clone(), zstd(&second)].concat()).unwrap(), both);
        assert_eq!(unpacked(&[skippable, zstd(&second)].concat()).unwrap(), second);
        assert_eq!(unpacked(&both).unwrap(), both, "neither");
        assert_eq!(unpacked(&[1, 2]).unwrap(), [1, 2], "short");
    }

    #[test]
    fn compressed_data_that_end_early_are_an_error_after_what_they_hold() {
        let bytes: Vec<u8> =
            (0..200_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for packed in [gzip(&bytes), compress_to_vec(&bytes[..], CompressionLevel::Fastest)] {
            let mut plain = Vec::new();
            let cut = &packed[..packed.len() / 2];
            assert!(unpack(cut).unwrap().read_to_end(&mut plain).is_err());
            assert!(plain.len() > bytes.len() / 4 && bytes.starts_with(&plain), "{}", plain.len());
        }
    }

    /// A frame of `blocks`, in a window of 8 MiB: 2^(10 + 13) bytes (RFC 8878, section 3.1.1.1.2).
    fn frame(checksum: bool, blocks: &[Vec<u8>]) -> Vec<u8> {
        let head = [&ZSTD[..], &[if checksum { 4 } else { 0 }, 13 << 3]].concat();
        [&[head], blocks].concat().concat()
    }

    /// A raw block that is not the last one.
    fn raw(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len() << 3).unwrap().to_le_bytes()[..3], bytes].concat()
    }

    #[test]
    fn the_window_of_a_frame_that_ends_early_is_read() {
        for checksum in [false, true] {
            let whole = [raw(&[7; 1_000]), raw(&[8; 1_000])];
            let told = |rest: Vec<u8>| {
                let packed = [frame(checksum, &whole), rest].concat();
                let mut file = unpack(Slow(&packed)).unwrap();
                let mut plain = Vec::new();
                let fault = file.read_to_end(&mut plain).unwrap_err();
                let again = file.read(&mut [0; 8]).unwrap_err();
                assert_eq!((again.kind(), again.to_string()), (fault.kind(), fault.to_string()), "the fault stays");
                (plain.len(), plain.last().copied(), fault.kind())
            };
            // Nothing, a part of the next block's head, a part of the block, and a block of the reserved type.
            for rest in [vec![], vec![0x40], raw(&[9; 1_000])[..500].to_vec()] {
                assert_eq!(told(rest.clone()), (2_000, Some(8), io::ErrorKind::UnexpectedEof), "{rest:?}");
            }
            assert_eq!(told(vec![6, 0, 0, 0]), (2_000, Some(8), io::ErrorKind::Other));
        }
    }
}
