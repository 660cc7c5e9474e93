/// Makes field values by spoiling good ones: bytes changed, cut out, doubled, and pieces of several
/// joined.
struct FieldMutator {
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    static let samples: [[UInt8]] = [
        "max-age=3600, s-maxage=\"10\", no-cache=\"a, b\", private, stale-if-error=5",
        "no-store,must-revalidate ,public, immutable;x, must-understand=1",
        "max-age=60, stale-while-revalidate=99999999999999999999, only-if-cached, min-fresh=0",
        "max-age=10, no-store=?0, private;a=1, s-maxage=1.5, x=(a b), y=:YQ==:",
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "0", "-1", "9223372036854775807", "3600;a=b",
        "\"abc\"", "W/\"abc\", \"x,y\" ,*", "*", "bytes=0-1,-5, 7-", "bytes=9223372036854775807-",
        "bytes 4-9/10", "bytes */10", "bytes 0-9223372036854775806/*", "Accept-Encoding, *,Cookie",
        "gzip;q=0.5, *;q=0, identity", "de-DE, en;q=0.8", "../a?b#c", "//host:80/%2F/./..",
        "http://user@host:65536/\u{e4}", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
        "TieredCache; hit; ttl=5; detail=\"a\", Other; fwd=stale",
    ].map { Array($0.utf8) }

    private static let special = Array(",;=\"\\ \t-*/:?#%&()'<>@[]_0123456789azAZ".utf8)

    mutating func next() -> String {
        var bytes = Self.samples[pick(Self.samples.count)]
        for _ in 0..<(1 + pick(4)) { mutate(&bytes) }
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        let place = pick(bytes.count + 1)
        switch pick(8) {
        case 0: bytes.insert(UInt8(truncatingIfNeeded: pick(256)), at: place)
        case 1, 2: bytes.insert(Self.special[pick(Self.special.count)], at: place)
        case 3 where place < bytes.count: bytes.remove(at: place)
        case 4 where place < bytes.count: bytes[place] ^= UInt8(1 << pick(8))
        case 5:
            let other = Self.samples[pick(Self.samples.count)]
            bytes.replaceSubrange(place..., with: other[pick(other.count)...])
        case 6: bytes.insert(contentsOf: bytes[place...].prefix(1 + pick(20)), at: place)
        default: break  // Good as it is, too.
        }
        if bytes.count > 300 { bytes.removeLast(bytes.count - 300) }
    }

    private mutating func pick(_ count: Int) -> Int {
        Int(truncatingIfNeeded: random.next() >> 33) % count
    }
}
