import FoundationEssentials
import HTTPTypes
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

/// `list`, `stats`, `show`, `path`.
@Suite("list, stats, show, path", .tags(.realTime), .timeLimit(.minutes(10)))
struct InspectionTests {
    /// One object of `list --json`.
    private func entry(
        _ url: String,
        key: String? = nil,
        length: String,
        stored: Int,
        complete: Bool = true,
        pinned: Bool = false
    ) -> String {
        #"{"complete":\#(complete),"held":\#(stored),"key":"\#(key ?? url)","length":\#(length),"#
            + #""pinned":\#(pinned),"status":200,"url":"\#(url)"}"#
    }

    @Test("list --json: one object per line")
    func list() async throws {
        try await Workplace.with { place in
            let empty = try await place.run("list", "--json")
            empty.expectDone()
            #expect(empty.output.isEmpty)
            place.origin.serveFresh("/a", length: 1000)
            place.origin.serveFresh("/b", length: 1_000_000)
            place.origin.serveFresh("/c", length: 0)
            try await place.get("/a", into: "a", "--pin")
            try await place.get("/b", into: "b", "--range", "0-65535")
            try await place.get("/c", into: "c")
            let list = try await place.run("list", "--json")
            list.expectDone()
            let url = place.origin.url
            #expect(
                list.lines == [
                    entry(url("/a"), length: "1000", stored: 1000, pinned: true),
                    entry(url("/b"), length: "1000000", stored: 65_536, complete: false),
                    entry(url("/c"), length: "0", stored: 0),
                ]
            )
            let plain = try await place.run("list")
            plain.expectDone()
            #expect(plain.lines.count == 3)
        }
    }

    @Test("The length is null while the origin has not told it")
    func unknownLength() async throws {
        try await Workplace.with { place in
            var resource = OriginResource.generated(length: 500_000, cacheControl: "max-age=60")
            resource.framing = .chunked
            place.origin.serve("/a", resource, .first(1, .cut(after: 200_000)).then(.dropped()))
            try await place.get("/a", into: "a", "--retries", "1").expectFailure(69)
            let list = try await place.run("list", "--json")
            list.expectDone()
            #expect(list.lines.count == 1)
            #expect(list.text.contains(#""length":null,"#))
            #expect(list.text.contains(#""complete":false"#))
        }
    }

    @Test("An explicit key is shown as the key, the URL stays the URL")
    func explicitKey() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let key = "film \"1\" ä\u{2028}"
            try await place.get("/a", into: "a", "--key", key).expectDone()
            let list = try await place.run("list", "--json")
            #expect(list.lines.count == 1)
            #expect(list.json.text("url") == place.origin.url("/a"))
            #expect(list.json.text("key")?.contains("film \"1\" ä") == true)
        }
    }

    @Test("show --json: the same object with the header fields")
    func show() async throws {
        try await Workplace.with { place in
            var resource = OriginResource.text("hello", cacheControl: "max-age=60")
            resource.fields[.contentLanguage] = "de"
            place.origin.serve("/a", resource)
            let url = place.origin.url("/a")
            try await place.get("/a", into: "a")
            let show = try await place.run("show", url, "--json")
            show.expectDone()
            #expect(show.lines.count == 1)
            let first = #"{"complete":true,"#
            let others = entry(url, length: "5", stored: 5).dropFirst(first.count)
            #expect(show.text.hasPrefix(first + #""headers":{"#))
            #expect(show.lines.last?.hasSuffix("}," + others) == true)
            for header in [
                #""content-type":"text/plain""#, #""content-language":"de""#,
                #""cache-control":"max-age=60""#, #""etag":""#, #""content-length":"5""#,
            ] {
                #expect(show.text.contains(header), "\(header): \(show.text)")
            }
            let plain = try await place.run("show", url)
            plain.expectDone()
            #expect(plain.text.contains(url))
            #expect(plain.text.lowercased().contains("content-language: de"))
        }
    }

    @Test("path and show of what is not stored, and path of a part, are 66")
    func notStored() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1_000_000)
            try await place.get("/a", into: "a", "--range", "0-99999").expectDone()
            let other = place.origin.url("/b")
            for command in ["path", "show"] {
                let outcome = try await place.run(command, other)
                outcome.expectFailure(66, other)
                #expect(outcome.output.isEmpty)
            }
            let url = place.origin.url("/a")
            try await place.run("path", url).expectFailure(66, url)
            try await place.run("show", url).expectDone()
            #expect(place.origin.log.exchanges.count == 1)
        }
    }

    @Test(
        "path prints one absolute path to the complete body, small or large",
        arguments: [0, 1, 5000, 65_536, 65_537, 3_000_000]
    )
    func path(length: Int64) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: length)
            try await place.get("/a", into: "a").expectDone()
            let url = place.origin.url("/a")
            for _ in 0..<2 {
                let outcome = try await place.run("path", url)
                outcome.expectDone()
                #expect(outcome.lines.count == 1)
                let path = FilePath(outcome.lines.first ?? "")
                #expect(path.isAbsolute)
                let bytes = FileManager.default.contents(atPath: path.string) ?? Data([1])
                #expect(place.origin.resource("/a")?.generatedBody?.matches(Array(bytes)) == true)
            }
            // A relative directory gives an absolute path all the same.
            let relative = try await place.run("path", url, directory: "cache")
            #expect(FilePath(relative.lines.first ?? "").isAbsolute)
            try await place.get("/a", into: "b")
                .expectReport(url, source: "disk", fromCache: length)
        }
    }

    @Test("stats --json counts what the disk allocates for files")
    func stats() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            place.origin.serveFresh("/b", length: 3_000_000)
            try await place.get("/a", into: "a")
            try await place.get("/b", into: "b")
            let outcome = try await place.run("stats", "--json", "--disk-limit", "64MiB")
            outcome.expectDone()
            #expect(outcome.lines.count == 1)
            #expect(outcome.json.integer("entries") == 2)
            #expect(outcome.json.integer("limit") == 64 << 20)
            #expect(outcome.json.integer("bytes") == Int64(try place.allocatedBytes()))
            let plain = try await place.run("stats")
            plain.expectDone()
            #expect(plain.lines.first?.hasPrefix("2 entries, ") == true)
        }
    }
}

extension Workplace {
    /// What the disk allocates for the files below the cache directory.
    func allocatedBytes() throws -> Int {
        try cacheFiles().keys.reduce(0) { sum, name in
            var status = stat()
            guard lstat(cache.appending(name).string, &status) == 0 else { return sum }
            return sum + Int(status.st_blocks) * 512
        }
    }
}
