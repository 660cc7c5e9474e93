import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// The odd ways in which a range may be written, of what is stored and of what is not.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerRangeFormsTests {
    private static let length: Int64 = 300_000
    private static let long = String(repeating: "9", count: 40)

    private func ask(
        _ fields: [String],
        isStored: Bool,
        _ body: (RawResponse, OriginResource) throws -> Void
    ) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(Self.length)
            fixture.origin.serve("/a.mp4", film)
            // The second time it is answered on the event loop, if it can be.
            for _ in 0..<(isStored ? 2 : 0) { _ = try await fixture.ask("/a.mp4") }
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let answer = try await onThread {
                let connection = try RawConnection(port: port)
                let lines = ["GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"] + fields
                try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
                return try connection.receiveResponse()
            }
            try body(answer, film)
        }
    }

    @Test(
        "One range, however it is written, is 206",
        arguments: [
            ("bytes=0-\(long)", 0..<length), ("bytes=-\(long)", 0..<length),
            ("bytes=000000000000000000000000000005-9", 5..<10), ("Bytes=5-9", 5..<10),
            ("bytes=5-9 ", 5..<10), ("bytes= 5-9", 5..<10), ("bytes=,5-9,", 5..<10),
            ("bytes=299999-299999", 299_999..<300_000), ("bytes=-1", 299_999..<300_000),
        ] as [(String, Range<Int64>)],
        [false, true]
    )
    func single(_ form: (field: String, range: Range<Int64>), _ isStored: Bool) async throws {
        let (field, range) = form
        try await ask(["Range: \(field)"], isStored: isStored) { answer, film in
            #expect(answer.status == 206, "\(field)")
            let (first, last) = (range.lowerBound, range.upperBound - 1)
            #expect(answer["content-range"] == "bytes \(first)-\(last)/\(Self.length)", "\(field)")
            #expect(answer["content-length"] == "\(range.count)")
            #expect(
                firstDifference(answer.body, film.generatedBody?.bytes(in: range)) == nil,
                "\(field)"
            )
        }
    }

    @Test(
        "A range of which no byte exists is 416 with the length",
        arguments: ["bytes=-0", "bytes=\(long)-", "bytes=\(long)-\(long)9", "bytes=300000-"],
        [false, true]
    )
    func beyond(_ field: String, _ isStored: Bool) async throws {
        try await ask(["Range: \(field)"], isStored: isStored) { answer, _ in
            #expect(answer.status == 416, "\(field)")
            #expect(answer["content-range"] == "bytes */\(Self.length)", "\(field)")
        }
    }

    @Test(
        "Several ranges, also such as overlap, and what is none, are as if nothing was asked",
        arguments: [
            ["Range: bytes=0-9,5-20"], ["Range: bytes=0-,-5"], ["Range: bytes=0-0,0-0,0-0"],
            ["Range: bytes=0-9", "Range: bytes=20-29"], ["Range: bytes=--5"],
            ["Range: bytes=5"], ["Range: bytes=-"], ["Range: bytes=+5-9"], ["Range: bytes=0x5-9"],
            ["Range: bytes=5 - 9"], ["Range: bytes 5-9"], ["Range: bytes=9-5"], ["Range:"],
            ["Range: bytes=5-9;q=1"], ["Range: bytes=٥-9"],
        ],
        [false, true]
    )
    func others(_ fields: [String], _ isStored: Bool) async throws {
        try await ask(fields, isStored: isStored) { answer, film in
            #expect(answer.status == 200, "\(fields)")
            #expect(answer["content-range"] == nil)
            #expect(
                firstDifference(answer.body, film.generatedBody?.bytes(in: 0..<Self.length)) == nil,
                "\(fields)"
            )
        }
    }
}
