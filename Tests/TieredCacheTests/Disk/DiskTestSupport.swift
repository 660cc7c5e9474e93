import Foundation
import HTTPCaching
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A directory of its own for each test, removed at the end.
final class TemporaryDirectory {
    let path: FilePath

    init() {
        var template = Array("/tmp/tieredcache-test-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress, let made = mkdtemp(base) else {
                preconditionFailure("mkdtemp failed: \(errno)")
            }
            return FilePath(String(cString: made))
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path.string)
    }
}

/// Small deterministic generator (SplitMix64) for seeded tests.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// Bytes that differ from block to block and from seed to seed.
func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var result = [UInt8](unsafeUninitializedCapacity: (count + 7) / 8 * 8) { buffer, initialized in
        initialized = (count + 7) / 8 * 8
        let raw = UnsafeMutableRawBufferPointer(buffer)
        for index in stride(from: 0, to: initialized, by: 8) {
            raw.storeBytes(of: generator.next(), toByteOffset: index, as: UInt64.self)
        }
    }
    result.removeLast(result.count - count)
    return result
}

extension DiskStore {
    @discardableResult
    func store(
        _ bytes: [UInt8],
        for key: CacheKey,
        metadata: [UInt8] = [1, 2, 3],
        class entryClass: DiskEntryClass = []
    ) throws(CacheError) -> DiskEntry {
        try bytes.withUnsafeBufferPointer { (bytes) throws(CacheError) in
            try store(
                UnsafeRawBufferPointer(bytes),
                for: key,
                metadata: metadata,
                class: entryClass
            )
        }
    }
}

extension DiskFill {
    func write(_ bytes: some Sequence<UInt8>) throws(CacheError) {
        try Array(bytes).withUnsafeBufferPointer { (bytes) throws(CacheError) in
            try write(UnsafeRawBufferPointer(bytes))
        }
    }
}

extension DiskEntry {
    func read(at offset: Int64 = 0, _ count: Int) -> [UInt8] {
        var result = [UInt8](repeating: 0xEE, count: count)
        let read = result.withUnsafeMutableBytes { self.read(at: offset, into: $0) }
        return Array(result[..<read])
    }

    func readCached(at offset: Int64 = 0, _ count: Int) -> NonBlocking<[UInt8]> {
        var result = [UInt8](repeating: 0xEE, count: count)
        switch result.withUnsafeMutableBytes({ readWithoutBlocking(at: offset, into: $0) }) {
        case .ready(let read): return .ready(Array(result[..<read]))
        case .wouldBlock: return .wouldBlock
        }
    }
}

func key(_ name: String) -> CacheKey { CacheKey(explicit: name) }

/// Plain file access, to look at files from outside and to damage them.
enum TestFile {
    static func read(_ path: FilePath) throws -> [UInt8] {
        let file = try FileDescriptor.open(path, .readOnly)
        defer { try? file.close() }
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
            if count == 0 { return result }
            result.append(contentsOf: buffer[..<count])
        }
    }
}
