import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// Which URL is asked for and under which key it is held.
@Suite("get: targets", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetTargetTests {
    @Test("A fragment is neither sent nor part of the key")
    func fragment() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            try await place.get("/a#first", into: "a")
                .expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 1000)
            try await place.get("/a#second", into: "a")
                .expectReport(place.origin.url("/a"), source: "disk", fromCache: 1000)
            #expect(place.origin.log.exchanges.map(\.target) == ["/a"])
            let list = try await place.run("list", "--json")
            #expect(list.lines.count == 1)
            #expect(!list.text.contains("#"))
        }
    }

    @Test(
        "Percent-encoding is kept as given; what is not ASCII is encoded as UTF-8",
        arguments: [
            ("/a%2Fb", "/a%2Fb"), ("/a%2fb", "/a%2fb"), ("/a%41b", "/a%41b"),
            ("/ä/日本", "/%C3%A4/%E6%97%A5%E6%9C%AC"), ("/a?q=ü&r=%20+", "/a?q=%C3%BC&r=%20+"),
            ("/a//b", "/a//b"), ("/a?", "/a?"), ("/a;b=c,d:e@f", "/a;b=c,d:e@f"),
        ]
    )
    func encoding(given: String, sent: String) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh(OriginLog.key(sent), length: 1000)
            try await place.get(given, into: "a").expectDone()
            #expect(place.origin.log.exchanges.map(\.target) == [sent])
            try await place.get(given, into: "a")
                .expectReport(place.origin.url(sent), source: "disk", fromCache: 1000)
        }
    }

    @Test("%2F is not /, and a query makes another entry")
    func distinct() async throws {
        try await Workplace.with { place in
            let targets = ["/a/b", "/a%2Fb", "/a/b?x", "/a/b?x=1", "/A/b"]
            for (index, target) in targets.enumerated() {
                place.origin.serveFresh(target, length: 1000, seed: UInt64(index))
            }
            for target in targets { try await place.get(target, into: "a").expectDone() }
            for target in targets {
                let outcome = try await place.get(target, into: "a")
                #expect(outcome.json.text("source") == "disk")
                #expect(try place.file("a", equals: target), "\(target)")
            }
            #expect(place.origin.log.exchanges.map(\.target) == targets)
        }
    }

    @Test("Userinfo is sent as Basic authorization and never stored or printed")
    func userinfo() async throws {
        try await Workplace.with { place in
            place.origin.serve(
                "/a",
                .generated(length: 100_000, cacheControl: "public, max-age=60")
            )
            place.origin.serve("/gone", OriginScript(.status(404)))
            place.origin.serve("/drop", OriginScript(.dropped(.reset)))
            let authority = "http://frieda:geheimnis%2Fwort@127.0.0.1:\(place.origin.port)"
            var outcomes: [ProgramOutcome] = []
            let file = place.files.appending("a").string
            let commands: [[String]] = [
                ["get", "\(authority)/a", "-o", file, "--json"],
                ["get", "\(authority)/a", "-o", "/dev/null", "--json", "--log-level", "trace"],
                ["prefetch", "\(authority)/a", "--json"], ["show", "\(authority)/a", "--json"],
                ["get", "\(authority)/gone", "--log-level", "trace"],
                ["get", "\(authority)/drop", "--retries", "2", "--log-level", "trace"],
                ["get", "\(authority)/a", "--policy", "reload", "--range", "900000-"],
                ["get", "\(authority)/b", "--policy", "cache-only"],
                ["prefetch", "\(authority)/gone", "\(authority)/drop", "--retries", "1"],
                ["path", "\(authority)/a"], ["path", "\(authority)/none"], ["list", "--json"],
                ["list"], ["show", "\(authority)/a"], ["remove", "\(authority)/a"],
            ]
            for arguments in commands {
                outcomes.append(try await place.run(arguments))
            }
            let basic = Data("frieda:geheimnis/wort".utf8).base64EncodedString()
            let sent = place.origin.log.exchanges.map { $0.fields[.authorization] }
            #expect(!sent.isEmpty && sent.allSatisfy { $0 == "Basic \(basic)" }, "\(sent)")
            try await place.get("/a", into: "b")
            let secrets = ["frieda", "geheimnis", basic]
            for outcome in outcomes {
                let said = outcome.text + outcome.error
                for secret in secrets {
                    #expect(!said.contains(secret), "\(outcome.arguments): \(said)")
                }
            }
            for secret in secrets {
                #expect(try place.cacheFiles(occupancy: secret).isEmpty, "\(secret)")
            }
        }
    }

    @Test(
        "What is no absolute http or https URL is 64",
        arguments: [
            "", "a", "/a", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://", "http:///a",
            "http://a b/", "http://127.0.0.1:99999/", "http://example.com:x/", "http://[::1/a",
            "http://exa mple.com/", "http://127.0.0.1:9/a\nb", "//a/b",
            "mailto:a@b", "http://ex%ample/",
        ]
    )
    func malformed(url: String) async throws {
        try await Workplace.with { place in
            for command in ["get", "prefetch", "show", "path", "remove"] {
                try await place.run(command, url).expectFailure(64)
            }
            #expect(!place.files.names.contains("cache"), "\(url)")
        }
    }

    @Test("Names and schemes are compared without case, default ports without number")
    func normalised() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            try await place.get("/a", into: "a")
            let shouted = "HTTP://127.0.0.1:\(place.origin.port)/a"
            let outcome = try await place.run("get", shouted, "--json", "-o", "/dev/null")
            outcome.expectReport(place.origin.url("/a"), source: "disk", fromCache: 1000)
        }
    }
}

extension OriginLog {
    /// What a target is served under.
    fileprivate static func key(_ target: String) -> String {
        target.hasSuffix("?") ? String(target.dropLast()) : target
    }
}
