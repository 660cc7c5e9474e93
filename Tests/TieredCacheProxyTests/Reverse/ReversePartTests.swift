import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Parts that nothing may be joined to, or that contradict what is stored, from an origin's socket
/// to a client's.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReversePartTests {
    /// An origin with ranges and without a validator; what it has changes with each request.
    private static func answer(_ connection: RawConnection, _ request: RawRequest) throws -> Bool {
        let (start, end): (Int, Int)
        switch request["range"] {
        case "bytes=-70000": (start, end) = (130_000, 200_000)
        case "bytes=0-65535": (start, end) = (0, 65_536)
        default: (start, end) = (0, 200_000)
        }
        let status = request["range"] == nil ? "200 OK" : "206 Partial Content"
        try connection.send("HTTP/1.1 \(status)\r\nCache-Control: max-age=600\r\n")
        if request["range"] != nil {
            try connection.send("Content-Range: bytes \(start)-\(end - 1)/200000\r\n")
        }
        try connection.send("Content-Length: \(end - start)\r\n\r\n")
        let seed = request["range"] == "bytes=-70000" ? 1 : 2
        try connection.send((start..<end).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) })
        return true
    }

    private static func bytes(_ range: Range<Int>, seed: Int) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
    }

    @Test(arguments: [false, true])
    func partsArePassedOn(isShared: Bool) async throws {
        try await ReverseFixture.run {
            $0.configuration.isShared = isShared
        } origin: { connection, request in
            try Self.answer(connection, request)
        } _: { fixture in
            for _ in 0..<2 {
                let end = try await fixture.ask("/a", "Range: bytes=-70000")
                #expect(end.status == 206 && end["content-range"] == "bytes 130000-199999/200000")
                #expect(firstDifference(end.body, Self.bytes(130_000..<200_000, seed: 1)) == nil)
                let start = try await fixture.ask("/a", "Range: bytes=100-199")
                #expect(start.status == 206 && start["content-range"] == "bytes 100-199/200000")
                #expect(firstDifference(start.body, Self.bytes(100..<200, seed: 2)) == nil)
            }
            #expect(fixture.origin.requests.count == 4)
            let whole = try await fixture.ask("/a")
            #expect(whole.status == 200 && whole.body == Self.bytes(0..<200_000, seed: 2))
            let stored = try await fixture.ask("/a", "Range: bytes=100-199")
            #expect(firstDifference(stored.body, Self.bytes(100..<200, seed: 2)) == nil)
            #expect(fixture.origin.requests.count == 5)
        }
    }

    /// Which words of a range are wrong.
    enum Contradiction: CaseIterable {
        /// A total twice as long.
        case total
        /// More bytes than the range.
        case count
        /// A status that says that the part is the whole.
        case status
    }

    @Test(
        "After a range that contradicts itself a client gets the whole as the origin has it",
        arguments: Contradiction.allCases
    )
    func contradicted(_ contradiction: Contradiction) async throws {
        let film = Self.bytes(0..<2_000_000, seed: 1)
        try await ReverseFixture.run { _ in
        } origin: { connection, request in
            let head = "ETag: \"x\"\r\nCache-Control: max-age=600\r\n"
            guard let asked = request["range"]?.dropFirst("bytes=".count) else {
                try connection.send("HTTP/1.1 200 OK\r\n\(head)Content-Length: 2000000\r\n\r\n")
                try connection.send(film)
                return true
            }
            let bounds = asked.split(separator: "-").compactMap { Int($0) }
            let range = bounds[0]..<min(film.count, (bounds.last ?? film.count) + 1)
            let isFirst = bounds[0] == 0
            let status = isFirst || contradiction != .status ? "206 Partial Content" : "200 OK"
            let total = contradiction == .total ? 2 * film.count : film.count
            let excess = isFirst || contradiction != .count ? 0 : 5000
            try connection.send(
                "HTTP/1.1 \(status)\r\n\(head)Transfer-Encoding: chunked\r\nContent-Range: bytes "
                    + "\(range.lowerBound)-\(range.upperBound - 1)/\(total)\r\n\r\n"
                    + String(range.count + excess, radix: 16) + "\r\n"
            )
            try connection.send(Array(film[range]) + Array(repeating: 0, count: excess))
            try connection.send("\r\n0\r\n\r\n")
            return true
        } _: { fixture in
            let part = try await fixture.ask("/a", "Range: bytes=0-99999")
            #expect(part.status == 206 && part.body == Self.bytes(0..<100_000, seed: 1))
            // It has the head already when the origin turns out to contradict what is stored.
            _ = try await fixture.exchange(
                "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            for _ in 0..<2 {
                let whole = try await fixture.ask("/a")
                #expect(whole.status == 200 && firstDifference(whole.body, film) == nil)
            }
        }
    }
}
