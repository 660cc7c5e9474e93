import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheAgent
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Applications with the real program as their agent.
@Suite("An application and its agent", .tags(.realTime), .timeLimit(.minutes(5)))
struct DownloadAgentTests {
    private static func socket(_ place: Workplace) -> FilePath { place.files.appending("socket") }

    private static func attach(
        _ place: Workplace,
        program: FilePath? = nil
    ) async throws -> DownloadAgent {
        try await DownloadAgent(
            session: "app",
            directory: URL(file: place.cache),
            socket: URL(file: socket(place)),
            program: URL(file: try program ?? Workplace.program)
        )
    }

    private static func add(
        _ path: String,
        to agent: DownloadAgent,
        _ place: Workplace
    ) async throws -> DownloadID {
        try await agent.add(
            CacheRequest(place.origin.url(path)),
            options: ["dir": place.files.path.string, "out": String(path.dropFirst())]
        )
    }

    /// Ends the agent.
    private static func shutDown(_ place: Workplace) throws {
        _ = try AgentClient(socket: socket(place)).call("aria2.shutdown")
    }

    @Test("One that is started again, and whose agent has ended too, is told what it has missed")
    func again() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 300_000)
            let first = try await Self.attach(place)
            let id = try await Self.add("/film", to: first, place)
            for try await download in first.downloads where download.state == .finished { break }
            await first.close()
            try Self.shutDown(place)
            let second = try await Self.attach(place)
            var downloads = second.downloads.makeAsyncIterator()
            let told = try await downloads.next()
            #expect(told?.id == id && told?.state == .finished)
            #expect(try place.file("film", equals: "/film"))
            try await second.acknowledge(id)
            let left = try AgentClient(socket: Self.socket(place)).call(
                "aria2.tellStopped",
                [0, 9]
            )
            #expect(left.array?.isEmpty == true)
            await second.close()
            try Self.shutDown(place)
        }
    }

    @Test("An agent that is killed is started again, goes on, and tells nothing twice")
    func killed() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serveFresh("/small", length: 1000)
            place.origin.serve(
                "/film",
                .generated(length: 3 << 20, cacheControl: "max-age=3600"),
                .first(1, .wait(for: gate, after: 2 << 20))
            )
            try await place.run(["agent", "--socket", Self.socket(place).string]) { running in
                while !AgentClient(socket: Self.socket(place)).isAnswered {
                    try await Task.sleep(for: .milliseconds(10))
                }
                let agent = try await Self.attach(place)
                let small = try await Self.add("/small", to: agent, place)
                let film = try await Self.add("/film", to: agent, place)
                var smalls = 0
                var isKilled = false
                for try await download in agent.downloads {
                    if download.id == small, download.state == .finished { smalls += 1 }
                    if !isKilled, smalls == 1, download.id == film, download.status.bytes > 0 {
                        isKilled = true
                        running.send(SIGKILL)
                        gate.open()
                        try await agent.acknowledge(small)
                    }
                    if download.id == film, download.state == .finished { break }
                }
                #expect(isKilled && smalls == 1)
                #expect(try place.file("film", equals: "/film"))
                await agent.close()
                try Self.shutDown(place)
            }
        }
    }

    @Test("The agent is nobody's child, has no file of the application, and changes none there")
    func stranger() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 1000)
            let path = place.files.appending("own")
            let own = try FileDescriptor.open(path, .writeOnly, options: .create, permissions: [])
            let agent = try await Self.attach(place)
            #expect(fcntl(own.rawValue, F_GETFD) == 0)
            try own.close()
            let socket = Self.socket(place).string.dropFirst()
            let script = """
                for file in $(grep -slaz -- '[/]\(socket)' /proc/[0-9]*/cmdline); do
                    place=${file%/cmdline}
                    sed 's/.*) [A-Z] //; s/ .*//' "$place/stat"
                    readlink "$place"/fd/*
                done
                """
            let lines = try await PlayerTool.shell.run(["-c", script]).text.split(separator: "\n")
            let parent = try #require(lines.first.flatMap { pid_t($0) })
            #expect(parent != getpid())
            #expect(lines.contains { $0.hasSuffix("/LOCK") }, "\(lines)")
            #expect(!lines.contains { $0.hasSuffix("/own") }, "\(lines)")
            await agent.close()
            try Self.shutDown(place)
        }
    }

    @Test(
        "A program that is none is told at once",
        arguments: ["/none": "cannot start the agent", "/bin/true": "did not start"]
    )
    func program(path: String, words: String) async throws {
        try await Workplace.with { place in
            let error = await #expect(throws: CacheError.self) {
                _ = try await Self.attach(place, program: FilePath(path))
            }
            #expect(error?.code == .localStorage)
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
    }
}
