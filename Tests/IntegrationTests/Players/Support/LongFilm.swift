import Testing
import TieredCacheTesting

/// A film whose media data is followed by nothing of use, so that its index lies far behind.
struct LongFilm {
    let body: OriginResource.Body

    /// Pads the `mdat` box of a film that ffmpeg has written: `ftyp`, `free`, `mdat`, `moov`.
    init(_ film: [UInt8], padding: Int64) throws {
        let ftyp = Self.size(film, at: 0)
        let free = Self.size(film, at: ftyp)
        let start = ftyp + free
        try #require(free == 8 && Self.type(film, at: ftyp) == "free")
        try #require(Self.type(film, at: start) == "mdat")
        let end = start + Self.size(film, at: start)
        var result = Array(film[..<ftyp])
        // The 8 bytes of `free` make room for a size of 64 bits.
        let size = UInt64(end - start + 8) + UInt64(padding)
        result += [0, 0, 0, 1] + Array("mdat".utf8)
        result += (0..<8).reversed().map { UInt8(truncatingIfNeeded: size >> (8 * UInt64($0))) }
        result += film[(start + 8)..<end]
        body = .padded(result, zeros: padding, Array(film[end...]))
    }

    private static func size(_ film: [UInt8], at offset: Int) -> Int {
        film[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    private static func type(_ film: [UInt8], at offset: Int) -> String {
        String(decoding: film[(offset + 4)..<(offset + 8)], as: UTF8.self)
    }
}
