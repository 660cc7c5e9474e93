import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `downloads`, `resume`, `pause` and `cancel`, after a program that was interrupted.
@Suite("Unfinished downloads", .tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadsTests {
    private static let length: Int64 = 2_000_000

    /// Gets a target that stalls half way, and ends the program by a signal.
    private func interrupt(_ target: String, in place: Workplace, by signal: Int32) async throws {
        let before = place.origin.log.bodyBytesWritten
        _ = try await place.get(target, into: "x") { running in
            // The record is written before the request goes out.
            await place.origin.waitUntil { $0.bodyBytesWritten >= before + 1_000_000 }
            running.send(signal)
            await place.origin.waitUntil { $0.openConnections == 0 }
        }
    }

    @Test("An interrupted get is listed, and resume goes on with it", arguments: [SIGINT, SIGKILL])
    func resume(signal: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            try await interrupt("/a", in: place, by: signal)
            let list = try await place.run("downloads", "--json")
            list.expectDone()
            #expect(list.lines.count == 1)
            #expect(list.json.text("url") == place.origin.url("/a"))
            #expect(list.json.text("state") == "queued")
            let stored = try #require(list.json.integer("bytes"))
            // How much the process had taken from its socket when the signal came is its affair.
            #expect(stored == 0 || list.json.integer("total") == Self.length)
            let resumed = try await place.run("resume", "--json")
            resumed.expectDone()
            #expect(resumed.json.text("state") == "finished")
            #expect(resumed.json.integer("bytes") == Self.length)
            try await place.run("downloads").expectDone()
            #expect(try place.jobs.isEmpty)
            let again = try await place.get("/a", into: "a")
            again.expectReport(place.origin.url("/a"), source: "disk", fromCache: Self.length)
            #expect(try place.file("a", equals: "/a"))
            let ranges = place.exchanges("/a").map { $0.fields[.range] }
            #expect(ranges.count == 2 && (stored == 0 || ranges[1] == "bytes=\(stored)-1999999"))
        }
    }

    @Test("Paused ones wait for resume, cancelled ones for their URL")
    func pauseAndCancel() async throws {
        try await Workplace.with { place in
            for target in ["/a", "/b", "/c"] {
                place.origin.serveFresh(
                    target,
                    length: Self.length,
                    .first(1, .stall(after: 1_000_000))
                )
            }
            try await interrupt("/a", in: place, by: SIGKILL)
            try await place.run("pause", place.origin.url("/a")).expectDone()
            let paused = try await place.run("downloads")
            #expect(paused.text.hasPrefix("paused  "))
            try await place.run("cancel", place.origin.url("/a")).expectDone()
            let cancelled = try await place.run("downloads", "--json")
            #expect(cancelled.json.text("state") == "cancelled")
            try await place.run("resume").expectDone()
            #expect(place.exchanges("/a").count == 1)
            try await place.run("resume", place.origin.url("/a")).expectDone()
            #expect(place.exchanges("/a").count == 2)

            let none = try await place.run("pause", place.origin.url("/b"))
            none.expectFailure(66, "no unfinished download")
            try await interrupt("/b", in: place, by: SIGKILL)
            try await place.run("cancel", "--drop", place.origin.url("/b")).expectDone()
            #expect(try await place.run("show", place.origin.url("/b")).exitCode == 66)
            #expect(try place.jobs.isEmpty)
        }
    }

    @Test("resume says which failed, and keeps what may still succeed")
    func failures() async throws {
        try await Workplace.with { place in
            for target in ["/a", "/b"] {
                place.origin.serveFresh(
                    target,
                    length: Self.length,
                    .first(1, .stall(after: 1_000_000))
                )
                try await interrupt(target, in: place, by: SIGKILL)
                if target == "/a" { #expect(try place.jobs.count == 1) }
            }
            place.origin.serve("/a", OriginScript(.status(404)))
            let outcome = try await place.run("resume", "--json")
            outcome.expectFailure(69, place.origin.url("/a"), "404")
            #expect(outcome.lines.count == 2)
            let left = try await place.run("downloads", "--json")
            #expect(left.lines.count == 1)
            #expect(left.json.text("state") == "failed")
            // It failed for good, so it goes on only where it is named.
            try await place.run("resume").expectDone()
        }
    }

    @Test("Where another process owns the directory, its downloads are listed and left to it")
    func guest() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            try await place.get("/a", into: "a") { running in
                await place.origin.waitUntil { !$0.exchanges.isEmpty }
                let list = try await place.run("downloads", "--json")
                #expect(list.json.text("url") == place.origin.url("/a"))
                // A listing cannot see how far it is, but which process has it.
                let owner = running.processIdentifier
                #expect(list.text.contains("\"owner\":\(owner)"))
                let line = try await place.run("downloads").text
                #expect(line.contains("process \(owner) owns the directory"))
                for order in [["pause", place.origin.url("/a")], ["resume"]] {
                    let refused = try await place.run(order)
                    refused.expectFailure(75, "owns the cache directory")
                }
                running.send(SIGINT)
            }
        }
    }

    @Test("What needs no record leaves none: hits, ranges, errors, small bodies")
    func noRecord() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 100_000)
            place.origin.serve("/lost", OriginScript(.status(404)))
            try await place.get("/a", into: "a").expectDone()
            try await place.get("/a", into: "a").expectDone()
            try await place.get("/lost", into: "b").expectFailure(69, "404")
            try await place.run("get", place.origin.url("/a"), "--range", "0-99").expectDone()
            #expect(try place.jobs.isEmpty)
        }
    }
}

extension Workplace {
    /// The names of the job records.
    var jobs: [String] {
        get throws { try cacheFiles().keys.filter { $0.hasSuffix(".job") } }
    }
}
