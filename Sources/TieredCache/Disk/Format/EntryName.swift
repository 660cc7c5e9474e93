/// Where an entry's files are, below `entries`: made from the MD5 of the key, and from nothing
/// else.
///
/// No byte of a key ever reaches the file system in any other form.
struct EntryName: Hashable, Sendable {
    let digest: MD5Digest

    /// `ab`: the first two digits.
    var shard: String { Self.shard(shardNumber) }

    /// The first byte of the digest: which of the 256 directories.
    var shardNumber: Int { Int(digest.high >> 56) }

    /// The record: `ab/<32 hex>.record`.
    var record: String { text(suffix: ".record", generation: nil, inShard: true) }

    /// A body: `ab/<32 hex>.<16 hex>.body`.
    func body(_ generation: UInt64) -> String {
        text(suffix: ".body", generation: generation, inShard: true)
    }

    /// `<32 hex>.<16 hex>.record`, a name in `staging`.
    func staged(_ generation: UInt64) -> String {
        text(suffix: ".record", generation: generation, inShard: false)
    }

    static func shard(_ number: Int) -> String {
        String(decoding: [digit(UInt64(number) >> 4), digit(UInt64(number) & 15)], as: UTF8.self)
    }

    private func text(suffix: StaticString, generation: UInt64?, inShard: Bool) -> String {
        // Built by hand: this is on the path of every lookup that is not in the descriptor cache.
        String(unsafeUninitializedCapacity: 64) { buffer in
            var count = 0
            func append(_ byte: UInt8) {
                buffer[count] = byte
                count += 1
            }
            func append(_ value: UInt64, digits: Int) {
                for index in (0..<digits).reversed() {
                    append(Self.digit(value >> UInt64(4 * index) & 15))
                }
            }
            if inShard {
                append(digest.high >> 56, digits: 2)
                append(UInt8(ascii: "/"))
            }
            append(digest.high, digits: 16)
            append(digest.low, digits: 16)
            if let generation {
                append(UInt8(ascii: "."))
                append(generation, digits: 16)
            }
            for index in 0..<suffix.utf8CodeUnitCount {
                append(suffix.utf8Start[index])
            }
            return count
        }
    }

    private static func digit(_ value: UInt64) -> UInt8 {
        UInt8(value) + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
}

/// What a file name says, if it is one of ours.
enum EntryFileName: Equatable {
    case record(EntryName)
    case body(EntryName, generation: UInt64)
    case staged(EntryName, generation: UInt64)

    /// Reads a name as it stands in a directory; `nil` for what is not ours.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard let first = parts.first, let digest = MD5Digest(hexadecimal: String(first)) else {
            return nil
        }
        let name = EntryName(digest: digest)
        if parts.count == 2, parts[1] == "record" {
            self = .record(name)
            return
        }
        guard parts.count == 3, let generation = Self.generation(parts[1]) else { return nil }
        switch parts[2] {
        case "body": self = .body(name, generation: generation)
        case "record": self = .staged(name, generation: generation)
        default: return nil
        }
    }

    private static func generation(_ text: Substring) -> UInt64? {
        let isCanonical = text.utf8.allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        // `UInt64(_:radix:)` takes upper case and a sign as well: two files would be one body.
        guard text.utf8.count == 16, isCanonical else { return nil }
        return UInt64(text, radix: 16)
    }
}
