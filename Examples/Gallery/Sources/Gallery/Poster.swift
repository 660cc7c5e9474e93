import CPictures
import FoundationEssentials
import TieredCacheImages

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A decoded picture: three bytes a pixel.
final class Poster: Sendable {
    // Never changed once it is here.
    private nonisolated(unsafe) let bitmap: Bitmap

    var width: Int { Int(bitmap.width) }
    var height: Int { Int(bitmap.height) }

    init(_ bitmap: Bitmap) {
        self.bitmap = bitmap
    }

    deinit { free(bitmap.pixels) }

    /// The bytes of a row.
    func row(_ number: Int) -> UnsafeRawBufferPointer {
        let start = bitmap.pixels.map { $0 + number * width * 3 }
        return UnsafeRawBufferPointer(start: start, count: width * 3)
    }
}

/// JPEG and PNG, by libjpeg-turbo and libpng.
struct PosterDecoder: ImageDecoding {
    struct NoPicture: Error {}

    func picture(of bytes: Data, size: ImageSize?) throws -> Poster {
        try bytes.withUnsafeBytes { buffer in
            guard let start = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                throw NoPicture()
            }
            var (width, height): (Int32, Int32) = (0, 0)
            guard bitmap_measure(start, buffer.count, &width, &height) == 0 else {
                throw NoPicture()
            }
            if let scaled = size?.scaled(width: Int(width), height: Int(height)) {
                (width, height) = (Int32(scaled.width), Int32(scaled.height))
            }
            var bitmap = Bitmap()
            guard bitmap_decode(start, buffer.count, width, height, &bitmap) == 0 else {
                throw NoPicture()
            }
            return Poster(bitmap)
        }
    }

    func cost(of picture: Poster) -> Int { picture.width * picture.height * 3 }
}
