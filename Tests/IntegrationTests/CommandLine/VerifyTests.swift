import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `verify`, and what `get` does about damage.
@Suite("verify", .tags(.realTime), .timeLimit(.minutes(10)))
struct VerifyTests {
    private func json(_ entries: Int, _ blocks: Int, _ damaged: Int, _ repaired: Int) -> String {
        #"{"blocks":\#(blocks),"damaged":\#(damaged),"entries":\#(entries),"repaired":\#(repaired)}"#
    }

    private func damage(_ file: FilePath, at offset: Int64) throws {
        let descriptor = try FileDescriptor.open(file, .readWrite)
        try descriptor.closeAfter {
            var byte: [UInt8] = [0]
            _ = try byte.withUnsafeMutableBytes {
                try descriptor.read(fromAbsoluteOffset: offset, into: $0)
            }
            _ = try descriptor.writeAll(toAbsoluteOffset: offset, [byte[0] ^ 1])
        }
    }

    @Test("Nothing, whole bodies and parts are not damage")
    func sound() async throws {
        try await Workplace.with { place in
            #expect(try await place.run("verify", "--json").lines == [json(0, 0, 0, 0)])
            place.origin.serveFresh("/a", length: 1000)
            place.origin.serveFresh("/b", length: 4 * 65_536)
            try await place.get("/a", into: "a")
            try await place.get("/b", into: "b", "--range", "65536-131071")
            let outcome = try await place.run("verify", "--json")
            outcome.expectDone()
            #expect(outcome.lines == [json(2, 2, 0, 0)])
            try await place.run("verify").expectDone()
        }
    }

    @Test("Damage is 74; with --repair it is dropped and fetched again, that block alone")
    func damaged() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 10 * 65_536)
            try await place.get("/a", into: "a")
            try damage(try place.onlyCacheFile(".body"), at: 3 * 65_536 + 17)
            let found = try await place.run("verify", "--json")
            found.expectFailure(74, "1 damaged", "--repair")
            #expect(found.lines == [json(1, 10, 1, 0)])
            let repaired = try await place.run("verify", "--repair", "--json")
            repaired.expectDone()
            #expect(repaired.lines == [json(1, 10, 1, 1)])
            let again = try await place.run("verify", "--json")
            again.expectDone()
            #expect(again.lines == [json(1, 9, 0, 0)])
            let get = try await place.get("/a", into: "b")
            get.expectReport(
                place.origin.url("/a"),
                source: "origin",
                fromCache: 9 * 65_536,
                fromOrigin: 65_536
            )
            #expect(try place.file("b", equals: "/a"))
        }
    }

    @Test("get never delivers a damaged block, without any verify")
    func getAfterDamage() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 10 * 65_536)
            place.origin.serveFresh("/small", length: 3000)
            try await place.get("/a", into: "a")
            try damage(try place.onlyCacheFile(".body"), at: 9 * 65_536)
            let get = try await place.get("/a", into: "b")
            get.expectDone()
            #expect(get.json.text("source") == "origin")
            #expect(get.json.integer("bytes") == 655_360)
            #expect(try place.file("b", equals: "/a"))
            try await place.run("clear").expectDone()
            try await place.get("/small", into: "s")
            let record = try place.onlyCacheFile(".record")
            let size = Int64(
                try place.cacheFiles().first { $0.key.hasSuffix(".record") }?.value.count ?? 0
            )
            try damage(record, at: size - 10)
            try await place.get("/small", into: "t").expectDone()
            #expect(try place.file("t", equals: "/small"))
        }
    }

    @Test("A body file that is gone, cut short or made longer costs bytes, never wrong ones")
    func mangled() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 5 * 65_536 + 100)
            for length in [0, 70_000, 5 * 65_536 + 200] as [Int64] {
                try await place.run("clear").expectDone()
                try await place.get("/a", into: "a")
                let body = try place.onlyCacheFile(".body")
                let descriptor = try FileDescriptor.open(body, .readWrite)
                try descriptor.closeAfter { try descriptor.resize(to: length) }
                try await place.get("/a", into: "b").expectDone()
                #expect(try place.file("b", equals: "/a"), "\(length)")
            }
            let record = try place.onlyCacheFile(".record")
            let descriptor = try FileDescriptor.open(record, .readWrite)
            try descriptor.closeAfter { try descriptor.resize(to: 40) }
            try await place.get("/a", into: "c").expectDone()
            #expect(try place.file("c", equals: "/a"))
        }
    }
}
