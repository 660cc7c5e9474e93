import Foundation

/// The keys and values that all contenders share.
struct Samples {
    /// URLs of exactly 75 bytes, the mean length in media playlists.
    let urls: [String]
    /// The same URLs in another order and in other memory: a caller that looks something up has made the
    /// key itself.
    let lookups: [String]

    init(count: Int) {
        urls = (0..<count).map(Self.url)
        lookups = Self.order(count).map(Self.url)
    }

    static func url(_ number: Int) -> String {
        let head = "https://cdn.example.com/v1/title/\(number)/video/1080p/"
        let tail = "/segment.m4s"
        let fetcher = String(repeating: "x", count: 75 - head.utf8.count - tail.utf8.count)
        return head + fetcher + tail
    }

    /// A fixed permutation of `0..<count`.
    static func order(_ count: Int) -> [Int] {
        var random = SplitMix(state: 42)
        return Array(0..<count).shuffled(using: &random)
    }
}

/// A value that is looked up.
final class Payload: Sendable {
    let number: Int

    init(_ number: Int) {
        self.number = number
    }
}

/// The C strings of keys, each in memory of its own as the strings of Swift are.
final class CKeys {
    let pointers: [UnsafeMutablePointer<CChar>]
    let length: Int

    init(_ keys: [String]) {
        pointers = keys.compactMap { strdup($0) }
        length = keys.first?.utf8.count ?? 0
    }

    deinit {
        for pointer in pointers { free(pointer) }
    }
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
