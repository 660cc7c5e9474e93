import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// A directory that others use, or have used, as well: what they fetched answers no client.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseDirectoryTests {
    /// What was asked with, and what the origin said to it.
    struct Fetched: Sendable, CustomTestStringConvertible {
        var field: String?
        var answer: [String]
        var size = 0

        var testDescription: String {
            "\(field ?? "nothing"), \(answer.joined(separator: ", ")), \(size) bytes"
        }
    }

    private static let fields: [String?] = [
        nil, "Cookie: s=victim", "Authorization: Bearer victim",
    ]
    private static let answers = [
        ["Cache-Control: max-age=600"], ["Cache-Control: private, max-age=600"],
        ["Set-Cookie: session=victim", "Cache-Control: max-age=600"],
    ]
    private static let all = fields.flatMap { field in
        answers.flatMap { answer in
            [0, 300_000].map { Fetched(field: field, answer: answer, size: $0) }
        }
    }

    /// Answers with the cookie and the credentials of the request, and `fetched.answer` for those
    /// of the victim.
    private func run(
        _ fetched: Fetched,
        _ change: (inout ReverseFixture.Options) -> Void,
        _ body: (ReverseFixture) async throws -> Void
    ) async throws {
        try await ReverseFixture.run(change) { connection, request in
            try Self.answer(request, of: fetched, on: connection)
        } _: {
            try await body($0)
        }
    }

    private static func answer(
        _ request: RawRequest,
        of fetched: Fetched,
        on connection: RawConnection
    ) throws -> Bool {
        let client = request["cookie"] ?? request["authorization"] ?? request["x-client"]
        let content =
            "for \(client ?? "anybody")" + String(repeating: ".", count: fetched.size)
        let fields = client == nil ? ["Cache-Control: max-age=600"] : fetched.answer
        let lines = ["HTTP/1.1 200 OK"] + fields + ["Content-Length: \(content.utf8.count)"]
        try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + content)
        return true
    }

    private func expectNothingOfTheVictim(_ fixture: ReverseFixture, _ target: String) async throws
    {
        for range in [nil, "Range: bytes=0-99", nil] {
            let answer = try await fixture.ask(target, range ?? "Accept: */*")
            #expect(!answer.text.contains("victim"))
            #expect(answer["set-cookie"] == nil)
        }
    }

    @Test("What an application fetched answers no client", arguments: all, [true, false])
    func applications(_ fetched: Fetched, isShared: Bool) async throws {
        try await run(fetched) {
            $0.configuration.isShared = isShared
        } _: { fixture in
            var request = try CacheRequest("\(fixture.origin.url)/a")
            let field = (fetched.field ?? "X-Client: victim").split(separator: ":", maxSplits: 1)
            let name = try #require(HTTPField.Name(String(field[0])))
            request.fields[name] = String(field[1].dropFirst())
            let own = try await fixture.cache.data(for: request)
            #expect(String(decoding: own.prefix(40), as: UTF8.self).contains("victim"))
            try await expectNothingOfTheVictim(fixture, "/a")
        }
    }

    @Test("What a private proxy stored answers no client of a shared one", arguments: all)
    func privateOnes(_ fetched: Fetched) async throws {
        let files = try TemporaryDirectory("tieredcache-directory")
        let directory = URL(filePath: files.appending("cache").string)
        // It keeps its port, which another test would get, and answers nothing once it has left.
        let hasLeft = Guarded(false)
        let origin = try RawOrigin { connection, request in
            guard !hasLeft.withLock({ $0 }) else { return false }
            return try Self.answer(request, of: fetched, on: connection)
        }
        do {
            try await run(fetched) {
                $0.configuration.directory = directory
                $0.originURL = origin.url
            } _: { fixture in
                _ = try await fixture.ask("/a", fetched.field ?? "X-Client: victim")
            }
            hasLeft.withLock { $0 = true }
            try await checkStored(fetched, directory, of: origin.url)
        } catch {
            await origin.stop()
            throw error
        }
        await origin.stop()
    }

    private func checkStored(_ fetched: Fetched, _ directory: URL, of origin: String) async throws {
        try await run(fetched) {
            $0.configuration.directory = directory
            $0.configuration.isShared = true
            $0.configuration.retries = 1
            $0.originURL = origin
        } _: { fixture in
            let isForAll =
                fetched.answer == Self.answers[0] && fetched.field != Self.fields[2]
            let answer = try await fixture.ask("/a")
            #expect((answer.status == 200) == isForAll)
            if !isForAll { try await expectNothingOfTheVictim(fixture, "/a") }
        }
    }
}
