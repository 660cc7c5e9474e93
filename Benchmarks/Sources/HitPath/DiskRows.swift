import Foundation
import Glibc
import SystemPackage
@_spi(Benchmarks) import TieredCache

/// The disk tier's rows: hits and stores beside plain files, pages warm.
enum DiskRows {
    /// Makes the rows whose names are wanted; each writes files.
    static func make(where isWanted: (String) -> Bool) throws -> [Row] {
        let directory = try BenchDirectory()
        var rows: [Row] = []
        for (kind, size, target) in hits {
            let name = "disk hit \(name(size)), \(kind.rawValue)"
            if isWanted(name) { rows.append(try hit(directory, name, size, kind, target)) }
        }
        for (size, target) in [(4096, 1.5), (1 << 20, 1.1)] {
            let name = "disk store \(name(size)), new key"
            if isWanted(name) { rows.append(try store(directory, name, size, target)) }
        }
        return rows
    }

    // MARK: Hits

    private enum Kind: String {
        case open
        /// Not in the descriptor cache; the head is in memory, as of a few thousand entries.
        case notOpen = "not open"
        /// Nothing is in memory but the index: digest, record and body are read.
        case notInMemory = "not in memory"
    }

    private static let hits: [(Kind, Int, Double?)] = [
        (.open, 4096, 0.4), (.open, 65_536, 0.6), (.open, 1 << 20, 0.95),
        (.notOpen, 4096, 1.2), (.notOpen, 65_536, 1.15), (.notOpen, 1 << 20, 1.05),
        (.notInMemory, 4096, nil), (.notInMemory, 65_536, nil), (.notInMemory, 1 << 20, nil),
    ]

    private static func hit(
        _ directory: BenchDirectory,
        _ name: String,
        _ size: Int,
        _ kind: Kind,
        _ target: Double?
    ) throws -> Row {
        // More files than one, so that no single inode stays in the processor's caches.
        let count = size > 65_536 ? 16 : 64
        let files = try directory.files(count, size)
        let store = try directory.store(kind == .open ? 256 : 1, heads: kind != .notInMemory)
        let keys = (0..<count).map {
            CacheKey(explicit: "https://media.example/\(size)/\($0)/segment.m4s")
        }
        let body = [UInt8](repeating: 7, count: size)
        for key in keys {
            try body.withUnsafeBytes { _ = try store.store($0, for: key, metadata: metadata) }
        }
        let buffer = Buffer(size)
        return Row(
            name: name,
            target: target,
            count: max(200, (kind == .open ? 400_000_000 : 200_000_000) / (size + 20_000)),
            contenders: [
                Contender("DiskStore") { lookUp(store, keys, buffer, count: $0) },
                Contender("open, fstat, read, close") { read(files, buffer, count: $0) },
            ]
        )
    }

    private static let metadata = [UInt8](repeating: 1, count: 200)

    private static func lookUp(
        _ store: DiskStore,
        _ keys: [CacheKey],
        _ buffer: Buffer,
        count: Int
    ) {
        var next = 0
        for _ in 0..<count {
            if case .ready(let entry?) = store.entryWithoutBlocking(for: keys[next]),
                entry.readWithoutBlocking(at: 0, into: buffer.bytes) == .ready(buffer.bytes.count)
            {
                // The usual way.
            } else {
                lookUpBlocking(store, keys[next], buffer)
            }
            next = next + 1 == keys.count ? 0 : next + 1
        }
    }

    /// What the engine does on a thread that may wait.
    ///
    /// The kernel refuses to open or read without blocking whenever it would have to wait, if only
    /// for another process's rename or page: on a busy machine that is no failure, but now and then.
    @inline(never)
    private static func lookUpBlocking(_ store: DiskStore, _ key: CacheKey, _ buffer: Buffer) {
        do {
            guard let entry = try store.entry(for: key) else {
                fatalError("a hit is a miss: \(key)")
            }
            let count = entry.read(at: 0, into: buffer.bytes)
            guard count == buffer.bytes.count else { fatalError("\(key): \(count) bytes") }
        } catch {
            fatalError("\(error)")
        }
    }

    private static func read(_ files: [String], _ buffer: Buffer, count: Int) {
        var next = 0
        for _ in 0..<count {
            let file = open(files[next], O_RDONLY | O_CLOEXEC)
            var status = stat()
            fstat(file, &status)
            guard
                Glibc.read(file, buffer.bytes.baseAddress, Int(status.st_size))
                    == buffer.bytes.count
            else { fatalError("cannot read \(files[next])") }
            close(file)
            next = next + 1 == files.count ? 0 : next + 1
        }
    }

    // MARK: Stores

    private static func store(
        _ directory: BenchDirectory,
        _ name: String,
        _ size: Int,
        _ target: Double
    ) throws -> Row {
        let store = try directory.store(256, heads: true)
        let plain = try directory.subdirectory()
        let body = Buffer(size)
        var (stored, written) = (0, 0)
        return Row(
            name: name,
            target: target,
            count: size > 65_536 ? 8 : 500,
            contenders: [
                Contender("DiskStore") { count in
                    for _ in 0..<count {
                        stored += 1
                        let key = CacheKey(explicit: "https://media.example/\(size)/\(stored)/new")
                        do {
                            try store.store(
                                UnsafeRawBufferPointer(body.bytes),
                                for: key,
                                metadata: metadata
                            )
                        } catch {
                            fatalError("\(error)")
                        }
                    }
                },
                Contender("create, write, close") { count in
                    for _ in 0..<count {
                        written += 1
                        create("\(plain)/\(written)", body)
                    }
                },
            ]
        )
    }

    private static func create(_ path: String, _ body: Buffer) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard write(file, body.bytes.baseAddress, body.bytes.count) == body.bytes.count else {
            fatalError("cannot write \(path)")
        }
        close(file)
    }

    private static func name(_ size: Int) -> String {
        size >= 1 << 20 ? "\(size >> 20) MiB" : "\(size >> 10) KiB"
    }
}

/// Bytes that are read into, and written from.
private final class Buffer {
    let bytes: UnsafeMutableRawBufferPointer

    init(_ size: Int) {
        bytes = .allocate(byteCount: size, alignment: 4096)
        bytes.initializeMemory(as: UInt8.self, repeating: 7)
    }

    deinit { bytes.deallocate() }
}

/// A directory on a real disk, removed when the program ends.
private final class BenchDirectory {
    private let path: String
    private var count = 0

    init() throws {
        let base = ProcessInfo.processInfo.environment["TIEREDCACHE_BENCH_DIR"] ?? "/var/tmp"
        path = "\(base)/tieredcache-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        BenchCleanup.remove(atExit: path)
    }

    func subdirectory() throws -> String {
        count += 1
        let result = "\(path)/\(count)"
        try FileManager.default.createDirectory(atPath: result, withIntermediateDirectories: true)
        return result
    }

    func files(_ count: Int, _ size: Int) throws -> [String] {
        let directory = try subdirectory()
        return try (0..<count).map { number in
            let file = "\(directory)/\(number)"
            try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: file))
            return file
        }
    }

    func store(_ maximumOpenEntries: Int, heads: Bool) throws -> DiskStore {
        var options = DiskStoreOptions(root: FilePath(try subdirectory()), limit: 64 << 30)
        options.maximumOpenEntries = maximumOpenEntries
        if !heads { options.maximumHeadMemory = 0 }
        return try DiskStore(options)
    }
}

/// What has to go when the program ends.
private enum BenchCleanup {
    nonisolated(unsafe) private static var path: String?  // Written once, by the main thread.

    static func remove(atExit path: String) {
        self.path = path
        atexit {
            if let path = BenchCleanup.path { try? FileManager.default.removeItem(atPath: path) }
        }
    }
}
