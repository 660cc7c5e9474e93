import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCache

@testable import TieredCacheTesting

/// Connections, interruptions and what the log says of them.
@Suite("The scripted origin on the wire: behaviour", .tags(.realTime), .timeLimit(.minutes(10)))
struct ScriptedOriginBehaviourTests: ScriptedOriginSuite {
    let io = IOExecutor(threads: 4)

    @Test("A connection is kept alive, pipelined requests are answered in order")
    func keepAlive() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .text("aaa"))
            origin.serve("/b", .text("bbbb"))
            let port = origin.port
            try await io.run {
                let connection = try RawConnection(port: port)
                try connection.send(
                    "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
                )
                #expect(try connection.receiveHead().contains("Content-Length: 3\r\n"))
                #expect(try connection.receive(exactly: 3) == Array("aaa".utf8))
                #expect(try connection.receiveHead().contains("Content-Length: 4\r\n"))
                #expect(try connection.receive(exactly: 4) == Array("bbbb".utf8))
            }
            #expect(origin.log.exchanges.map(\.connection) == [0, 0])
            #expect(origin.log.acceptedConnections == 1)
        }
    }

    @Test("Scripts count the requests of their path")
    func counters() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .text("ok"), .first(2, .status(503, retryAfter: "7")))
            origin.serve("/r", OriginScript(.redirect(to: "/a", status: 307)))
            for expected in ["503", "503", "200", "200"] {
                let (head, _) = try await exchange(origin, "/a")
                #expect(head.hasPrefix("HTTP/1.1 \(expected) "))
                #expect(head.contains("Retry-After: 7\r\n") == (expected == "503"))
            }
            let (head, _) = try await exchange(origin, "/r")
            #expect(head.hasPrefix("HTTP/1.1 307 "))
            #expect(head.contains("Location: /a\r\n"))
            let (missing, _) = try await exchange(origin, "/none")
            #expect(missing.hasPrefix("HTTP/1.1 404 "))
        }
    }

    @Test(
        "A cut ends the body at its byte, by FIN or by RST",
        arguments: [0, 1, 70_000] as [Int64]
    )
    func cuts(after count: Int64) async throws {
        try await withOrigin { origin in
            let resource = OriginResource.generated(length: 1 << 20)
            origin.serve(
                "/a",
                resource,
                .first(1, .cut(after: count, .finish)).then(.cut(after: count))
            )
            let (head, body) = try await exchange(origin, "/a")
            #expect(head.contains("Content-Length: 1048576\r\n"))
            #expect(Int64(body.count) == count)
            #expect(try #require(resource.generatedBody).matches(body))
            let port = origin.port
            let (received, failure) = try await io.run {
                let connection = try RawConnection(port: port)
                try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try connection.receiveHead()
                let received = try connection.receive(exactly: Int(count))
                return (
                    received.count,
                    #expect(throws: RawConnection.Failure.self) {
                        try connection.receive()
                    }
                )
            }
            #expect(Int64(received) == count)
            #expect(failure?.errno == 104)
            await origin.waitUntil { $0.openResponses == 0 }
            #expect(origin.log.exchanges.map(\.outcome) == [.cut, .cut])
            #expect(origin.log.bodyBytesWritten(for: "/a") == 2 * count)
        }
    }

    @Test("A stall stays silent until the client leaves, a gate until it opens")
    func stalls() async throws {
        try await withOrigin { origin in
            let gate = OriginGate()
            let script = OriginScript.first(1, .stall(after: 10)).then(.wait(for: gate, after: 10))
            origin.serve("/a", .generated(length: 20), script)
            let port = origin.port
            try await io.run {
                let connection = try RawConnection(port: port)
                try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(try connection.receive(exactly: 10).count == 10)
            }
            await origin.waitUntil { $0.exchanges.first?.outcome == .disconnected }
            async let answer = exchange(origin, "/a")
            await origin.waitUntil { $0.exchanges.count == 2 && $0.bodyBytesWritten == 20 }
            #expect(origin.log.openResponses == 1)
            gate.open()
            #expect(try await answer.body.count == 20)
        }
    }

    @Test("An answer under way keeps its version, the next one has the new")
    func versions() async throws {
        try await withOrigin { origin in
            let resource = OriginResource.generated(length: 500_000)
            origin.serve("/a", resource, .first(1, .changeVersion(after: 1000)))
            let (head1, body1) = try await exchange(origin, "/a")
            let (head2, body2) = try await exchange(origin, "/a")
            #expect(head1.contains("ETag: \"1-500000-v1\"\r\n"))
            #expect(head2.contains("ETag: \"1-500000-v2\"\r\n"))
            #expect(try #require(resource.bodyOfVersion(1)).matches(body1))
            #expect(try #require(resource.bodyOfVersion(2)).matches(body2))
            #expect(!(try #require(resource.bodyOfVersion(1)).matches(body2)))
        }
    }

    @Test("Lies, garbage and control characters go out as written")
    func lies() async throws {
        try await withOrigin { origin in
            let lie = OriginBehaviour.lying([.contentLength: "7", .eTag: "\"z\""]).with {
                $0.omissions = [.acceptRanges]
                $0.rawFieldLines = ["X-Bad: a\u{1}b"]
                $0.interimStatuses = [103]
            }
            origin.serve("/a", .text("abc"), OriginScript(lie))
            origin.serve("/raw", OriginScript(.raw("\u{0}\u{1}nonsense")))
            origin.serve("/dropped", OriginScript(.dropped(.finish)))
            let (interim, rest) = try await exchange(origin, "/a")
            #expect(interim.hasPrefix("HTTP/1.1 103 "))
            let text = String(decoding: rest, as: UTF8.self)
            #expect(text.contains("\r\nContent-Length: 7\r\n"))
            #expect(text.contains("\r\nETag: \"z\"\r\n"))
            #expect(text.contains("\r\nX-Bad: a\u{1}b\r\n"))
            #expect(!text.contains("Accept-Ranges"))
            #expect(text.hasSuffix("\r\n\r\nabc"))
            #expect(try await exchange(origin, "/raw").head == "\u{0}\u{1}nonsense")
            #expect(try await exchange(origin, "/dropped").head.isEmpty)
        }
    }

    @Test("A request's body is read and kept")
    func post() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .text("ok"))
            let fields = ["Content-Length: 5", "Expect: 100-continue"]
            let (head, rest) = try await exchange(
                origin,
                "/a",
                method: "POST",
                fields: fields,
                body: "hello"
            )
            #expect(head.hasPrefix("HTTP/1.1 100 "))
            #expect(String(decoding: rest, as: UTF8.self).hasSuffix("\r\n\r\nok"))
            #expect(firstDifference(origin.log.exchanges.first?.body, Array("hello".utf8)) == nil)
        }
    }

    @Test("A client that has the last byte finds all of them in the log, and the status")
    func countedBeforeTheyArrive() async throws {
        try await withOrigin { origin in
            let (rounds, length) = (300, 1000)
            origin.serve("/a", .generated(length: Int64(length)))
            let port = origin.port
            try await io.run {
                let connection = try RawConnection(port: port)
                for round in 1...rounds {
                    try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
                    _ = try connection.receiveHead()
                    #expect(origin.log.exchanges.last?.status == 200)
                    #expect(try connection.receive(exactly: length).count == length)
                    #expect(origin.log.bodyBytesWritten == Int64(round * length))
                }
            }
        }
    }

    @Test("A piece that could not be written any more is not counted")
    func takenBack() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .generated(length: 8 << 30))
            let most = Guarded<Int64>(0)
            let isWatched = OriginGate()
            async let end: Void = origin.waitUntil { log in
                most.withLock { $0 = max($0, log.bodyBytesWritten) }
                isWatched.open()
                return log.exchanges.first?.outcome == .disconnected
            }
            await isWatched.wait()
            let port = origin.port
            try await io.run {
                let connection = try RawConnection(port: port)
                try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(try connection.receive(exactly: 1).count == 1)
            }
            await end
            #expect(origin.log.bodyBytesWritten == most.withLock { $0 } - 256 << 10)
        }
    }

    @Test("A reader that stops is not written to without bound")
    func backPressure() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .generated(length: 8 << 30))
            let port = origin.port
            try await io.run {
                let connection = try RawConnection(port: port, receiveBuffer: 64 * 1024)
                try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(try connection.receive(exactly: 1 << 20).count == 1 << 20)
            }
            await origin.waitUntil { $0.openResponses == 0 }
            // What the sockets of both ends may hold, and one piece: far below 8 GiB.
            #expect(origin.log.bodyBytesWritten < 64 << 20)
            #expect(origin.log.exchanges.first?.outcome == .disconnected)
        }
    }

    @Test("A throttle and a delay sleep as long as they say")
    func throttle() async throws {
        let time = RecordingTimeSource()
        try await withOrigin(timeSource: time) { origin in
            let slow = OriginBehaviour.throttled(bytesPerSecond: 1000).with {
                $0.delay = .seconds(3)
                $0.interruptions = [(500, .pause(.seconds(5)))]
            }
            origin.serve("/a", .generated(length: 2000), OriginScript(slow))
            let (_, body) = try await exchange(origin, "/a")
            #expect(body.count == 2000)
            let slept = time.slept.withLock { $0 }
            #expect(slept == .seconds(10))
        }
    }

    @Test("Open answers are counted, and a stop ends them")
    func highWaterMark() async throws {
        let origin = try await ScriptedOrigin.start()
        origin.serve("/a", .generated(length: 10), OriginScript(.stall(after: 5)))
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { _ = try? await self.exchange(origin, "/a") }
            }
            await origin.waitUntil { $0.openResponses == 4 && $0.bodyBytesWritten == 20 }
            await origin.stop()
        }
        #expect(origin.log.openResponsesHighWaterMark == 4)
        #expect(origin.log.openResponses == 0)
        #expect(origin.log.exchanges.allSatisfy { $0.outcome == .disconnected })
        let port = origin.port
        try await origin.start()
        #expect(origin.port == port)
        origin.serve("/a", .text("back"))
        #expect(try await firstDifference(exchange(origin, "/a").body, Array("back".utf8)) == nil)
        await origin.stop()
    }
}

/// Sleeps no time at all and adds up what it was asked for.
private final class RecordingTimeSource: TimeSource {
    let slept = Guarded(Duration.zero)

    func wallTime() -> WallTime { WallTime(seconds: 0) }

    func monotonicTime() -> MonotonicTime {
        MonotonicTime(nanoseconds: slept.withLock { $0.saturatedNanoseconds })
    }

    func sleep(for duration: Duration) async throws {
        slept.withLock { $0 += duration }
    }
}
