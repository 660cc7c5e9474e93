import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tieredcache url` and the proxy that it starts.
@Suite("url", .tags(.realTime), .timeLimit(.minutes(10)), PlayerTool.curl.isInstalled)
struct URLTests {
    private func url(_ place: Workplace, _ options: String...) async throws -> String {
        let outcome = try await place.run(["url", place.origin.url("/film.mp4")] + options)
        outcome.expectDone()
        return try #require(outcome.lines.first)
    }

    private func expectPlays(_ url: String, _ place: Workplace) async throws {
        let copy = place.files.appending("copy").string
        let outcome = try await PlayerTool.curl.run(["-sfo", copy, url])
        #expect(outcome.hasSucceeded)
        #expect(try place.file("copy", equals: "/film.mp4"))
    }

    @Test("One proxy starts, serves, and is found by others, exec included")
    func serves() async throws {
        try await Workplace.withBackground { place in
            place.origin.serveFresh("/film.mp4", length: 300_000)
            let first = try await url(place)
            #expect(
                first.hasSuffix("/" + place.origin.url("/film.mp4").replacing("://", with: "/"))
            )
            let process = try #require(place.backgroundProcess)
            try await expectPlays(first, place)
            let second = try await url(place)
            #expect(second == first && place.backgroundProcess == process)
            let echoed = try await place.exec("echo", place.origin.url("/film.mp4"))
            echoed.expectDone()
            #expect(echoed.lines == [first])
            #expect(place.origin.log.bodyBytesWritten == 300_000)
            // Another session, no arguments with the token, no stream of the caller's.
            #expect(getsid(process) != getsid(0))
            let token = try #require(first.split(separator: "/").dropFirst(2).first)
            let files = "/proc/\(process)"
            let command = try await PlayerTool.shell.run(["-c", "cat \(files)/cmdline"])
            #expect(command.text.contains("background") && !command.text.contains(token))
            let streams = try await PlayerTool.shell.run(["-c", "readlink \(files)/fd/[0-2]"])
            #expect(streams.text == "/dev/null\n/dev/null\n/dev/null\n")
        }
    }

    @Test("Several that come at once start one")
    func race() async throws {
        try await Workplace.withBackground { place in
            let urls = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<4 { group.addTask { try await url(place) } }
                var urls: Set<String> = []
                for try await url in group { urls.insert(url) }
                return urls
            }
            #expect(urls.count == 1, "\(urls)")
            let words = place.cache.string
            let found = try await PlayerTool.shell.run([
                "-c",
                "grep -slazF -- '\(words)' /proc/[0-9]*/cmdline | xargs grep -lz '[b]ackground'",
            ])
            #expect(found.text.split(separator: "\n").count == 1, "\(found.text)")
        }
    }

    @Test(
        "What a killed proxy leaves breaks nothing: the next is at the same address",
        .tags(.long)
    )
    func killed() async throws {
        try await Workplace.withBackground { place in
            place.origin.serveFresh("/film.mp4", length: 300_000)
            let first = try await url(place)
            try await expectPlays(first, place)
            try await place.endBackground(by: SIGKILL)
            #expect(try await url(place) == first)
            try await expectPlays(first, place)
            #expect(place.origin.log.bodyBytesWritten == 300_000)
        }
    }

    @Test(
        "It ends when no client has come for some time, or at SIGTERM, and leaves no file",
        .tags(.long)
    )
    func ends() async throws {
        try await Workplace.withBackground { place in
            _ = try await url(place, "--idle", "2s")
            // It may have ended by now.
            if let process = place.backgroundProcess { try await place.waitForEnd(of: process) }
            #expect(place.backgroundProcess == nil)
            _ = try await url(place)
            try await place.endBackground()
            #expect(place.backgroundProcess == nil)
        }
    }

    @Test("It waits for a program of exec, whether that reads or not", .tags(.long))
    func waits() async throws {
        try await Workplace.withBackground { place in
            _ = try await url(place, "--idle", "10s")
            let process = try #require(place.backgroundProcess)
            let film = place.origin.url("/film.mp4")
            // Longer than it would wait: what counts is that it is there then.
            let outcome = try await place.exec("sh", "-c", "sleep 13", "sh", film)
            outcome.expectDone()
            #expect(kill(process, 0) == 0)
            try await place.waitForEnd(of: process)
        }
    }

    @Test("A proxy of 'serve' is used")
    func serve() async throws {
        try await Workplace.with { place in
            try await place.serving { base in
                let printed = try await url(place)
                #expect(printed.hasPrefix(base))
            }
            #expect(place.backgroundProcess == nil)
        }
    }

    @Test("Beside an owner without a proxy it plays as a guest, and is found")
    func guest() async throws {
        try await Workplace.withBackground { place in
            let gate = OriginGate()
            place.origin.serveFresh("/film.mp4", length: 300_000)
            place.origin.serveFresh("/slow", length: 900_000, .first(1, .wait(for: gate, after: 9)))
            try await place.get("/film.mp4", into: "film").expectDone()
            try await place.get("/slow", into: "slow") { _ in
                await place.origin.waitUntil { $0.bodyBytesWritten(for: "/slow") >= 9 }
                let first = try await url(place)
                try await expectPlays(first, place)
                #expect(try await url(place) == first)
                gate.open()
            }.expectDone()
            #expect(place.origin.log.bodyBytesWritten(for: "/film.mp4") == 300_000)
        }
    }

    @Test("What cannot be: no URL, a directory that is a file")
    func failures() async throws {
        try await Workplace.with { place in
            try await place.run("url", "film.mp4").expectFailure(64, "film.mp4")
            try place.files.write("x", to: "file")
            let file = place.files.appending("file")
            try await place.run("url", "http://a/", directory: file)
                .expectFailure(74, file.string)
        }
    }
}
