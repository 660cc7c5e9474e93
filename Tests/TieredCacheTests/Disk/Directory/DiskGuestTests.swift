import Synchronization
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// One owner and its guests in one directory.
@Suite("Disk: guests", .timeLimit(.minutes(10)))
struct DiskGuestTests {
    /// What a body of a version is; its metadata is the version.
    private struct Version {
        var number: UInt8
        var body: [UInt8]

        static let all: [Version] = (0..<12).map { number in
            let sizes = [0, 700, 65_536, 65_537, 200_000, 130_000]
            return Version(
                number: UInt8(number),
                body: bytes(sizes[number % sizes.count], seed: UInt64(number))
            )
        }
    }

    private final class Progress: Sendable {
        let isDone = Atomic(false)
    }

    private static let names = ["a", "b", "c", "d"]

    /// One step of an owner at work.
    private func work(_ store: DiskStore, _ generator: inout SeededGenerator) throws {
        let version = Version.all[Int.random(in: 0..<12, using: &generator)]
        let name = key(Self.names[Int.random(in: 0..<4, using: &generator)])
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: try store.remove(name)
        case 1: try store.trim(to: Int64.random(in: 0..<300_000, using: &generator))
        case 2: try store.entry(for: name)?.setPinned(false)
        case 3: _ = try store.bodyPath(for: name)
        case 4:
            let entry = try store.makeEntry(
                for: name,
                metadata: [version.number],
                completeLength: Int64(version.body.count)
            )
            guard !version.body.isEmpty else { return }
            let writer = try entry.beginWriting(at: 0)
            try writer.write(version.body[..<(version.body.count / 2)])
            writer.end()
        default: try store.store(version.body, for: name, metadata: [version.number])
        }
    }

    /// - Returns: how many entries were read to their end.
    private func read(_ guest: DiskStore, _ context: String) throws -> Int {
        var whole = 0
        for name in Self.names {
            guard let entry = try guest.entry(for: key(name)) else { continue }
            let version = try #require(
                Version.all.first { [$0.number] == entry.metadata },
                "\(context)"
            )
            let read = entry.read(version.body.count)
            #expect(read == Array(version.body[..<read.count]), "\(context)")
            if read.count == version.body.count { whole += 1 }
        }
        return whole
    }

    @Test(
        "guests read right bytes or nothing while the owner writes",
        arguments: [1, 2] as [UInt64]
    )
    func readWhileWriting(seed: UInt64) async throws {
        let disk = TestDisk(.posix)
        let owner = try disk.open(limit: 2 << 20)
        let guests = try (0..<2).map { _ in try disk.open() }
        let progress = Progress()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var generator = SeededGenerator(seed: seed)
                defer { progress.isDone.store(true, ordering: .releasing) }
                for _ in 0..<1500 { try work(owner, &generator) }
            }
            for guest in guests {
                group.addTask {
                    repeat {
                        _ = try read(guest, "seed \(seed)")
                    } while !progress.isDone.load(ordering: .acquiring)
                }
            }
            try await group.waitForAll()
        }
        for name in Self.names {
            try owner.store(Version.all[1].body, for: key(name), metadata: [1])
        }
        #expect(try read(guests[0], "seed \(seed), at rest") == Self.names.count)
        #expect(guests.allSatisfy { !$0.access.canWrite })
        #expect(try owner.verify(repair: false).damaged == 0)
    }

    @Test("of several stores that open a directory at once, one owns it")
    func race() async throws {
        for round in 0..<50 {
            let options = TestDisk(.posix).options()
            let disk = TestDisk(.posix)
            var own = options
            own.root = disk.root
            let stores = try await withThrowingTaskGroup(of: DiskStore.self) { [own] group in
                for _ in 0..<4 { group.addTask { try DiskStore(own) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(stores.count(where: \.access.canWrite) == 1, "round \(round)")
            stores.first { $0.access.canWrite }?.close()
            // A lock that no process holds is free, whatever the file says.
            #expect(try DiskStore(own).access.canWrite, "round \(round)")
        }
    }

    @Test("a guest becomes the owner when the owner has gone, and asks every ten seconds")
    func succession() throws {
        let disk = TestDisk(.posix)
        let (options, time) = (disk.options(), disk.time)
        let owner = try disk.open()
        try owner.store(bytes(100_000), for: key("a"))
        let tier = DiskTier(time: time) { () throws(CacheError) in
            try DiskStore(options, timeSource: time)
        }
        let guest = try tier.store()
        #expect(!guest.access.canWrite)
        let lease = try #require(try guest.entry(for: key("a")))
        time.advance(by: .seconds(10))
        #expect(try tier.store() === guest)
        owner.close()
        #expect(try tier.store() === guest)
        time.advance(by: .seconds(10))
        let next = try tier.store()
        #expect(next !== guest && next.access.canWrite)
        #expect(tier.openStore === next)
        #expect(firstDifference(lease.read(100_000), bytes(100_000)) == nil)
        #expect(
            try firstDifference(next.entry(for: key("a"))?.read(100_000), bytes(100_000)) == nil
        )
        try next.store(bytes(100), for: key("b"))
        #expect(try disk.open().access.canWrite == false)
        tier.close()
        #expect(try disk.open().access.canWrite)
    }

    @Test("a directory that could not be written is written once it can")
    func writableAgain() throws {
        let disk = TestDisk(.memory)
        let (options, time, memory) = (disk.options(), disk.time, disk.memory)
        memory.fail(.lock, with: .readOnlyFileSystem, times: 2)
        let tier = DiskTier(time: time) { () throws(CacheError) in
            try DiskStore(options, fileSystem: memory, timeSource: time)
        }
        #expect(try tier.store().access.canWrite == false)
        time.advance(by: .seconds(10))
        #expect(try tier.store().access.canWrite == false)
        time.advance(by: .seconds(10))
        #expect(try tier.store().access.canWrite)
    }
}
