import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `--key`, `--method`, `--data`, `--header`.
@Suite("get: keys, methods and fields", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetKeyTests {
    @Test("A key names the entry whatever the URL's signature is")
    func rotating() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 100_000)
            try await place.get("/a?sig=1", into: "a", "--key", "film").expectDone()
            let again = try await place.get("/a?sig=2", into: "b", "--key", "film")
            again.expectDone()
            #expect(again.json.text("source") == "disk")
            #expect(try place.file("b", equals: "/a"))
            #expect(place.origin.log.exchanges.count == 1)
            // The URL alone is another entry.
            #expect(try await place.get("/a?sig=1", into: "c").json.text("source") == "origin")
            let show = try await place.run(
                "show",
                place.origin.url("/a?sig=3"),
                "--key",
                "film",
                "--json"
            )
            show.expectDone()
        }
    }

    @Test("--data implies POST, which is not stored without --key")
    func postWithoutKey() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            for _ in 0..<2 {
                let outcome = try await place.get("/a", into: "a", "--data", "question=1")
                outcome.expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 1000)
            }
            let exchanges = place.exchanges("/a")
            #expect(exchanges.map(\.method) == ["POST", "POST"])
            #expect(
                firstDifference(
                    exchanges.map(\.body),
                    Array(repeating: Array("question=1".utf8), count: 2)
                ) == nil
            )
            #expect(exchanges.allSatisfy { $0.fields[.contentLength] == "10" })
            #expect(try await place.run("list").lines.isEmpty)
        }
    }

    @Test("POST with --key is stored under key and method")
    func postWithKey() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            for (source, count) in [("origin", 1), ("disk", 1)] {
                let outcome = try await place.get(
                    "/a",
                    into: "a",
                    "--data",
                    "q=1",
                    "--key",
                    "search q=1"
                )
                outcome.expectDone()
                #expect(outcome.json.text("source") == source)
                #expect(place.origin.log.exchanges.count == count)
            }
            // Same key, other method: another entry.
            let get = try await place.get("/a", into: "a", "--key", "search q=1")
            #expect(get.json.text("source") == "origin")
            let other = try await place.get("/a", into: "a", "--data", "q=2", "--key", "search q=2")
            #expect(other.json.text("source") == "origin")
        }
    }

    @Test("--method with --data, and a body that begins with a dash")
    func methods() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 10)
            let url = place.origin.url("/a")
            try await place.run("get", url, "--method", "PUT", "--data", "--x").expectDone()
            try await place.run("get", url, "--method", "POST").expectDone()
            let exchanges = place.exchanges("/a")
            #expect(exchanges.map(\.method) == ["PUT", "POST"])
            #expect(firstDifference(exchanges[0].body, Array("--x".utf8)) == nil)
            try await place.run("get", url, "--method", "a b").expectFailure(64, "a b")
            try await place.run("get", url, "--method", "").expectFailure(64)
        }
    }

    @Test("HEAD delivers no body and does not spoil the entry")
    func head() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 100_000)
            let head = try await place.get("/a", into: "a", "--method", "HEAD")
            head.expectDone()
            #expect(try place.files.read("a").isEmpty)
            try await place.get("/a", into: "a").expectDone()
            #expect(try place.file("a", equals: "/a"))
        }
    }

    @Test("Fields are sent as given and select the response")
    func fields() async throws {
        try await Workplace.with { place in
            var resource = OriginResource.text("hello", cacheControl: "max-age=60")
            resource.fields[.vary] = "Accept-Language"
            // Without a validator: with one, the tags stored are offered, and one may be confirmed.
            resource.entityTag = .none
            place.origin.serve("/a", resource)
            let german = ["--header", "Accept-Language: de", "--header", "X-Two:  b c "]
            let url = place.origin.url("/a")
            try await place.run(["get", url] + german).expectDone()
            let sent = try #require(place.exchanges("/a").first?.fields)
            #expect(sent[.acceptLanguage] == "de")
            #expect(sent[try #require(HTTPField.Name("X-Two"))] == "b c")
            let same = try await place.run(["get", url, "--json"] + german)
            #expect(same.errorJSON.text("source") == "disk")
            let other = try await place.run(
                "get",
                url,
                "--json",
                "--header",
                "Accept-Language: fr"
            )
            #expect(other.errorJSON.text("source") == "origin")
        }
    }

    @Test(
        "A field with control characters or without name is 64",
        arguments: ["A: b\r\nC: d", "A: b\nC: d", "A: \u{1}", "no colon", ": v", "a b: c", ""]
    )
    func malformedField(field: String) async throws {
        try await Workplace.with { place in
            let outcome = try await place.run("get", place.origin.url("/a"), "--header", field)
            outcome.expectFailure(64, "--header")
            #expect(place.origin.log.exchanges.isEmpty)
        }
    }

    @Test("Authorization given as a field is never stored")
    func authorization() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", .text("x", cacheControl: "max-age=60"))
            let outcome = try await place.run(
                "get",
                place.origin.url("/a"),
                "--header",
                "Authorization: Bearer geheimnis",
                "--header",
                "Cookie: id=geheimnis",
                "--log-level",
                "trace"
            )
            #expect(outcome.text == "x")
            #expect(!outcome.error.contains("geheimnis"))
            #expect(try place.cacheFiles(occupancy: "geheimnis").isEmpty)
        }
    }
}
