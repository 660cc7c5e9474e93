import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

/// What options do to the requests of a download.
@Suite("Options of downloads", .tags(.realTime), .timeLimit(.minutes(10)))
struct AgentOptionTests {
    @Test("Fields are sent as the options say")
    func fields() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000)
            _ = try await fixture.download(
                "/a",
                [
                    "referer": "*", "user-agent": "me", "http-user": "u", "http-passwd": "p",
                    "header": ["X-One: 1", "X-Two: 2"],
                ]
            )
            let fields = try #require(fixture.origin.log.exchanges.last?.fields)
            #expect(fields[.referer] == fixture.origin.url("/a") && fields[.userAgent] == "me")
            #expect(fields[.authorization] == "Basic dTpw")
            let names = ["X-One", "X-Two"].compactMap { HTTPField.Name($0) }
            #expect(names.map { fields[$0] } == ["1", "2"])
        }
    }

    @Test("A large file comes by as many requests as split and max-connection-per-server allow")
    func split() async throws {
        try await AgentFixture.run { fixture in
            let gate = OriginGate()
            fixture.serve("/a", length: 34 << 20, .first(1, .wait(for: gate, after: 1 << 20)))
            let gid = try await fixture.add(
                "/a",
                ["split": "5", "max-connection-per-server": "2"]
            )
            // The first response waits until the second request has come.
            await fixture.origin.waitUntil { $0.exchanges.count == 2 }
            try await fixture.until(.complete, of: gid) { gate.open() }
            #expect(try fixture.file("a", equals: "/a"))
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    @Test(
        "A rate is changed while the download runs, that of one and that of all",
        arguments: ["max-download-limit", "max-overall-download-limit"]
    )
    func rates(option: String) async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 2_000_000)
            // Half an hour and more, if it stays so.
            let isOfAll = option == "max-overall-download-limit"
            let slow: JSONValue = [option: "1K"]
            if isOfAll { _ = try await fixture.call("aria2.changeGlobalOption", slow) }
            let gid = try await fixture.add("/a", isOfAll ? [:] : slow)
            await fixture.origin.waitUntil { $0.bodyBytesWritten > 0 }
            try await fixture.until(.complete, of: gid) {
                let fast: JSONValue = [option: "0"]
                _ =
                    try await isOfAll
                    ? fixture.call("aria2.changeGlobalOption", fast)
                    : fixture.call("aria2.changeOption", .string(gid), fast)
            }
            #expect(try fixture.file("a", equals: "/a"))
        }
    }

    @Test("A silent origin is given up after timeout, and tried as often as max-tries says")
    func tries() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000, .first(9, .stall(after: 0)))
            // Begins what waits for its time.
            let service = try fixture.service
            let running = Task { await service.untilDone() }
            defer { running.cancel() }
            for tries in 1...2 {
                let before = fixture.origin.log.exchanges.count
                let status = try await fixture.download(
                    "/a",
                    ["timeout": "1", "max-tries": .string("\(tries)")],
                    until: .error
                )
                #expect(status["errorCode"] == "2", "\(status)")
                #expect(fixture.origin.log.exchanges.count - before == tries)
            }
        }
    }

    @Test("An origin that breaks off is tried as often as max-tries says, in runs of five tries")
    func broken() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000, .first(9, .cut(after: 0)))
            let status = try await fixture.download("/a", ["max-tries": "2"], until: .error)
            #expect(status["errorCode"] == "6", "\(status)")
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }
}
