import Foundation
import HTTPCaching
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A directory of its own for each test, removed at the end.
final class TemporaryDirectory: Sendable {
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

extension [UInt8] {
    /// Whether `part` is what stands at `offset`; fast in a debug build too.
    func holds(_ part: [UInt8], at offset: Int) -> Bool {
        guard offset >= 0, offset + part.count <= count else { return false }
        return withUnsafeBytes { whole in
            part.withUnsafeBytes { part in
                guard let whole = whole.baseAddress, let base = part.baseAddress else {
                    return true
                }
                return memcmp(whole + offset, base, part.count) == 0
            }
        }
    }
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

extension BodyWriter {
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

/// The two file systems that every test of the store runs on.
enum DiskKind: String, CaseIterable, CustomTestStringConvertible {
    case posix
    case memory

    var testDescription: String { rawValue }
}

/// A disk with a cache directory, seen through a store and from outside.
final class TestDisk: Sendable {
    let kind: DiskKind
    let time = ManualTimeSource()
    let memory = InMemoryFileSystem()
    private let directory = TemporaryDirectory()

    private let hasClaim: Bool

    /// - Parameters:
    ///   - kind: where it is.
    ///   - hasClaim: whether LOCK claims what is there, as it does for many entries.
    init(_ kind: DiskKind, hasClaim: Bool = false) {
        self.kind = kind
        self.hasClaim = hasClaim
    }

    var root: FilePath { kind == .posix ? directory.path.appending("cache") : "/cache" }

    var fileSystem: any FileSystem {
        kind == .posix ? POSIXFileSystem(mayBlockAnyThread: true) : memory
    }

    func options(limit: Int64 = 64 << 20) -> DiskStore.Options {
        var options = DiskStore.Options(root: root, limit: limit)
        options.minimumFree = 0
        options.generationSeed = 42
        if hasClaim { options.minimumSnapshotEntries = 1 }
        return options
    }

    /// Of a cache that does nothing by itself.
    var configuration: MediaCache.Configuration {
        var configuration = MediaCache.Configuration(path: root)
        configuration.timeSource = time
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = false
        configuration.respondsToMemoryPressure = false
        configuration.networkMonitor = nil
        return configuration
    }

    func open(limit: Int64 = 64 << 20) throws(CacheError) -> DiskStore {
        try open(options(limit: limit))
    }

    func open(_ options: DiskStore.Options) throws(CacheError) -> DiskStore {
        try DiskStore(options, fileSystem: fileSystem, timeSource: time)
    }

    /// The paths of all files below the root, with what they are allocated.
    var files: [String: Int64] {
        if kind == .memory {
            let prefix = root.string + "/"
            return memory.files.reduce(into: [:]) {
                $0[String($1.key.dropFirst(prefix.count))] = $1.value
            }
        }
        return Self.files(below: root)
    }

    /// The same of any directory of the machine.
    static func files(below root: FilePath) -> [String: Int64] {
        var result: [String: Int64] = [:]
        let paths = FileManager.default.subpaths(atPath: root.string) ?? []
        for path in paths {
            var status = stat()
            guard lstat(root.appending(path).string, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFREG { result[path] = Int64(status.st_blocks) * 512 }
        }
        return result
    }

    /// Makes every directory of entries look as if it had rested for years.
    func age() throws {
        let entries = root.appending("entries").string
        for name in try FileManager.default.contentsOfDirectory(atPath: entries) {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_600_000_000)],
                ofItemAtPath: entries + "/" + name
            )
        }
    }

    var allocatedBytes: Int64 { files.values.reduce(0, +) }

    func paths(_ suffix: String) -> [String] {
        files.keys.filter { $0.hasSuffix(suffix) }.sorted()
    }

    func content(_ path: String) throws -> [UInt8] {
        if kind == .memory { return try #require(memory.content(of: "\(root)/\(path)")) }
        return try TestFile.read(root.appending(path))
    }

    func write(_ content: [UInt8], _ path: String) throws {
        if kind == .memory {
            if !memory.tamper("\(root)/\(path)", with: { $0 = content }) {
                memory.put(content, at: "\(root)/\(path)")
            }
        } else {
            let file = root.appending(path)
            try FileManager.default.createDirectory(
                atPath: file.removingLastComponent().string,
                withIntermediateDirectories: true
            )
            // In place: a new inode would not be seen through an open descriptor.
            let handle = try FileDescriptor.open(
                file,
                .writeOnly,
                options: [.create, .truncate],
                permissions: .ownerReadWrite
            )
            defer { try? handle.close() }
            _ = try handle.writeAll(content)
        }
    }

    /// Removes a directory with all that is in it; the empty path is the root.
    func deleteDirectory(_ path: String) throws {
        let directory = path.isEmpty ? root : root.appending(path)
        if kind == .memory {
            memory.deleteDirectory(directory.string)
        } else {
            try FileManager.default.removeItem(atPath: directory.string)
        }
    }

    func delete(_ path: String) throws {
        if kind == .memory {
            memory.delete("\(root)/\(path)")
        } else {
            try FileManager.default.removeItem(atPath: root.appending(path).string)
        }
    }
}

extension CacheError {
    /// Whether the limit leaves no room, for now or for as long as what is there stays.
    var isOfFullCache: Bool {
        message.contains("pinned or in use") || message.contains("until more is evicted")
    }
}
