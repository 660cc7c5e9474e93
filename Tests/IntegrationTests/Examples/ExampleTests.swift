import HTTPTypes
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheAgent
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The programs of `Examples/`, each as a process, against an origin on loopback.
@Suite("Examples", .tags(.realTime), .timeLimit(.minutes(5)))
struct ExampleTests {
    private static var program: FilePath {
        get throws {
            try Workplace.program.removingLastComponent().appending("TieredCacheExamples")
        }
    }

    private func run(_ arguments: String..., at place: Workplace) async throws -> ProgramOutcome {
        try await place.runPlain(arguments, program: Self.program)
    }

    private func serve(_ path: String, length: Int64, at place: Workplace) -> String {
        place.origin.serve(path, .generated(length: length, cacheControl: "max-age=600"))
        return place.origin.url(path)
    }

    @Test("Posters come from the origin, then from disk")
    func gallery() async throws {
        try await Workplace.with { place in
            let a = serve("/a", length: 5000, at: place)
            let b = serve("/b", length: 7000, at: place)
            for source in ["0 from disk, 2 from the origin", "2 from disk, 0 from the origin"] {
                let outcome = try await run("gallery", a, b, at: place)
                outcome.expectDone()
                #expect(outcome.lines.prefix(2).sorted() == ["/a: 5000 bytes", "/b: 7000 bytes"])
                #expect(outcome.lines.dropFirst(2) == [source, "2 of 2 in memory"])
            }
            #expect(place.origin.log.exchanges.map(\.path).sorted() == ["/a", "/b"])
        }
    }

    @Test("A player gets the film through the proxy", PlayerTool.curl.isInstalled)
    func film() async throws {
        try await Workplace.with { place in
            let film = serve("/film", length: 3 << 20, at: place)
            let played = place.files.appending("played").string
            for sources in ["0 bytes from the cache, 3145728", "3145728 bytes from the cache, 0"] {
                let outcome = try await run("film", film, "curl", "-sSfo", played, at: place)
                outcome.expectDone()
                let last = "\(sources) from the origin"
                #expect(outcome.lines == ["the player ended: exited(0)", last])
                #expect(try place.file("played", equals: "/film"))
            }
            // A transfer that was cut may have sent a piece that nothing has read.
            #expect(place.origin.log.bodyBytesWritten(for: "/film") <= 4 << 20)
        }
    }

    @Test("A master playlist, its playlist, key and segments play without a network")
    func hls() async throws {
        try await Workplace.with { place in
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/list.m3u8\n"
            let list =
                "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/key\"\n"
                + "#EXTINF:6,\n1.ts\n#EXTINF:6,\n2.ts\n#EXT-X-ENDLIST\n"
            place.origin.serve("/master.m3u8", .text(master))
            place.origin.serve("/low/list.m3u8", .text(list))
            place.origin.serve("/key", .generated(length: 16))
            _ = serve("/low/1.ts", length: 100_000, at: place)
            _ = serve("/low/2.ts", length: 200_000, at: place)
            let outcome = try await run("hls", place.origin.url("/master.m3u8"), at: place)
            outcome.expectDone()
            let bytes = master.utf8.count + list.utf8.count + 16 + 300_000
            #expect(
                outcome.lines == [
                    "5 of 5 stored, \(bytes) bytes", "\(bytes) bytes without a network",
                ]
            )
            for path in ["/key", "/low/1.ts", "/low/2.ts"] {
                #expect(place.exchanges(path).count == 1, "\(path)")
            }
            let missing = try await run("hls", place.origin.url("/none"), at: place)
            #expect(missing.exitCode == 1 && missing.error.contains("/none is no playlist"))
        }
    }

    @Test("A download that was killed goes on where it was")
    func download() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serve(
                "/film",
                .generated(length: 3 << 20),
                .first(1, .wait(for: gate, after: 2 << 20))
            )
            let film = place.origin.url("/film")
            let killed = try await place.runPlain(["download", film], program: Self.program) {
                let cache = place.files.appending("xdg").appending("tieredcache")
                await place.origin.waitUntil { !$0.exchanges.isEmpty }
                var stored: Int64 = 0
                while stored < 1 << 20 {
                    let list = try await place.run("list", "--json", directory: cache)
                    stored = list.json.integer("held") ?? 0
                }
                $0.send(SIGKILL)
            }
            gate.open()
            #expect(killed.exitCode == nil)
            let outcome = try await run("download", film, at: place)
            outcome.expectDone()
            #expect(outcome.lines.contains("finished: 3145728 of 3145728 bytes"))
            #expect(outcome.lines.last?.hasPrefix("stored as /") == true)
            let second = try #require(place.exchanges("/film").last)
            #expect(place.exchanges("/film").count == 2 && second.status == 206)
            #expect(second.bodyBytesWritten <= 2 << 20)
        }
    }

    @Test("The reverse proxy forwards once, and ends well at a signal", PlayerTool.curl.isInstalled)
    func proxy() async throws {
        try await Workplace.with { place in
            _ = serve("/page", length: 5000, at: place)
            let result = try await Subprocess.run(
                .path(Self.program),
                arguments: ["proxy", place.origin.url("")],
                environment: .inherit.updating(["XDG_CACHE_HOME": place.files.path.string]),
                input: .none,
                output: .sequence,
                error: .discarded
            ) { execution in
                var lines: [String] = []
                for try await line in execution.standardOutput.strings() {
                    lines.append(line.filter { $0 != "\n" })
                    guard let base = line.split(separator: " ").first, lines.count == 1 else {
                        continue
                    }
                    for _ in 0..<3 {
                        let page = try await PlayerTool.curl.run(["-sSf", "\(base)page"])
                        #expect(page.output.count == 5000, "\(page.error)")
                    }
                    try execution.send(signal: .terminate)
                }
                return lines
            }
            #expect(result.terminationStatus == .exited(0))
            #expect(result.closureResult.last == "hits: 2, misses: 1")
            #expect(place.exchanges("/page").count == 1)
        }
    }

    @Test("Calls of AsyncHTTPClient: a GET is answered by the cache, a POST passes")
    func client() async throws {
        try await Workplace.with { place in
            let outcome = try await run("client", serve("/list", length: 900, at: place), at: place)
            outcome.expectDone()
            #expect(outcome.lines.prefix(2) == ["GET: 200, 900 bytes", "GET: 200, 900 bytes"])
            #expect(outcome.lines.count == 3 && outcome.lines[2].hasPrefix("POST: "))
            #expect(place.exchanges("/list").map(\.method) == ["GET", "POST"])
        }
    }

    @Test("Calls of URLSession: hits, and what a POST changes is confirmed")
    func session() async throws {
        try await Workplace.with { place in
            let url = serve("/list", length: 900, at: place)
            let outcome = try await run("session", url, at: place)
            outcome.expectDone()
            let words = ["fwd=uri-miss; stored", "hit", "past the cache", "fwd=stale"]
            #expect(outcome.lines.count == 4)
            for (line, word) in zip(outcome.lines, words) { #expect(line.contains(word)) }
            #expect(place.exchanges("/list").map(\.method) == ["GET", "POST", "GET"])
            #expect(place.exchanges("/list").last?.status == 304)
        }
    }

    @Test("The application passes its test: cut, refused, then the rest")
    func scripted() async throws {
        try await Workplace.with { place in
            let outcome = try await run("scripted", place.cache.string, at: place)
            outcome.expectDone()
            #expect(outcome.lines.first == "1048576 bytes, each of them right: true")
            #expect(outcome.lines.dropFirst().first == "asked for all, got 200: cut")
            #expect(outcome.lines.count == 4 && outcome.lines[3].hasSuffix("got 206: complete"))
        }
    }

    @Test("Events are printed, and half of the lookups are hits")
    func statistics() async throws {
        try await Workplace.with { place in
            let url = serve("/a", length: 5000, at: place)
            let outcome = try await run("statistics", url, at: place)
            outcome.expectDone()
            #expect(outcome.lines.contains("\(url): downloadFinished(bytes: 5000)"))
            #expect(
                outcome.lines.suffix(3) == [
                    "hits 1, misses 1", "hit ratio 50 %",
                    "5000 bytes from the origin, 1 entries on disk",
                ]
            )
            #expect(place.exchanges("/a").count == 1)
        }
    }

    @Test("The transport reads files, and no file outside of its directory")
    func transport() async throws {
        try await Workplace.with { place in
            try place.files.makeDirectory("media")
            try place.files.write("secret", to: "secret")
            try place.files.write([UInt8](repeating: 7, count: 200_000), to: "media/film")
            let media = place.files.appending("media").string
            let outcome = try await run("transport", media, "film", at: place)
            outcome.expectDone()
            #expect(outcome.lines == ["film: 200000 bytes"])
            for name in ["../secret", "missing"] {
                let refused = try await run("transport", media, name, at: place)
                #expect(refused.exitCode == 1 && refused.text.isEmpty, "\(refused.error)")
                #expect(refused.errorLines.count == 1)
            }
            #expect(place.origin.log.exchanges.isEmpty)
        }
    }

    @Test("Two signatures of one film have one entry")
    func keys() async throws {
        try await Workplace.with { place in
            let url = serve("/film", length: 5000, at: place)
            let outcome = try await run(
                "keys",
                "\(url)?token=1&quality=high&cut=long",
                "\(url)?cut=long&token=2&quality=high",
                "\(url)?cut=short&token=2",
                at: place
            )
            outcome.expectDone()
            #expect(
                outcome.lines == [
                    "\(url)?cut=long&quality=high: 5000 bytes from origin",
                    "\(url)?cut=long&quality=high: 5000 bytes from disk",
                    "\(url)?cut=short: 5000 bytes from origin",
                ]
            )
            #expect(place.exchanges("/film").count == 2)
        }
    }

    @Test("A download is carried out by another process, which is started for it")
    func background() async throws {
        try await Workplace.with { place in
            let film = serve("/film", length: 300_000, at: place)
            let path = try Self.program.removingLastComponent().string
            let words = [
                "-u", "XDG_RUNTIME_DIR", "PATH=\(path)", try Self.program.string, "background",
                place.files.path.string, film,
            ]
            let outcome = try await place.runPlain(words, program: "/usr/bin/env")
            outcome.expectDone()
            #expect(outcome.lines.contains("finished: 300000 bytes"))
            #expect(outcome.lines.last == "stored as \(place.files.appending("film"))")
            #expect(try place.file("film", equals: "/film"))
            let socket = place.files.appending("xdg").appending("tieredcache").appending("AGENT")
            _ = try AgentClient(socket: socket).call("aria2.shutdown")
        }
    }

    @Test("Wrong arguments and failures are said in words, with codes of their own")
    func errors() async throws {
        try await Workplace.with { place in
            let names = [
                "gallery", "film", "hls", "download", "background", "proxy", "client", "session",
                "scripted", "statistics", "transport", "keys",
            ]
            for name in names {
                let outcome = try await run(name, at: place)
                #expect(outcome.exitCode == 64 && outcome.error.hasPrefix("usage: \(name) "))
            }
            let unknown = try await run("unknown", at: place)
            #expect(unknown.exitCode == 64 && unknown.errorLines.count == names.count)
            for name in ["gallery", "download", "statistics"] {
                let outcome = try await run(name, place.origin.url("/none"), at: place)
                #expect(outcome.exitCode == 1, "\(name): \(outcome.text)")
                #expect(outcome.error.contains("404") && outcome.errorLines.count == 1)
            }
        }
    }
}
