import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache
@testable import TieredCacheCLI

/// Commands that only look leave the directory to a process that wants to write to it.
@Suite("Reading beside a writer", .tags(.realTime), .timeLimit(.minutes(10)))
struct ReadingTests {
    private static let film = 18 << 20

    /// Opens the directory as a command that only looks does.
    private func reader(_ place: Workplace) throws -> DiskStore {
        var options = DiskStore.Options(root: place.cache, limit: 1 << 30)
        options.minimumFree = 0
        options.isReader = true
        return try DiskStore(options)
    }

    private func lockFile(_ place: Workplace) throws -> Data {
        try Data(contentsOf: URL(filePath: place.cache.appending("LOCK").string))
    }

    @Test("none of them becomes the owner of a directory that has none")
    func neverOwner() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/large", length: 200_000)
            place.origin.serveFresh("/small", length: 1000)
            let (large, small) = (place.origin.url("/large"), place.origin.url("/small"))
            try await place.run("prefetch", large, small).expectDone()
            let before = try lockFile(place)
            for command in [
                ["list"], ["stats"], ["show", large], ["show", small], ["events"], ["verify"],
                ["path", large],
            ] {
                try await place.run(command).expectDone()
                #expect(try lockFile(place) == before, "\(command)")
            }
            // Kept inside its record, so it has to be written out.
            try await place.run("path", small).expectDone()
            #expect(try lockFile(place) != before)
            let shown = try await place.run("show", large)
            shown.expectDone()
            #expect(shown.text.contains("no other process has it open"))
        }
    }

    @Test("they say the same as an owner would, also after a crash")
    func sameAnswers() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 300_000)
            try await place.run("prefetch", place.origin.url("/film")).expectDone()
            let owner = try DiskStore(DiskStore.Options(root: place.cache, limit: 1 << 30))
            let usage = try owner.usage()
            let summaries = try owner.list()
            owner.close()
            let reader = try reader(place)
            #expect(!reader.access.canWrite)
            #expect(try reader.usage() == usage)
            #expect(try reader.list().map(\.key) == summaries.map(\.key))
            #expect(try reader.list().map(\.storedBytes) == summaries.map(\.storedBytes))
            #expect(try reader.verify(repair: false).damaged == 0)
            let error = #expect(throws: CacheError.self) { try reader.removeAll() }
            #expect(error?.code == .notOwner)
            let stats = try await place.run("stats", "--json")
            #expect(try #require(stats.json.integer("bytes")) == usage.bytes)
        }
    }

    @Test("a download beside one of them owns the directory and is stored")
    func downloadBeside() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            place.origin.serveFresh("/b", length: 200_000)
            try await place.run("prefetch", place.origin.url("/a")).expectDone()
            let reader = try reader(place)
            #expect(try reader.list().count == 1)
            // Ends with 75 where another process owns the directory.
            try await place.run("prefetch", place.origin.url("/b")).expectDone()
            #expect(try reader.list().count == 2)
        }
    }

    /// Makes room for another film in a real process.
    private func crowd(_ place: Workplace) async throws {
        place.origin.serveFresh("/other", length: 10 << 20)
        let other = place.origin.url("/other")
        try await place.run("prefetch", other, "--disk-limit", "24MiB").expectDone()
    }

    private func storeFilm(_ place: Workplace) async throws {
        place.origin.serveFresh("/film", length: Int64(Self.film))
        let film = place.origin.url("/film")
        try await place.get("/film", into: "film", "--disk-limit", "24MiB").expectDone()
        let shown = try await place.run("show", film, "--json")
        try #require(shown.json.integer("held") == Int64(Self.film))
    }

    @Test("the owner process punches nothing out of a body that another process has open")
    func notPunched() async throws {
        try await Workplace.with { place in
            try await storeFilm(place)
            let reader = try reader(place)
            let key = try #require(try reader.list().first?.key)
            let lease = try #require(try reader.entry(for: key))
            let path = try #require(try bodyFile(place))
            let open = try FileDescriptor.open(path, .readOnly)
            defer { try? open.close() }
            let before = try Data(contentsOf: URL(filePath: place.files.appending("film").string))
            try await crowd(place)
            // It had to leave as a whole: its readers still see every byte of it.
            #expect(try reader.entry(for: key) == nil)
            var buffer = [UInt8](repeating: 0, count: Self.film)
            let count = buffer.withUnsafeMutableBytes { lease.read(at: 0, into: $0) }
            #expect(count == Self.film && Data(buffer) == before)
            let plain = try buffer.withUnsafeMutableBytes { try open.read(into: $0) }
            #expect(plain == Self.film && Data(buffer) == before)
        }
    }

    @Test("where no process has it open it loses its tail and keeps its head")
    func punched() async throws {
        try await Workplace.with { place in
            try await storeFilm(place)
            try await crowd(place)
            let shown = try await place.run("show", place.origin.url("/film"), "--json")
            shown.expectDone()
            #expect(shown.json.integer("held") == 1 << 20)
        }
    }

    private func bodyFile(_ place: Workplace) throws -> FilePath? {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: place.cache.string)
        return paths.first { $0.hasSuffix(".body") }.map { place.cache.appending($0) }
    }
}
