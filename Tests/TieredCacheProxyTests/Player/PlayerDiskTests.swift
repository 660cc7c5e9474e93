import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Disk trouble never fails what the origin can serve (invariant 9).
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerDiskTests {
    private static let length: Int64 = 300_000

    @Test("Below the floor of free space nothing is stored; ten seconds after there is room it is")
    func floor() async throws {
        let disk = InMemoryFileSystem(capacity: 100 << 20)
        let time = ManualTimeSource()
        try await ProxyFixture.run(
            fileSystem: disk,
            cacheTime: time,
            minimumFreeDisk: 200 << 20,
            // What is asked for twice is to come from the disk or from the origin.
            memoryLimit: 1
        ) { fixture in
            let film = OriginResource.fresh(Self.length)
            fixture.origin.serve("/a.mp4", film)
            let whole = film.generatedBody?.bytes(in: 0..<Self.length)
            for count in 1...2 {
                let answer = try await fixture.ask("/a.mp4")
                #expect(firstDifference(answer.body, whole) == nil)
                #expect(fixture.requests("/a.mp4") >= count)
                #expect(try await fixture.cache.entries().isEmpty)
            }
            disk.setCapacity(1 << 30)
            time.advance(by: .seconds(10))
            #expect(try await firstDifference(fixture.ask("/a.mp4").body, whole) == nil)
            let asked = fixture.requests("/a.mp4")
            #expect(try await fixture.ask("/a.mp4", "Range: bytes=5-").status == 206)
            #expect(fixture.requests("/a.mp4") == asked)
        }
    }

    @Test(
        "In a directory that can only be read, stored bytes are read and all others pass through"
    )
    func readOnly() async throws {
        let disk = InMemoryFileSystem()
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        let film = OriginResource.fresh(Self.length)
        for path in ["/held.mp4", "/other.mp4"] { origin.serve(path, film) }
        let first = try await ProxyFixture(origin: origin, files: files, fileSystem: disk)
        _ = try await first.ask("/held.mp4")
        let asked = first.requests("/held.mp4")
        await first.stop()
        for call in [FileSystemError.Call.create, .write, .resize, .rename, .remove, .sync] {
            disk.fail(call, with: .readOnlyFileSystem, times: .max)
        }
        let second = try await ProxyFixture(origin: origin, files: files, fileSystem: disk)
        let whole = film.generatedBody?.bytes(in: 0..<Self.length)
        for _ in 0..<2 {
            for path in ["/held.mp4", "/other.mp4"] {
                let answer = try await second.ask(path)
                #expect(answer.status == 200 && answer.body == whole, "\(path)")
                let part = try await second.ask(path, "Range: bytes=200000-200009")
                #expect(part.status == 206 && part.body.count == 10, "\(path)")
            }
        }
        #expect(second.requests("/held.mp4") == asked)
        await second.stop()
        await origin.stop()
    }
}
