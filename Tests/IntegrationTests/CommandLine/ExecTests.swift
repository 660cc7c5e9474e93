import HTTPTypes
import Subprocess
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

/// `tieredcache exec` with programs that say what they got.
@Suite("exec", .tags(.realTime), .timeLimit(.minutes(10)), PlayerTool.curl.isInstalled)
struct ExecTests {
    @Test("The program gets proxied URLs, and the origin is asked once")
    func proxied() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film.mp4", length: 300_000)
            let url = place.origin.url("/film.mp4")
            for _ in 0..<2 {
                let outcome = try await place.exec("curl", "-sfo", "copy", url)
                outcome.expectDone()
                #expect(try place.file("copy", equals: "/film.mp4"))
            }
            #expect(place.origin.log.bodyBytesWritten == 300_000)
            let echoed = try await place.exec("echo", "a b", url, "--uri=\(url)", "-referer", url)
            echoed.expectDone()
            let words = echoed.text.split(separator: " ").map(String.init)
            #expect(words.count == 6 && words[0...1] == ["a", "b"], "\(echoed.text)")
            #expect(words[2].hasPrefix("http://127.0.0.1:"))
            #expect(words[2].hasSuffix("/" + url.replacing("://", with: "/")))
            #expect(words[3] == "--uri=" + words[2] && words[5] == url + "\n")
        }
    }

    @Test("The userinfo of a URL reaches the origin")
    func userinfo() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film.mp4", length: 3_000)
            let url = place.origin.url("/film.mp4").replacing("://", with: "://user:word@")
            try await place.exec("curl", "-sfo", "copy", url).expectDone()
            let fields = place.origin.log.exchanges.first?.fields
            #expect(fields?[.authorization] == "Basic dXNlcjp3b3Jk")
        }
    }

    @Test(
        "Exit codes, signals as 128 and their number",
        arguments: [
            ("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 128 + SIGTERM),
            ("kill -KILL $$", 128 + SIGKILL), ("kill -PIPE $$", 128 + SIGPIPE),
        ] as [(String, Int32)]
    )
    func exitCodes(script: String, code: Int32) async throws {
        try await Workplace.with { place in
            for word in [place.origin.url("/x"), "no-url"] {
                let outcome = try await place.exec("sh", "-c", script, "sh", word)
                #expect(outcome.exitCode == code && outcome.error.isEmpty, "\(outcome)")
            }
        }
    }

    @Test("A program that is not there, or is none", arguments: [true, false])
    func noProgram(hasURL: Bool) async throws {
        try await Workplace.with { place in
            let url = hasURL ? place.origin.url("/x") : "x"
            try await place.exec("no-such-program", url).expectFailure(127, "'no-such-program'")
            try await place.exec("/etc/passwd", url).expectFailure(126, "'/etc/passwd'")
        }
    }

    @Test("Signals reach the program", arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    func signals(number: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/ready", length: 10)
            let script =
                "trap 'echo told; exit 5' \(number); curl -sf \"$1\" >/dev/null; "
                + "while :; do sleep 0.05; done"
            let url = place.origin.url("/ready")
            let outcome = try await place.exec("sh", "-c", script, "sh", url) { running in
                // The trap is set by then.
                await place.origin.waitUntil { $0.bodyBytesWritten(for: "/ready") == 10 }
                running.send(number)
            }
            #expect(outcome.exitCode == 5 && outcome.text == "told\n", "\(outcome)")
        }
    }

    @Test("Standard streams, descriptors, limits and ignored signals are the caller's")
    func untouched() async throws {
        try await Workplace.with { place in
            let script =
                #"ulimit -Sn 300; trap '' HUP; printf abc | "$0" exec --directory "$1" -- sh -c "#
                + #"'cat; ulimit -Sn; ls /proc/self/fd; grep SigIgn /proc/self/status; "#
                + #"grep SigBlk /proc/self/status; echo e >&2; echo $no_proxy' sh "$2""#
            let outcome = try await place.shell("export http_proxy=http://h/; " + script, "/x")
            #expect(outcome.exitCode == 0 && outcome.error == "e\n", "\(outcome)")
            let lines = outcome.lines
            try #require(lines.count == 8, "\(lines)")
            #expect(lines[0] == "abc300")
            #expect(lines[1...4] == ["0", "1", "2", "3"])
            // SIGHUP alone, not SIGPIPE, which this program ignores. Those beyond 31 are the C library's.
            for (line, signals) in [(lines[5], UInt64(1)), (lines[6], 0)] {
                let mask = UInt64(line.split(separator: "\t").last ?? "", radix: 16)
                #expect(mask.map { $0 & 0x7FFF_FFFF } == signals, "\(line)")
            }
            #expect(lines[7] == "127.0.0.1")
        }
    }

    @Test("After SIGKILL in the middle the next one goes on from what is stored")
    func kill() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            let length: Int64 = 4 << 20
            place.origin.serveFresh(
                "/film",
                length: length,
                .first(6, .faithful).then(1, .wait(for: gate, after: 10))
            )
            let url = place.origin.url("/film")
            let killed = try await place.exec("curl", "-so", "part", url) { running in
                await place.origin.waitUntil { $0.exchanges.contains { $0.bodyBytesWritten == 10 } }
                running.send(SIGKILL)
            }
            #expect(killed.status == .signaled(SIGKILL))
            gate.open()
            let before = place.origin.log.bodyBytesWritten(for: "/film")
            try await place.exec("curl", "-sfo", "copy", url).expectDone()
            #expect(try place.file("copy", equals: "/film"))
            let fetched = place.origin.log.bodyBytesWritten(for: "/film") - before
            // What was under way is lost, and of the rest what had not reached the file.
            #expect(before > 512 << 10 && fetched < length - before / 2, "\(before), \(fetched)")
        }
    }

    @Test("In a directory that another process owns it plays, and that one stores what is fetched")
    func guest() async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            place.origin.serveFresh("/held", length: 200_000)
            place.origin.serveFresh("/new", length: 100_000)
            place.origin.serveFresh(
                "/slow",
                length: 400_000,
                .first(1, .wait(for: gate, after: 200_000))
            )
            try await place.get("/held", into: "held").expectDone()
            try await place.get("/slow", into: "slow") { _ in
                await place.origin.waitUntil { $0.bodyBytesWritten(for: "/slow") >= 200_000 }
                for name in ["held", "new"] {
                    let url = place.origin.url("/\(name)")
                    let outcome = try await place.exec("curl", "-sfo", "copy", url)
                    #expect(outcome.exitCode == 0)
                    #expect(outcome.error.isEmpty, "\(outcome.error)")
                    #expect(try place.file("copy", equals: "/\(name)"))
                }
                gate.open()
            }.expectDone()
            #expect(place.origin.log.bodyBytesWritten(for: "/held") == 200_000)
            try await place.get("/new", into: "again", "--policy", "cache-only").expectDone()
        }
    }
}
