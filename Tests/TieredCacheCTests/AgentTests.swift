import CTieredCache
import Glibc
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheAgent
import TieredCacheTesting

@testable import TieredCacheC

/// Downloads of an agent, which runs in this process.
@Suite("Agents for hosts in C", .tags(.realTime), .timeLimit(.minutes(5)))
struct AgentTests {
    /// Runs `body` with an agent and a client of it.
    private static func run(
        _ body: (HostedFixture, AgentHandle) async throws -> Void
    ) async throws {
        try await HostedFixture.run { fixture in
            let service = try await start(fixture)
            let agent = await fixture.host { AgentHandle(fixture, session: "app") }
            #expect(agent.status == 0)
            try await body(fixture, agent)
            await fixture.host { tiered_agent_release(agent.pointer) }
            await service.stop()
        }
    }

    private static func start(_ fixture: HostedFixture) async throws -> AgentService {
        var configuration = MediaCache.Configuration(path: fixture.directory.appending("cache"))
        configuration.minimumFreeDisk = 0
        configuration.retries = 1
        var settings = AgentService.Settings(socket: AgentHandle.socket(fixture))
        settings.options = DownloadOptions(["dir": fixture.directory.appending("out").string])
        return try await AgentService.start(configuration, settings: settings)
    }

    @Test("A download is told until its file is there, and after that to the next process")
    func finished() async throws {
        try await Self.run { fixture, agent in
            fixture.origin.serve("/film", HostedFixture.film)
            let urls = [fixture.origin.url("/film"), fixture.origin.url("/mirror")]
            let (length, id) = await fixture.host {
                agent.add(urls, fields: ["User-Agent: host"], options: ["out=film.mp4"])
            }
            #expect(length == 16)
            let told = await fixture.host { agent.until(TIERED_JOB_FINISHED) }
            #expect(told.allSatisfy { $0.identifier == id })
            let last = try #require(told.last)
            #expect(last.text == fixture.directory.appending("out/film.mp4").string)
            #expect(last.info.bytes == HostedFixture.length && last.info.total == last.info.bytes)
            #expect(last.info.status == 0 && last.info.bytes_per_second == TIERED_E_UNKNOWN.number)
            #expect(fixture.origin.log.exchanges.last?.fields[.userAgent] == "host")
            let again = await fixture.host { () -> (AgentHandle.Told?, CInt, CInt, CInt) in
                let other = AgentHandle(fixture, session: "app")
                defer { tiered_agent_release(other.pointer) }
                let first = other.next()
                let acknowledged = tiered_agent_acknowledge(other.pointer, id)
                let missing = tiered_agent_cancel(other.pointer, id)
                return (first, acknowledged, missing, other.next(0).status)
            }
            #expect(again.0?.identifier == id && again.0?.text == last.text)
            #expect(again.1 == 0 && again.2 == TIERED_E_INVALID.status)
            #expect(again.3 == TIERED_E_AGAIN.status)
        }
    }

    @Test("One that fails says why, one that is paused goes on, one that is cancelled stays so")
    func commands() async throws {
        try await Self.run { fixture, agent in
            fixture.origin.serve("/film", HostedFixture.film)
            let missing = [fixture.origin.url("/missing")]
            let film = [fixture.origin.url("/film")]
            let failed = await fixture.host { () -> AgentHandle.Told? in
                _ = agent.add(missing)
                return agent.until(TIERED_JOB_FAILED).last
            }
            #expect(failed?.info.status == TIERED_E_HTTP.status)
            #expect(failed?.text.contains("404") == true)
            let resumed = await fixture.host { () -> (CInt, AgentHandle.Told?) in
                let id = agent.add(film, options: ["pause=true"]).identifier
                _ = agent.until(TIERED_JOB_PAUSED)
                let status = Strings.with(["User-Agent: later"]) {
                    tiered_agent_resume(agent.pointer, id, $0)
                }
                return (status, agent.until(TIERED_JOB_FINISHED).last)
            }
            #expect(resumed.0 == 0 && resumed.1?.info.bytes == HostedFixture.length)
            #expect(fixture.origin.log.exchanges.last?.fields[.userAgent] == "later")
            let cancelled = await fixture.host { () -> (CInt, String?, String) in
                let id = agent.add(film, options: ["pause=true", "out=other"]).identifier
                let status = tiered_agent_cancel(agent.pointer, id)
                return (status, agent.until(TIERED_JOB_CANCELLED).last?.identifier, id)
            }
            #expect(cancelled.0 == 0 && cancelled.1 == cancelled.2)
        }
    }

    @Test("A thread that waits is ended by the last release; after that the handle is none")
    func released() async throws {
        try await Self.run { fixture, agent in
            #expect(tiered_agent_retain(agent.pointer) == agent.pointer)
            tiered_agent_release(agent.pointer)
            async let waits = fixture.host { agent.next(-1).status }
            async let more = fixture.host { agent.next(-1).status }
            // Where they do not wait yet, they find the handle released.
            await fixture.host { tiered_agent_release(agent.pointer) }
            let statuses = [await waits, await more]
            let ends = [TIERED_E_CANCELLED.status, TIERED_E_INVALID.status]
            #expect(statuses.allSatisfy { ends.contains($0) }, "\(statuses)")
            #expect(agent.next(0).status == TIERED_E_INVALID.status)
        }
    }

    @Test("Bad input is refused, and the reason is told")
    func refused() async throws {
        try await Self.run { fixture, agent in
            let invalid = TIERED_E_INVALID.status
            let statuses = await fixture.host { () -> [Int64] in
                var info = tiered_download_info()
                let pointer = agent.pointer
                return [
                    agent.add([]).length, agent.add(["ftp://a/b"]).length,
                    agent.add(["http://a/b"], fields: ["x"]).length,
                    agent.add(["http://a/b"], options: ["=x"]).length,
                    tiered_agent_add(pointer, nil, nil, 0),
                    Int64(tiered_agent_next(pointer, 0, nil, nil, 0)),
                    Int64(tiered_agent_next(pointer, 0, &info, nil, 0)),
                    Int64(tiered_agent_next(nil, 0, &info, nil, 0)),
                    Int64(agent.next(-2).status),
                    Int64(tiered_agent_acknowledge(pointer, nil)),
                    Int64(tiered_agent_cancel(pointer, "xyz")),
                    Int64(tiered_agent_resume(pointer, nil, nil)),
                    Int64(tiered_agent_error(pointer, nil, 1)),
                    Int64(tiered_agent_open(nil, nil)),
                    Int64(AgentHandle(fixture, session: "a b").status),
                    agent.add(["http://a/b"], options: ["checksum=x"]).length,
                ]
            }
            #expect(statuses.allSatisfy { $0 == Int64(invalid) }, "\(statuses)")
            let reason = text { Int64(tiered_agent_error(agent.pointer, $0, $1)) }
            #expect(reason.result == Int64(invalid) && reason.text.contains("checksum"))
            let noAgent = await fixture.host {
                AgentHandle(fixture, session: "app", program: "/none", socket: "other").status
            }
            #expect(noAgent == TIERED_E_STORAGE.status)
        }
    }
}

/// A handle of a client.
private struct AgentHandle: @unchecked Sendable {
    // Unchecked: a pointer that is a number, and never followed; the header lets any thread use it,
    // which is what is tested.
    let pointer: OpaquePointer?
    let status: CInt

    /// What one call of `tiered_agent_next` gives.
    struct Told: Sendable {
        let status: CInt
        let info: tiered_download_info
        let text: String

        var identifier: String {
            withUnsafeBytes(of: info.identifier) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
        }
    }

    static func socket(_ fixture: HostedFixture) -> FilePath {
        fixture.directory.appending("socket")
    }

    init(
        _ fixture: HostedFixture,
        session: String,
        program: String = "/none",
        socket: String = "socket"
    ) {
        let texts = [
            session, fixture.directory.appending("cache").string,
            fixture.directory.appending(socket).string, program,
        ]
        var agent: OpaquePointer?
        status = Strings.with(texts) { texts in
            var options = tiered_agent_options()
            options.size = MemoryLayout<tiered_agent_options>.size
            (options.session, options.directory) = (texts?[0], texts?[1])
            (options.socket, options.program) = (texts?[2], texts?[3])
            return tiered_agent_open(&options, &agent)
        }
        pointer = agent
    }

    func add(
        _ urls: [String],
        fields: [String] = [],
        options: [String] = []
    ) -> (length: Int64, identifier: String) {
        Strings.with(urls) { urls in
            Strings.with(fields) { fields in
                Strings.with(options) { options in
                    var download = tiered_download()
                    download.size = MemoryLayout<tiered_download>.size
                    (download.urls, download.fields, download.options) = (urls, fields, options)
                    let (length, id) = text {
                        tiered_agent_add(pointer, &download, $0, $1)
                    }
                    return (length, id)
                }
            }
        }
    }

    func next(_ milliseconds: Int32 = -1) -> Told {
        var info = tiered_download_info()
        info.size = MemoryLayout<tiered_download_info>.size
        let (status, words) = text {
            Int64(tiered_agent_next(pointer, milliseconds, &info, $0, $1))
        }
        return Told(status: CInt(status), info: info, text: words)
    }

    /// All that is told, up to the first one in a state.
    func until(_ state: tiered_job_state) -> [Told] {
        var told: [Told] = []
        while true {
            let one = next()
            told.append(one)
            if one.status != 0 || one.info.state == Int32(state.rawValue) { return told }
        }
    }
}

/// Texts as a program in C has them, with NULL behind the last.
private enum Strings {
    static func with<Result>(
        _ texts: [String],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return (copies.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer {
            body($0.baseAddress)
        }
    }
}
