import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Something that a store does to its disk, and the bodies that may be found afterwards.
struct CrashCase: CustomTestStringConvertible, Sendable {
    var name: String
    /// By key, and by the first byte of the metadata.
    var bodies: [String: [UInt8: [UInt8]]]
    /// Whose bodies are pinned and complete before: one of them is found afterwards, whole.
    var promised: [String] = []
    /// Whether the directory exists before.
    var beginsOpen = true
    /// Whether LOCK claims what is there, so that writes need not wait for the index.
    var hasClaim = false
    /// The version whose fixture is on the disk before that.
    var fixture: Int?
    var prepare: @Sendable (DiskStore) throws -> Void = { _ in }
    var act: @Sendable (DiskStore) throws -> Void

    var testDescription: String { name }

    private static let small = bytes(1000, seed: 1)
    private static let large = bytes(200_000, seed: 2)
    private static let other = bytes(150_000, seed: 3)
    private static let film = bytes(1 << 20, seed: 4)

    static let all: [CrashCase] = making + changing + leaving + [migrating, claiming] + succeeding

    /// The next generation of what is pinned, small and large, and one of which only a part comes.
    private static let succeeding = [
        ("large", large, other), ("small by large", small, large), ("large by small", large, small),
        ("small", small, [7, 8]),
    ].map { name, old, new in
        CrashCase(
            name: "follow what is pinned: \(name)",
            bodies: ["a": [1: old, 2: new]],
            promised: ["a"]
        ) {
            store in
            try store.store(old, for: key("a"), metadata: [1], class: .pinned)
        } act: { store in
            let length = Int64(large.count)
            let part = try store.makeEntry(for: key("a"), metadata: [2], completeLength: length)
            try part.beginWriting(at: 0).write(large[..<70_000])
            try store.store(new, for: key("a"), metadata: [2])
            withExtendedLifetime(part) {}
        }
    }

    /// Format 1, whose records become current ones while the index is built.
    private static let migrating = CrashCase(
        name: "migrate",
        bodies: DiskFixture.entries.reduce(into: [:]) { bodies, fixture in
            bodies["fixture \(fixture.name)"] = [fixture.metadata[0]: fixture.body]
        },
        beginsOpen: false,
        fixture: 1,
        act: { store in try store.loadIndex() }
    )

    /// Everything that changes LOCK and INDEX, and writes beside them.
    private static let claiming = CrashCase(
        name: "write before the index is there",
        bodies: ["a": [1: large, 2: small], "b": [1: small], "c": [1: other], "d": [1: small]],
        hasClaim: true
    ) { store in
        try store.store(large, for: key("a"), metadata: [1])
        try store.store(small, for: key("b"), metadata: [1])
    } act: { store in
        store.close()
        let again = try reopen(store)
        try again.store(other, for: key("c"), metadata: [1])
        try again.store(small, for: key("a"), metadata: [2])
        try again.remove(key("b"))
        #expect(!again.state.withLock { $0.entries.isLoaded })
        again.close()
        let last = try reopen(again)
        try last.store(small, for: key("d"), metadata: [1])
        try last.loadIndex()
        _ = try last.trim(to: 200_000)
        last.close()
    }

    private static func reopen(_ store: DiskStore) throws -> DiskStore {
        let memory = try #require(store.fileSystem as? InMemoryFileSystem)
        return try CrashDisk(memory).open(hasClaim: true)
    }

    private static let making = [
        CrashCase(name: "open", bodies: [:], beginsOpen: false) { _ in },
        CrashCase(name: "store a small body", bodies: ["a": [1: small]]) { store in
            try store.store(small, for: key("a"), metadata: [1])
        },
        CrashCase(name: "store a large body", bodies: ["a": [1: large]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
        },
        CrashCase(name: "download in part", bodies: ["a": [1: large]]) { store in
            let entry = try store.makeEntry(for: key("a"), metadata: [1], completeLength: 200_000)
            let writer = try entry.beginWriting(at: 0)
            for start in stride(from: 0, to: 140_000, by: 20_000) {
                try writer.write(large[start..<(start + 20_000)])
            }
        },
        CrashCase(name: "fill two ranges", bodies: ["a": [1: large]]) { store in
            let entry = try store.makeEntry(for: key("a"), metadata: [1], completeLength: 200_000)
            let back = try entry.beginWriting(at: 131_072)
            let front = try entry.beginWriting(at: 0)
            try back.write(large[131_072..<196_608])
            try front.write(large[..<131_072])
            try back.write(large[196_608...])
        },
        CrashCase(name: "a body of unknown length", bodies: ["a": [1: large]]) { store in
            let entry = try store.makeEntry(for: key("a"), metadata: [1], completeLength: nil)
            let writer = try entry.beginWriting(at: 0)
            try writer.write(large)
            try writer.finish()
        },
    ]

    private static let changing = [
        CrashCase(name: "replace small by small", bodies: ["a": [1: small, 2: [7, 8]]]) { store in
            try store.store(small, for: key("a"), metadata: [1])
        } act: { store in
            try store.store([7, 8], for: key("a"), metadata: [2])
        },
        CrashCase(name: "replace large by large", bodies: ["a": [1: large, 2: other]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
        } act: { store in
            try store.store(other, for: key("a"), metadata: [2])
        },
        CrashCase(name: "replace large by small", bodies: ["a": [1: large, 2: small]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
        } act: { store in
            try store.store(small, for: key("a"), metadata: [2])
        },
        CrashCase(name: "replace small by large", bodies: ["a": [1: small, 2: large]]) { store in
            try store.store(small, for: key("a"), metadata: [1])
        } act: { store in
            try store.store(large, for: key("a"), metadata: [2])
        },
        CrashCase(
            name: "freshen",
            bodies: ["a": [1: large, 2: large], "b": [1: small, 2: small]]
        ) {
            store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(small, for: key("b"), metadata: [1])
        } act: { store in
            try store.entry(for: key("a"))?.updateMetadata([2] + bytes(5000))
            try store.entry(for: key("b"))?.updateMetadata([2] + bytes(5000))
        },
        CrashCase(name: "pin and unpin", bodies: ["a": [1: large], "b": [1: small]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(small, for: key("b"), metadata: [1])
        } act: { store in
            for name in ["a", "b"] {
                try store.entry(for: key(name))?.setPinned(true)
                try store.entry(for: key(name))?.setPinned(false)
            }
        },
        CrashCase(name: "write an inline body out", bodies: ["a": [1: small]]) { store in
            try store.store(small, for: key("a"), metadata: [1])
        } act: { store in
            _ = try store.bodyPath(for: key("a"))
        },
    ]

    private static let leaving = [
        CrashCase(
            name: "set aside, and the right body comes",
            bodies: ["a": [1: large, 2: other], "b": [1: small, 2: large]]
        ) { store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(small, for: key("b"), metadata: [1])
        } act: { store in
            for (name, body) in [("a", other), ("b", large)] {
                let entry = try #require(try store.entry(for: key(name)))
                #expect(try store.quarantine(entry))
                #expect(try store.entry(for: key(name)) == nil)
                try store.store(body, for: key(name), metadata: [2])
                store.releaseQuarantine(of: key(name))
            }
        },
        CrashCase(name: "remove", bodies: ["a": [1: large], "b": [1: small]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(small, for: key("b"), metadata: [1])
        } act: { store in
            try store.remove(key("a"))
            try store.remove(key("b"))
        },
        CrashCase(name: "evict", bodies: ["a": [1: large], "b": [1: small]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(small, for: key("b"), metadata: [1])
        } act: { store in
            store.closeIdle()
            _ = try store.trim(to: 0)
        },
        CrashCase(name: "evict the tail", bodies: ["a": [1: large], "b": [1: other]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
            try store.store(other, for: key("b"), metadata: [1])
            store.closeIdle()
        } act: { store in
            try store.setLimit(320_000)
            #expect(store.counters.shortened == 1)
        },
        CrashCase(name: "evict cold blocks in use", bodies: ["a": [1: film]]) { store in
            try store.store(film, for: key("a"), metadata: [1])
        } act: { store in
            let lease = try #require(try store.entry(for: key("a")))
            #expect(lease.read(at: 600_000, 1000).count == 1000)
            try store.setLimit(800_000)
            #expect(store.counters.shortened == 1 && !lease.isComplete)
        },
        CrashCase(name: "repair", bodies: ["a": [1: large]]) { store in
            try store.store(large, for: key("a"), metadata: [1])
        } act: { store in
            try store.damageBody(of: key("a"), at: 70_000)
            _ = try store.verify(repair: true)
            let entry = try #require(try store.entry(for: key("a")))
            try entry.beginWriting(at: 65_536).write(large[65_536..<131_072])
        },
    ]
}

extension CrashCase {
    /// Puts the fixture on a disk, as if it had been there for ever.
    func plant(on memory: InMemoryFileSystem) throws {
        guard let fixture else { return }
        let source = TestDisk(.posix)
        try DiskFixture.copy(version: fixture, to: source.root)
        for path in source.files.keys { memory.put(try source.content(path), at: "/cache/\(path)") }
    }
}

extension DiskStore {
    /// Flips a bit of a body's file on an in-memory disk.
    func damageBody(of key: CacheKey, at offset: Int) throws {
        let memory = try #require(fileSystem as? InMemoryFileSystem)
        let entry = try #require(try entry(for: key))
        let path = "\(options.root)/entries/\(entry.name.body(entry.generation))"
        #expect(memory.tamper(path) { $0[offset] ^= 4 })
    }
}
