import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

@Suite("DownloadAgent", .tags(.realTime), .timeLimit(.minutes(5)))
struct DownloadAgentTests {
    private static func attach(_ fixture: AgentFixture) async throws -> DownloadAgent {
        try await DownloadAgent(
            session: "app",
            directory: URL(file: fixture.files.appending("cache")),
            socket: URL(file: fixture.files.appending("socket")),
            program: URL(file: fixture.files.appending("none"))
        )
    }

    /// The first report of a download in a state, and all that came before.
    private static func until(
        _ id: DownloadID,
        is name: String,
        _ agent: DownloadAgent
    ) async throws -> [DownloadAgent.Download] {
        var told: [DownloadAgent.Download] = []
        for try await download in agent.downloads {
            told.append(download)
            if download.id == id, download.state.name == name { break }
        }
        return told
    }

    @Test("A download is told until its file is there; acknowledged, it is not told again")
    func finished() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/film", length: 300_000)
            let agent = try await Self.attach(fixture)
            let id = try await agent.add(
                CacheRequest(fixture.origin.url("/film")),
                options: ["out": "film.mp4"]
            )
            let last = try #require(try await Self.until(id, is: "finished", agent).last)
            #expect(last.status.bytes == 300_000 && last.status.total == 300_000)
            let expected = fixture.files.appending("out/film.mp4")
            #expect(last.file?.path(percentEncoded: false) == expected.string)
            #expect(try fixture.file("film.mp4", equals: "/film"))
            try await agent.acknowledge(id)
            #expect(try await fixture.call("aria2.tellStopped", 0, 9) == [])
            // One that was acknowledged is not told to another loop: this one comes first.
            let next = try await agent.add(
                CacheRequest(fixture.origin.url("/film")),
                options: ["out": "next", "pause": "true"]
            )
            #expect(try await Self.until(next, is: "paused", agent).map(\.id) == [next])
            await agent.close()
        }
    }

    @Test("An application that is started again is told what it has not acknowledged, in order")
    func again() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/film", length: 1000)
            let first = try await Self.attach(fixture)
            let film = try await first.add(CacheRequest(fixture.origin.url("/film")))
            _ = try await Self.until(film, is: "finished", first)
            let missing = try await first.add(CacheRequest(fixture.origin.url("/missing")))
            let failed = try #require(try await Self.until(missing, is: "failed", first).last)
            guard case .failed(let problem) = failed.state else { return }
            #expect(problem.code == .httpStatus && problem.message.contains("404"))
            await first.close()
            let second = try await Self.attach(fixture)
            let told = try await Self.until(missing, is: "failed", second)
            #expect(told.map(\.id) == [film, missing])
            #expect(told.map(\.state.name) == ["finished", "failed"])
            await second.close()
            // A loop of one that was closed ends.
            await #expect(throws: CacheError.self) {
                for try await _ in second.downloads {}
            }
        }
    }

    @Test("A download that is cancelled is told as such; a paused one goes on")
    func commands() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/film", length: 1000)
            let agent = try await Self.attach(fixture)
            var request = try CacheRequest(fixture.origin.url("/film"))
            request.fields[.userAgent] = "a"
            let cancelled = try await agent.add(request, options: ["pause": "true"])
            try await agent.acknowledge(cancelled)
            try await agent.cancel(cancelled)
            _ = try await Self.until(cancelled, is: "cancelled", agent)
            let resumed = try await agent.add(request, options: ["pause": "true"])
            request.fields[.userAgent] = "b"
            try await agent.resume(resumed, with: request)
            _ = try await Self.until(resumed, is: "finished", agent)
            #expect(fixture.origin.log.exchanges.last?.fields[.userAgent] == "b")
            await agent.close()
        }
    }

    @Test("What cannot be done is refused in words")
    func refused() async throws {
        try await AgentFixture.run { fixture in
            let agent = try await Self.attach(fixture)
            let url = fixture.origin.url("/film")
            let post = try CacheRequest(url, key: "k", method: .post)
            await Self.expect("only a GET") { try await agent.add(post) }
            let unknown = try #require(DownloadID("00000000000000ab"))
            await Self.expect("GID 00000000000000ab") { try await agent.cancel(unknown) }
            await Self.expect("URL") { try await agent.add(CacheRequest("ftp://a/b")) }
            await Self.expect("the option '--checksum'") {
                try await agent.add(CacheRequest(url), options: ["checksum": "x"])
            }
            await Self.expect("1 to 128 letters") { try await DownloadAgent(session: "a b") }
            await agent.close()
            await Self.expect("was closed") { try await agent.cancel(unknown) }
        }
    }

    private static func expect<Value>(
        _ words: String,
        from body: () async throws -> Value
    ) async {
        let error = await #expect(throws: CacheError.self) { _ = try await body() }
        let message = error?.message ?? ""
        #expect(message.contains(words), "\(message)")
    }
}

@Suite("What an application knows of its session")
struct SessionViewTests {
    private static func download(
        _ number: UInt64,
        _ state: DownloadState
    )
        -> DownloadAgent.Download
    {
        DownloadAgent.Download(
            status: DownloadStatus(
                id: DownloadID(number: number),
                url: "https://example.com/\(number)",
                state: state,
                priority: .normal
            )
        )
    }

    @Test("A list that is read anew tells what has changed, and forgets what is gone")
    func lists() {
        var view = SessionView()
        let (one, two) = (Self.download(1, .finished), Self.download(2, .running))
        let first = view.take(all: [two, one])
        #expect(first == [two, one] && view.all == first)
        #expect(view.moving == [two.id] && view.isOpen(two.id) && !view.isOpen(one.id))
        let ended = Self.download(2, .finished)
        let second = view.take(all: [one, ended])
        #expect(second == [ended] && view.all == [ended, one])
        let third = view.take(all: [one])
        #expect(third.isEmpty && view.all == [one])
    }
}
