import FoundationEssentials
import Synchronization
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Warm responses over real sockets, however the bytes get there: copied from memory or from the
/// page cache, sent from the file, or read by a task.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerHitTransferTests {
    /// Where bytes may be had from without waiting.
    enum PageCache: CaseIterable {
        case asTheKernelSays, everythingIsThere, nothingIsThere
    }

    private func run(
        _ pages: PageCache,
        _ body: (ProxyFixture) async throws -> Void
    ) async throws {
        let fileSystem: any FileSystem =
            switch pages {
            case .asTheKernelSays: POSIXFileSystem()
            case .everythingIsThere: WatchedFileSystem(POSIXFileSystem(), isWarm: true) { _, _ in }
            case .nothingIsThere: WatchedFileSystem(POSIXFileSystem(), isCold: true) { _, _ in }
            }
        try await ProxyFixture.run(fileSystem: fileSystem, { _ in }, body)
    }

    @Test(arguments: PageCache.allCases)
    func everySizeIsDeliveredAgainAndAgain(pages: PageCache) async throws {
        try await run(pages) { fixture in
            for length: Int64 in [0, 1, 4096, 65_536, 65_537, 3 << 20 + 17] {
                let path = "/\(length).mp4"
                let resource = OriginResource.fresh(length)
                fixture.origin.serve(path, resource)
                let whole = try #require(resource.generatedBody).bytes(in: 0..<length)
                let first = try await fixture.ask(path)
                #expect(firstDifference(first.body, whole) == nil)
                let asked = fixture.requests(path)
                for _ in 0..<3 {
                    let again = try await fixture.ask(path)
                    #expect(again.status == 200 && again["etag"] == first["etag"])
                    #expect(firstDifference(again.body, whole) == nil, "\(length)")
                }
                #expect(fixture.requests(path) == asked)
            }
        }
    }

    @Test(arguments: PageCache.allCases)
    func rangesOnOneConnectionAreDelivered(pages: PageCache) async throws {
        try await run(pages) { fixture in
            let length: Int64 = 3 << 20
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let whole = try await fixture.ask("/a.mp4").body
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let ranges: [Range<Int>] = [
                0..<1, 5..<70_000, 65_536..<131_072, 100..<(3 << 20), 3_000_000..<(3 << 20),
                0..<(3 << 20),
            ]
            try await onThread {
                let connection = try RawConnection(port: port)
                // All at once: pipelined.
                try connection.send(
                    ranges.map { range in
                        "GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n"
                            + "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)\r\n\r\n"
                    }.joined()
                )
                for range in ranges {
                    let answer = try connection.receiveResponse()
                    #expect(answer.status == 206)
                    #expect(firstDifference(answer.body, Array(whole[range])) == nil, "\(range)")
                }
            }
        }
    }

    @Test func whatATruncatedFileLacksIsFetchedAnew() async throws {
        try await run(.everythingIsThere) { fixture in
            // Longer ones are never sent from their files.
            let length: Int64 = 12 << 20
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let whole = try await fixture.ask("/a.mp4").body
            #expect(whole.count == Int(length))
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let directory = fixture.files.path
            try await onThread {
                let connection = try RawConnection(port: port, receiveBuffer: 65_536)
                try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n")
                _ = try connection.receiveHead()
                let start = try connection.receive(exactly: 1 << 20)
                try Self.emptyFiles(below: directory, longerThan: 1 << 20)
                let rest = try connection.receive(exactly: whole.count - start.count)
                #expect(firstDifference(start + rest, whole) == nil)
            }
        }
    }

    @Test func whatASocketHasNotTakenIsLookedForAnew() async throws {
        let isCold = Atomic(false)
        let firstRead = Guarded(Int64.max)
        let noteRead: @Sendable (Int64) -> Void = { offset in
            firstRead.withLock { $0 = min($0, offset) }
        }
        let pages = WatchedFileSystem(
            POSIXFileSystem(),
            isCold: isCold.load(ordering: .relaxed),
            isWarm: true,
            watchReading: noteRead
        ) { _, _ in }
        try await ProxyFixture.run(fileSystem: pages) { fixture in
            let resource = OriginResource.fresh(12 << 20)
            fixture.origin.serve("/a.mp4", resource)
            let whole = try await fixture.ask("/a.mp4").body
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let connection = try await onThread {
                let connection = try RawConnection(port: port, receiveBuffer: 65_536)
                try connection.send(
                    "GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n"
                )
                _ = try connection.receiveHead()
                return Paused(connection: connection)
            }
            // Until its socket is full.
            while await fixture.proxy.server.connections.unsent().allSatisfy({ $0 == 0 }) {}
            // The kernel gives the pages to something else while the player pauses.
            firstRead.withLock { $0 = .max }
            isCold.store(true, ordering: .relaxed)
            let rest = try await onThread {
                try connection.connection.receive(exactly: whole.count)
            }
            #expect(firstDifference(rest, whole) == nil)
            // A socket takes some hundred kilobytes; the rest of the piece was read by threads that
            // may wait.
            #expect(firstRead.withLock { $0 } < PendingResponse.maximumLeased)
        }
    }

    /// Keeps a connection open; one thread at a time uses it.
    private struct Paused: @unchecked Sendable {
        // Unchecked: only handed over.
        let connection: RawConnection
    }

    private static func emptyFiles(below directory: FilePath, longerThan limit: UInt64) throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.string)
        for path in names.map({ directory.appending($0).string }) {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            guard attributes[.type] as? FileAttributeType == .typeRegular,
                attributes[.size] as? UInt64 ?? 0 > limit
            else { continue }
            let file = try FileDescriptor.open(FilePath(path), .readWrite)
            try file.closeAfter { try file.resize(to: 0) }
        }
    }
}
