import Foundation
import Glibc
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What is no file in the place of one: pipes, sockets and devices.
@Suite("Disk: pipes, sockets and devices", .timeLimit(.minutes(10)))
struct DiskOddFilesTests {
    private enum Oddity: CaseIterable {
        case pipe, socket, zeroDevice, fullDevice, directory

        /// - Returns: false where this user may not make one.
        func make(at path: FilePath) throws -> Bool {
            switch self {
            case .pipe: return mkfifo(path.string, 0o600) == 0
            case .socket: return makeSocket(at: path)
            case .zeroDevice: return mknod(path.string, S_IFCHR | 0o600, makedev(1, 5)) == 0
            case .fullDevice: return mknod(path.string, S_IFCHR | 0o600, makedev(1, 7)) == 0
            case .directory:
                return mkdir(path.string, 0o700) == 0
            }
        }

        private func makedev(_ major: UInt64, _ minor: UInt64) -> dev_t {
            dev_t(major << 8 | minor)
        }

        /// Under a short name first, since a socket's may not be longer than 107 bytes.
        private func makeSocket(at path: FilePath) -> Bool {
            let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            let short = "/tmp/tieredcache-\(UInt32.random(in: .min ... .max)).socket"
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: short.utf8) }
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            return result == 0 && rename(short, path.string) == 0
        }
    }

    /// Everything that a store does with a key; it may be refused, but has to come back.
    private func exercise(_ disk: TestDisk, _ size: Int) {
        guard let store = try? disk.open() else { return }
        if let entry = try? store.entry(for: key("a")) {
            #expect(bytes(size).holds(entry.read(size), at: 0))
        }
        _ = store.entryWithoutBlocking(for: key("a"))
        _ = try? store.verify(repair: true)
        _ = try? store.store(bytes(size, seed: 2), for: key("a"))
        _ = try? store.bodyPath(for: key("a"))
        _ = try? store.entry(for: key("a"))?.setPinned(true)
        _ = try? store.list()
        _ = try? store.remove(key("a"))
        _ = try? store.removeAll()
    }

    @Test("none of them is waited for, read or reported as ours", arguments: [100, 100_000])
    func inTheWay(size: Int) throws {
        let model = TestDisk(.posix)
        try model.open().store(bytes(size), for: key("a"))
        let suffixes = [".record"] + (size > 65_536 ? [".body"] : [])
        for oddity in Oddity.allCases {
            for suffix in suffixes {
                let disk = TestDisk(.posix)
                try disk.open().store(bytes(size), for: key("a"))
                let path = disk.paths(suffix)[0]
                try disk.delete(path)
                // Devices need a right that not everybody has.
                guard try oddity.make(at: disk.root.appending(path)) else { continue }
                let store = try disk.open()
                var found: [DiskFinding] = []
                _ = try store.verify(repair: false) { found.append($0) }
                let isNamed = found.contains { finding in
                    finding.kind == .unaccounted && finding.path.string.hasSuffix(path)
                }
                #expect(isNamed, "\(oddity) \(suffix): \(found)")
                store.close()
                exercise(disk, size)
            }
        }
    }

    @Test("in the place of the directory's own files they cost what was in them, or the directory")
    func ownFiles() throws {
        let names = [
            "FORMAT", "LOCK", "INDEX", "STATS", "EVENTS", "EVENTS.1", "staging", "entries",
        ]
        for oddity in Oddity.allCases where oddity != .directory {
            for name in names {
                let disk = TestDisk(.posix)
                try disk.open().store(bytes(100), for: key("a"))
                if FileManager.default.fileExists(atPath: disk.root.appending(name).string) {
                    try disk.delete(name)
                }
                guard try oddity.make(at: disk.root.appending(name)) else { continue }
                exercise(disk, 100)
                let cache = try MediaCache(MediaCache.Configuration(path: disk.root))
                withExtendedLifetime(cache) {}
            }
        }
    }
}

/// Hints that cannot be read or removed must not stop what is stored.
@Suite("Disk: hints that are no files", .timeLimit(.minutes(10)))
struct DiskOddHintTests {
    enum Oddity: CaseIterable {
        case directory, pipe, link

        func make(at path: FilePath) throws {
            switch self {
            case .directory:
                try FileManager.default.createDirectory(
                    atPath: path.string,
                    withIntermediateDirectories: false
                )
            case .pipe: try #require(mkfifo(path.string, 0o600) == 0)
            case .link: try #require(symlink("/dev/zero", path.string) == 0)
            }
        }
    }

    @Test(
        "a store that finds one writes, counts and closes as ever, and verify names it",
        arguments: ["INDEX", "STATS", "EVENTS", "EVENTS.1", "PROXY", "jobs", "quarantine"],
        Oddity.allCases
    )
    func hints(name: String, oddity: Oddity) throws {
        if oddity == .directory, ["jobs", "quarantine"].contains(name) { return }
        let disk = TestDisk(.posix, hasClaim: true)
        do {
            let store = try disk.open()
            try store.store(bytes(100_000), for: key("a"))
            store.close()
        }
        if disk.files[name] != nil { try disk.delete(name) }
        try oddity.make(at: disk.root.appending(name))
        for seed in [2, 3] as [UInt64] {
            let store = try disk.open()
            try store.store(bytes(100_000, seed: seed), for: key("b"))
            try store.entry(for: key("b"))?.setPinned(true)
            #expect(
                try firstDifference(store.entry(for: key("a"))?.read(100_000), bytes(100_000))
                    == nil
            )
            #expect(try store.usage().bytes == disk.allocatedBytes)
            var found: [DiskFinding] = []
            #expect(try store.verify(repair: true) { found.append($0) }.damaged == 0)
            let isNamed = found.contains { finding in
                finding.kind == .unaccounted && finding.path == disk.root.appending(name)
            }
            // A pipe or link named INDEX gives way to the index at the first close.
            #expect(isNamed || name == "INDEX" && seed == 3, "\(found)")
            store.close()
            #expect(disk.paths("staging/INDEX").isEmpty)
        }
        let store = try disk.open()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        try store.removeAll()
    }

    @Test("a device in the place of a body is missing, and gives way to the bytes")
    func device() throws {
        let disk = TestDisk(.posix)
        let first = try disk.open()
        let entry = try first.makeEntry(for: key("a"), metadata: [], completeLength: 300_000)
        try entry.beginWriting(at: 0).write(bytes(300_000)[..<200_000])
        first.close()
        let path = disk.paths(".body")[0]
        try disk.delete(path)
        let file = disk.root.appending(path)
        // A right that not everybody has; a pipe is treated alike.
        if mknod(file.string, S_IFCHR | 0o600, dev_t(1 << 8 | 5)) != 0 {
            try #require(mkfifo(file.string, 0o600) == 0)
        }
        let store = try disk.open()
        let found = try #require(try store.entry(for: key("a")))
        #expect(found.storedRanges.isEmpty)
        try found.beginWriting(at: 0).write(bytes(300_000))
        #expect(found.isComplete && found.read(300_000) == bytes(300_000))
        try #require(firstDifference(disk.paths(".body"), [path]) == nil)
        #expect(try firstDifference(disk.content(path), bytes(300_000)) == nil)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("a device in the place of a record is missing, and gives way to the next one")
    func deviceAsRecord() throws {
        let disk = TestDisk(.posix)
        do {
            let store = try disk.open()
            try store.store(bytes(100), for: key("a"))
        }
        let path = disk.paths(".record")[0]
        try disk.delete(path)
        let file = disk.root.appending(path)
        if mknod(file.string, S_IFCHR | 0o600, dev_t(1 << 8 | 5)) != 0 {
            try #require(mkfifo(file.string, 0o600) == 0)
        }
        let store = try disk.open()
        #expect(try store.entry(for: key("a")) == nil)
        #expect(store.entryWithoutBlocking(for: key("a")).isNothing)
        try store.store(bytes(200), for: key("a"))
        #expect(try firstDifference(store.entry(for: key("a"))?.read(200), bytes(200)) == nil)
        #expect(disk.paths(".record") == [path])
    }
}

extension NonBlocking<DiskEntry?> {
    /// Whether nothing was found, or the disk has to be asked.
    fileprivate var isNothing: Bool {
        guard case .ready(let entry?) = self else { return true }
        return withExtendedLifetime(entry) { false }
    }
}
