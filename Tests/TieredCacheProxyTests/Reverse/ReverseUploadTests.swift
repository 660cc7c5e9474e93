import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Bodies on their way to the origin and back, and when they are asked for.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseUploadTests {
    private static let continueHead = "HTTP/1.1 100 Continue\r\n\r\n"
    private let expectant =
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
        + "Expect: 100-continue\r\n\r\n"

    @Test func theBodyIsAskedForWhenTheOriginAsksForIt() async throws {
        try await ReverseFixture.run { connection, request in
            try #require(request["expect"] == "100-continue")
            try connection.send(Self.continueHead)
            let body = try connection.receiveBody(of: request)
            try connection.answer(String(decoding: body, as: UTF8.self))
            return true
        } _: { fixture in
            let (port, expectant) = (fixture.proxy.port, expectant)
            let answers = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(expectant)
                let interim = try connection.receiveResponse()
                try connection.send("abc")
                return [interim, try connection.receiveResponse()]
            }
            // Once, wherever it came from.
            #expect(answers.map(\.status) == [100, 200])
            #expect(answers[0].fields.isEmpty && answers[1].text == "abc")
        }
    }

    @Test func aRefusalOfTheOriginComesWithoutTheBodyBeingAskedFor() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("no", "Connection: close", status: "403 Forbidden")
            _ = try connection.receiveAll()
            return false
        } _: { fixture in
            let (port, expectant) = (fixture.proxy.port, expectant)
            let answer = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(expectant)
                return try connection.receiveResponse()
            }
            #expect(answer.status == 403 && answer.text == "no")
            #expect(answer["connection"] == "close")
        }
    }

    @Test func anOriginThatKnowsNoExpectationsGetsTheBodyAfterAWhile() async throws {
        try await ReverseFixture.run {
            $0.settings.continueTimeout = .milliseconds(10)
        } origin: { connection, request in
            let body = try connection.receiveBody(of: request)
            try connection.answer(String(decoding: body, as: UTF8.self))
            return true
        } _: { fixture in
            let (port, expectant) = (fixture.proxy.port, expectant)
            let answers = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(expectant)
                let interim = try connection.receiveResponse()
                try connection.send("abc")
                return [interim, try connection.receiveResponse()]
            }
            #expect(answers.map(\.status) == [100, 200] && answers[1].text == "abc")
        }
    }

    @Test func largeChunkedBodiesGoBothWays() async throws {
        let size = 8 << 20
        try await ReverseFixture.run { connection, request in
            try #require(request["transfer-encoding"] == "chunked")
            let body = try connection.receiveBody(of: request)
            try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try connection.send("\(String(body.count, radix: 16))\r\n")
            try connection.send(body)
            try connection.send("\r\n0\r\n\r\n")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
            let answer = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(
                    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                for start in stride(from: 0, to: size, by: 100_000) {
                    let chunk = Array(body[start..<min(size, start + 100_000)])
                    try connection.send("\(String(chunk.count, radix: 16))\r\n")
                    try connection.send(chunk)
                    try connection.send("\r\n")
                }
                try connection.send("0\r\n\r\n")
                return try connection.receiveResponse()
            }
            #expect(answer["transfer-encoding"] == "chunked")
            #expect(firstDifference(answer.body, body) == nil)
        }
    }

    /// An origin that does not read makes the client wait; nothing of the size of the body is kept.
    ///
    /// What the kernels of four sockets take is a few megabytes each.
    @Test func anUploadGoesNoFasterThanTheOriginReads() async throws {
        let (size, most) = (192 << 20, 96 << 20)
        let gate = ThreadGate()
        try await ReverseFixture.run { connection, _ in
            gate.wait()
            var rest = size
            while rest > 0 {
                let bytes = try connection.receive(atMost: 1 << 20)
                try #require(!bytes.isEmpty)
                rest -= bytes.count
            }
            try connection.answer("ok")
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let (taken, answer) = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send(
                    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: \(size)\r\n\r\n"
                )
                let bytes = [UInt8](repeating: 7, count: 1 << 20)
                var taken = 0
                while taken < size {
                    let count = try connection.send(bytes, whileTakenWithin: 500)
                    taken += count
                    if count < bytes.count { break }
                }
                gate.open()
                for _ in 0..<((size - taken) >> 20) { try connection.send(bytes) }
                try connection.send([UInt8](repeating: 7, count: (size - taken) & (1 << 20 - 1)))
                return (taken, try connection.receiveResponse())
            }
            #expect(taken < most)
            #expect(answer.text == "ok")
        }
    }

    /// Why the body of a download is not stored.
    enum Obstacle: CaseIterable {
        case forbidden, noDirectory, unusableDirectory, noRoom

        func stand(in configuration: inout MediaCache.Configuration) {
            switch self {
            case .forbidden: break
            case .noDirectory: configuration.directory = nil
            case .unusableDirectory: configuration.path = "/dev/null/cache"
            case .noRoom: configuration.diskLimit = 4 << 20
            }
        }
    }

    /// A client that does not read makes the origin wait, also where the disk takes nothing: no
    /// body is held in memory instead.
    @Test(arguments: Obstacle.allCases)
    func aDownloadGoesNoFasterThanTheClientReads(obstacle: Obstacle) async throws {
        let (size, most) = (192 << 20, 96 << 20)
        let sent = Guarded(0)
        let gate = ThreadGate()
        let control = obstacle == .forbidden ? "no-store" : "max-age=600"
        try await ReverseFixture.run {
            obstacle.stand(in: &$0.configuration)
        } origin: { connection, _ in
            try connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: \(control)\r\nContent-Length: \(size)\r\n\r\n"
            )
            let bytes = [UInt8](repeating: 7, count: 1 << 20)
            var taken = 0
            while taken < size {
                let count = try connection.send(bytes, whileTakenWithin: 500)
                taken += count
                if count < bytes.count { break }
            }
            sent.withLock { $0 = taken }
            gate.open()
            var rest = size - taken
            while rest > 0 {
                try connection.send(Array(bytes.prefix(rest)))
                rest -= min(rest, bytes.count)
            }
            return true
        } _: { fixture in
            let port = fixture.proxy.port
            let count = try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                gate.wait()
                _ = try connection.receiveHead()
                var count = 0
                while count < size {
                    let bytes = try connection.receive(atMost: 1 << 20)
                    if bytes.isEmpty { break }
                    count += bytes.count
                }
                return count
            }
            #expect(count == size)
            #expect(sent.withLock { $0 } < most)
        }
    }
}
