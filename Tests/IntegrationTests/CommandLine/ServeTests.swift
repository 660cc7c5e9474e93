import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tieredcache serve`, the real program, spoken to with curl and by hand.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ServeTests {
    private func curl(_ arguments: String...) async throws -> String {
        let result = try await Subprocess.run(
            .name("curl"),
            arguments: Arguments(["-sS", "--noproxy", "*"] + arguments),
            output: .string(limit: 64 << 20),
            error: .string(limit: 1 << 20)
        )
        #expect(result.terminationStatus == .exited(0), "\(result.standardError)")
        return result.standardOutput
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func itTellsItsAddressServesAndEndsInOrder(signal: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a.bin", length: 100_000)
            let status = try await place.serve(signal: signal) { server in
                let expected = #"{"base": "\#(server.base)", "port": \#(server.port)}"#
                #expect(server.line == expected)
                #expect(server.base.hasPrefix("http://127.0.0.1:\(server.port)/"))
                #expect(server.base.hasSuffix("/"))
                let url = server.base + "http/127.0.0.1:\(place.origin.port)/a.bin"
                let output = place.files.appending("out").string
                let told = try await curl("-o", output, "-w", "%{http_code} %{size_download}", url)
                #expect(told == "200 100000")
                #expect(try place.file("out", equals: "/a.bin"))
                let part = try await curl(
                    "-r",
                    "5-9",
                    "-o",
                    output,
                    "-w",
                    "%{http_code} %{size_download}",
                    url
                )
                #expect(part == "206 5")
            }
            #expect(status == .exited(0))
            #expect(place.exchanges("/a.bin").count == 1)
        }
    }

    @Test func portAndTokenStayWithTheDirectory() async throws {
        try await Workplace.with { place in
            var bases: [String] = []
            for signal in [SIGTERM, SIGKILL, SIGTERM] {
                try await place.serve(signal: signal) { bases.append($0.base) }
            }
            #expect(Set(bases).count == 1, "\(bases)")
            try await place.serve("--token", "mine-and-long-enough") { server in
                #expect(server.base.hasSuffix("/mine-and-long-enough/"))
            }
        }
    }

    @Test func tagsSurviveAKill() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a.bin", length: 300_000)
            var tags: [String] = []
            for signal in [SIGKILL, SIGTERM] {
                try await place.serve(signal: signal) { server in
                    let url = server.base + "http/127.0.0.1:\(place.origin.port)/a.bin"
                    let output = place.files.appending("out").string
                    tags.append(try await curl("-o", output, "-w", "%header{etag}", url))
                }
            }
            #expect(Set(tags).count == 1 && tags.first?.isEmpty == false, "\(tags)")
        }
    }

    /// What an origin says that lets a part be continued.
    enum Witness: CaseIterable, Sendable {
        case strongTag, date
    }

    @Test(
        "After a kill in the middle of an answer, conditions on its tag hold",
        arguments: Witness.allCases
    )
    func tagsOfPartsSurviveAKill(witness: Witness) async throws {
        try await Workplace.with { place in
            var film = OriginResource.generated(length: 400_000, cacheControl: "max-age=3600")
            if witness == .date {
                film.entityTag = .none
                film.lastModified = "Sun, 06 Nov 2005 08:49:37 GMT"
            }
            let served = film
            let gate = OriginGate()
            place.origin.serve("/a.mp4", film, .first(1, .wait(for: gate, after: 200_000)))
            let path = "http/127.0.0.1:\(place.origin.port)/a.mp4"
            let threads = IOExecutor(threads: 1)
            let hasRead = OriginGate()
            var answer: Task<String, any Error>?
            try await place.serve(signal: SIGKILL) { server in
                let question = Self.request(server, path, ["Range: bytes=0-"])
                answer = Task {
                    try await threads.run { () throws(RawConnection.Failure) in
                        defer { hasRead.open() }
                        let connection = try RawConnection(port: server.port)
                        try connection.send(question)
                        let head = try connection.receiveHead()
                        let bytes = try connection.receive(exactly: 100_000)
                        #expect(
                            firstDifference(bytes, served.generatedBody?.bytes(in: 0..<100_000))
                                == nil
                        )
                        hasRead.open()
                        // Open until the program is gone.
                        _ = try? connection.receiveAll()
                        return head
                    }
                }
                await hasRead.wait()
            }
            let head = try #require(try await answer?.value)
            let tag = try Self.field("etag", in: head)
            #expect(tag.hasPrefix("\""))
            gate.open()
            try await place.serve { server in
                for (fields, status) in [
                    (["Range: bytes=100000-", "If-Range: \(tag)"], 206),
                    (["Range: bytes=100000-", "If-Match: \(tag)"], 206),
                    (["If-None-Match: \(tag)"], 304), (["If-Match: \(tag)"], 200),
                ] {
                    let question = Self.request(server, path, fields + ["Connection: close"])
                    let start: Int64 = status == 206 ? 100_000 : 0
                    let (head, body) = try await threads.run { () throws(RawConnection.Failure) in
                        let connection = try RawConnection(port: server.port)
                        try connection.send(question)
                        return (try connection.receiveHead(), try connection.receiveAll())
                    }
                    #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(fields): \(head)")
                    #expect(try Self.field("etag", in: head) == tag, "\(fields)")
                    let whole = served.generatedBody?.bytes(in: start..<400_000)
                    #expect(body == (status == 304 ? [] : whole), "\(fields)")
                }
            }
        }
    }

    private static func request(
        _ server: ServingProgram,
        _ path: String,
        _ fields: [String]
    ) -> String {
        let target = server.base.dropFirst("http://127.0.0.1:\(server.port)".count) + path
        let lines = ["GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(server.port)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func field(_ name: String, in head: String) throws -> String {
        let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name + ": ") }
        return String(try #require(line).dropFirst(name.count + 2))
    }

    @Test func aTakenPortIsALocalFailure() async throws {
        try await Workplace.with { place in
            let port = place.origin.port
            try await place.run("serve", "--port", "\(port)").expectFailure(74, "\(port)")
        }
    }

    @Test func badArgumentsAreUsage() async throws {
        try await Workplace.with { place in
            try await place.run("serve", "--port", "65536").expectFailure(64, "--port")
            try await place.run("serve", "--token", "a/b").expectFailure(64, "token")
            try await place.run("serve", "--token", "fifteen-letters").expectFailure(64, "16")
            try await place.run("serve", "--maximum-downloads", "0")
                .expectFailure(64, "--maximum-downloads")
            try await place.run("serve", "--origin", "ftp://h/").expectFailure(64, "origin")
        }
    }

    @Test func belowTheFloorOfFreeSpaceEverythingIsServedAndNothingIsStored() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a.bin", length: 300_000)
            let status = try await place.serve("--min-free", "1000TiB") { server in
                let url = server.base + "http/127.0.0.1:\(place.origin.port)/a.bin"
                let output = place.files.appending("out").string
                for (range, told) in [("0-", "206 300000"), ("5-9", "206 5")] {
                    let answer = try await curl(
                        "-r",
                        range,
                        "-o",
                        output,
                        "-w",
                        "%{http_code} %{size_download}",
                        url
                    )
                    #expect(answer == told)
                }
                _ = try await curl("-o", output, url)
                #expect(try place.file("out", equals: "/a.bin"))
                let metrics = try await curl(server.base + "metrics")
                #expect(metrics.contains("\ntieredcache_stored_bytes_total 0\n"))
            }
            #expect(status == .exited(0))
        }
    }

    @Test func aReverseProxyForwardsAndCaches() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a.bin", length: 100_000)
            let origin = "http://127.0.0.1:\(place.origin.port)"
            let status = try await place.serve("--origin", origin) { server in
                #expect(server.base == "http://127.0.0.1:\(server.port)/")
                let output = place.files.appending("out").string
                for _ in 0..<2 {
                    let told = try await curl(
                        "-o",
                        output,
                        "-w",
                        "%{http_code} %header{via} %header{cache-status}",
                        server.base + "a.bin"
                    )
                    #expect(told.hasPrefix("200 1.1 tieredcache TieredCache; "), "\(told)")
                }
                #expect(try place.file("out", equals: "/a.bin"))
                let none = try await curl("-o", output, "-w", "%{http_code}", server.base + "none")
                #expect(none == "404")
            }
            #expect(status == .exited(0))
            #expect(place.exchanges("/a.bin").count == 1)
        }
    }
}
