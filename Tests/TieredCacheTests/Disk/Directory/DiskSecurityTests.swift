import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What others may have put into the directory, and what may leave it.
@Suite("Disk: security", .timeLimit(.minutes(10)))
struct DiskSecurityTests {
    /// A cache directory beside one that is none of its business.
    private struct Place {
        let disk = TestDisk(.posix)

        var outside: FilePath { disk.root.removingLastComponent().appending("outside") }

        init() throws {
            try FileManager.default.createDirectory(
                atPath: outside.string,
                withIntermediateDirectories: true
            )
        }

        func link(_ path: String, to target: FilePath) throws {
            try FileManager.default.createSymbolicLink(
                atPath: disk.root.appending(path).string,
                withDestinationPath: target.string
            )
        }

        /// Moves something of the cache's outside and leaves a link in its place.
        func replaceByLink(_ path: String) throws {
            let target = outside.appending("moved")
            try FileManager.default.moveItem(
                atPath: disk.root.appending(path).string,
                toPath: target.string
            )
            try link(path, to: target)
        }

        /// All files outside with their bytes.
        func outsideFiles() throws -> [String: [UInt8]] {
            var result: [String: [UInt8]] = [:]
            for path in try FileManager.default.subpathsOfDirectory(atPath: outside.string) {
                let file = outside.appending(path)
                var isDirectory: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: file.string, isDirectory: &isDirectory)
                if !isDirectory.boolValue { result[path] = try TestFile.read(file) }
            }
            return result
        }
    }

    /// Everything that a store can do to a key.
    private func exercise(_ store: DiskStore, _ name: String, size: Int) {
        // Whatever is refused is refused; what matters is what is touched.
        _ = try? store.entry(for: key(name))
        _ = store.entryWithoutBlocking(for: key(name))
        _ = try? store.store(bytes(size, seed: 2), for: key(name))
        _ = try? store.bodyPath(for: key(name))
        _ = try? store.entry(for: key(name))?.setPinned(true)
        _ = try? store.list()
        _ = try? store.verify(repair: true)
        _ = try? store.trim(to: 0)
        _ = try? store.remove(key(name))
        _ = try? store.store(bytes(size, seed: 3), for: key(name))
        _ = try? store.removeAll()
    }

    @Test("a link in the place of a directory or a file leads nowhere", arguments: [100, 100_000])
    func links(size: Int) throws {
        let model = TestDisk(.posix)
        try model.open().store(bytes(size), for: key("a"))
        let shard = String(model.paths(".record")[0].dropLast(".record".count + 33))
        var paths = [shard, "entries", "staging", "LOCK", "FORMAT"] + model.paths(".record")
        paths += model.paths(".body")
        for path in paths {
            let place = try Place()
            try place.disk.open().store(bytes(size), for: key("a"))
            try place.replaceByLink(path)
            let before = try place.outsideFiles()
            let store = try? place.disk.open()
            if let store {
                exercise(store, "a", size: size)
                #expect(try place.outsideFiles() == before, "\(path)")
            } else {
                #expect(try place.outsideFiles() == before, "\(path)")
            }
        }
    }

    @Test("a file outside that has the name of an entry is not removed through a link")
    func removal() throws {
        let place = try Place()
        let name = EntryName(digest: key("a").digest)
        do {
            let store = try place.disk.open()
            try store.store(bytes(10), for: key("b"))
        }
        try place.link("entries/\(name.shard)", to: place.outside)
        let file = place.outside.appending(String(name.record.dropFirst(3)))
        let handle = try FileDescriptor.open(
            file,
            .writeOnly,
            options: [.create],
            permissions: .ownerReadWrite
        )
        try handle.close()
        let store = try place.disk.open()
        exercise(store, "a", size: 10)
        #expect(FileManager.default.fileExists(atPath: file.string))
        #expect(try place.outsideFiles().count == 1)
    }

    @Test("a pipe in the place of a file neither blocks nor is read", arguments: [100, 100_000])
    func pipes(size: Int) throws {
        let model = TestDisk(.posix)
        try model.open().store(bytes(size), for: key("a"))
        for path in model.paths(".record") + model.paths(".body") {
            let disk = TestDisk(.posix)
            try disk.open().store(bytes(size), for: key("a"))
            let found = disk.paths(path.hasSuffix(".body") ? ".body" : ".record")[0]
            try disk.delete(found)
            try #require(mkfifo(disk.root.appending(found).string, 0o600) == 0)
            let store = try disk.open()
            let entry = try store.entry(for: key("a"))
            #expect(entry?.read(size) ?? [] == [])
            #expect(entry?.isComplete != true || entry?.read(size) == [])
            exercise(store, "a", size: size)
        }
    }

    @Test("a second name of a record is a copy that the cache does not know")
    func hardLink() throws {
        let place = try Place()
        try place.disk.open().store(bytes(100), for: key("a"))
        let record = place.disk.root.appending(place.disk.paths(".record")[0])
        let copy = place.outside.appending("copy")
        try FileManager.default.linkItem(atPath: record.string, toPath: copy.string)
        let content = try TestFile.read(copy)
        let store = try place.disk.open()
        try store.store(bytes(100, seed: 2), for: key("a"))
        #expect(
            try firstDifference(store.entry(for: key("a"))?.read(100), bytes(100, seed: 2)) == nil
        )
        #expect(try TestFile.read(copy) == content)
    }

    /// Marc Stevens' pair of 72 letters and digits with the same MD5 (published in March 2024).
    private static let collision = [
        "TEXTCOLLBYfGiJUETHQ4hAcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak",
        "TEXTCOLLBYfGiJUETHQ4hEcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak",
    ].map { CacheKey(stored: $0) }

    @Test("a crafted MD5 collision is a miss, never the other key's bytes")
    func collision() throws {
        let (first, second) = (Self.collision[0], Self.collision[1])
        try #require(first != second)
        try #require(first.digest == second.digest)
        for size in [100, 100_000] {
            for kind in DiskKind.allCases {
                let disk = TestDisk(kind)
                let store = try disk.open()
                let stored = try store.store(bytes(size, seed: 1), for: first)
                #expect(try store.entry(for: second) == nil)
                #expect(store.entryWithoutBlocking(for: second).isMiss)
                #expect(try store.remove(second) == false)
                #expect(
                    try firstDifference(store.entry(for: first)?.read(size), bytes(size, seed: 1))
                        == nil
                )
                try store.store(bytes(size, seed: 2), for: second)
                #expect(try store.entry(for: first) == nil)
                #expect(
                    try firstDifference(store.entry(for: second)?.read(size), bytes(size, seed: 2))
                        == nil
                )
                #expect(firstDifference(stored.read(size), bytes(size, seed: 1)) == nil)
                store.close()
                let next = try disk.open()
                #expect(try next.entry(for: first) == nil)
                #expect(
                    try firstDifference(next.entry(for: second)?.read(size), bytes(size, seed: 2))
                        == nil
                )
            }
        }
    }

    @Test("whatever a key is, the names on disk are digits of its digest")
    func names() throws {
        let disk = TestDisk(.posix)
        let store = try disk.open()
        let names = [
            "../../etc/passwd", "/etc/passwd", "a/b", "..", ".", "", "a\0b", "\u{202E}txt", "~",
            String(repeating: "x", count: 10_000), "日本語", "a\nb", "$(id)", "-rf",
        ]
        for name in names {
            for size in [10, 100_000] {
                try store.store(bytes(size), for: key(name + "\(size)"))
            }
        }
        let own = ["FORMAT", "LOCK"]
        for path in disk.files.keys where !own.contains(path) {
            let parts = path.split(separator: "/")
            #expect(parts.count == 3 && parts[0] == "entries", "\(path)")
            #expect(EntryFileName(String(parts[2])) != nil, "\(path)")
        }
        let parent = disk.root.removingLastComponent().string
        #expect(try FileManager.default.contentsOfDirectory(atPath: parent) == ["cache"])
    }
}
