import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Parts that nothing may be joined to: kept by themselves, and never one with another.
@Suite(.timeLimit(.minutes(10)))
struct PartTests {
    private static let fresh: HTTPFields = [.cacheControl: "max-age=60"]

    /// A 206 without a validator.
    private static func part(
        _ fixture: RelayFixture,
        _ range: String,
        _ body: String,
        _ fields: HTTPFields = fresh
    ) -> ScriptedResponse {
        var fields = fields
        fields[.contentRange] = "bytes \(range)"
        return fixture.answer(206, fields, body: body)
    }

    @Test("The end of something is kept, and answers what lies inside it while it is fresh")
    func suffixes() async throws {
        try await RelayFixture.run { fixture in
            let first = try await fixture.ask(
                .get,
                [.range: "bytes=-5"],
                Self.part(fixture, "5-9/10", "56789")
            )
            #expect(first.status == 206 && first.body == "56789")
            #expect(first.fields[.contentRange] == "bytes 5-9/10")
            #expect(first.cacheStatus.fieldValue == "TieredCache; fwd=uri-miss; stored")
            #expect(first.requests.first?.headerFields[.range] == "bytes=-5")
            fixture.time.advance(by: .seconds(10))
            for (range, body, place) in [
                ("bytes=-5", "56789", "5-9/10"), ("bytes=6-7", "67", "6-7/10"),
                ("bytes=8-", "89", "8-9/10"), ("bytes=-1", "9", "9-9/10"),
                ("bytes=7-99", "789", "7-9/10"),
            ] {
                let inside = try await fixture.ask(.get, [.range: range])
                #expect(inside.isHit && inside.status == 206 && inside.body == body, "\(range)")
                #expect(inside.fields[.contentRange] == "bytes \(place)")
                #expect(inside.fields[.contentLength] == String(body.utf8.count))
                #expect(inside.fields[.age] == "10")
                #expect(inside.cacheStatus.fieldValue == "TieredCache; hit; ttl=50; detail=disk")
            }
            for range in ["bytes=4-6", "bytes=-6", "bytes=0-", "bytes=5-6,8-9"] {
                let outside = try await fixture.ask(
                    .get,
                    [.range: range],
                    fixture.answer(200, [.cacheControl: "no-store"], body: "0123456789")
                )
                #expect(!outside.isHit, "\(range)")
            }
            let whole = try await fixture.ask(fixture.answer(200, body: "0123456789"))
            #expect(!whole.isHit && whole.requests.first?.headerFields[.range] == nil)
        }
    }

    @Test("A part that is no longer fresh is fetched again, and replaced")
    func staleParts() async throws {
        try await RelayFixture.run { fixture in
            let range: HTTPFields = [.range: "bytes=-2"]
            _ = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "ab"))
            fixture.time.advance(by: .seconds(61))
            let second = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "cd"))
            #expect(!second.isHit && second.body == "cd")
            #expect(try await fixture.ask(.get, range).body == "cd")
            #expect(try await fixture.cache.entries().count == 1)
        }
    }

    @Test("Two parts are never joined, whatever they say")
    func partsStayApart() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(
                .get,
                [.range: "bytes=-4"],
                Self.part(fixture, "4-7/8", "bbbb")
            )
            _ = try await fixture.ask(
                .get,
                [.range: "bytes=-6"],
                Self.part(fixture, "2-7/8", "cccccc")
            )
            let across = try await fixture.ask(.get, [.range: "bytes=2-5"])
            #expect(across.isHit && across.body == "cccc")
            let before = try await fixture.ask(
                .get,
                [.range: "bytes=1-4"],
                Self.part(fixture, "0-7/8", "dddddddd")
            )
            #expect(!before.isHit && before.body == "dddd")
        }
    }

    @Test("Of several parts that would do the newest answers (RFC 9111 §4)")
    func theNewestCounts() async throws {
        try await RelayFixture.run { fixture in
            let parts = [("-2", "2-3/4", "ab"), ("-3", "1-3/4", "xcd"), ("-4", "0-3/4", "yzef")]
            for (suffix, place, body) in parts {
                fixture.time.advance(by: .seconds(1))
                _ = try await fixture.ask(
                    .get,
                    [.range: "bytes=\(suffix)", .cacheControl: "no-cache"],
                    Self.part(fixture, place, body)
                )
                #expect(
                    try await firstDifference(
                        fixture.ask(.get, [.range: "bytes=-2"]).body,
                        body.suffix(2)
                    ) == nil
                )
            }
        }
    }

    @Test("A weak tag joins nothing, and its part is kept")
    func weakTags() async throws {
        try await RelayFixture.run { fixture in
            var fields = Self.fresh
            fields[.eTag] = "W/\"a\""
            let first = try await fixture.ask(
                .get,
                [.range: "bytes=1-2"],
                Self.part(fixture, "0-3/4", "abcd", fields)
            )
            #expect(first.body == "bc" && first.fields[.contentRange] == "bytes 1-2/4")
            // What was asked for was more than that, so that later requests find something.
            let second = try await fixture.ask(.get, [.range: "bytes=0-3"])
            #expect(second.isHit && second.body == "abcd" && second.fields[.eTag] == "W/\"a\"")
            let conditional = try await fixture.ask(
                .get,
                [.range: "bytes=0-3", .ifRange: "W/\"a\""],
                fixture.answer(200, [.cacheControl: "no-store"], body: "abcd")
            )
            #expect(!conditional.isHit)
        }
    }

    @Test("A part of another length than it says answers only the very same request")
    func odd() async throws {
        try await RelayFixture.run { fixture in
            let range: HTTPFields = [.range: "bytes=-5"]
            _ = try await fixture.ask(.get, range, Self.part(fixture, "4-9/10", "01234"))
            let same = try await fixture.ask(.get, range)
            #expect(same.isHit && same.status == 206 && same.body == "01234")
            #expect(same.fields[.contentRange] == "bytes 4-9/10")
            let other = try await fixture.ask(
                .get,
                [.range: "bytes=6-8"],
                fixture.answer(200, [.cacheControl: "no-store"], body: "0123456789")
            )
            #expect(!other.isHit && other.body == "678")
        }
    }

    @Test("What changes at the origin through this cache takes the parts along")
    func invalidation() async throws {
        try await RelayFixture.run { fixture in
            let range: HTTPFields = [.range: "bytes=-2"]
            _ = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "ab"))
            _ = try await fixture.ask(.put, fixture.answer(204))
            let after = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "cd"))
            #expect(!after.isHit && after.body == "cd")
            _ = try await fixture.cache.remove(CacheRequest("http://origin.example/a"))
            #expect(try await fixture.cache.entries().isEmpty)
        }
    }

    @Test("A whole that came later counts, not the part from before")
    func newerWhole() async throws {
        try await RelayFixture.run { fixture in
            let range: HTTPFields = [.range: "bytes=-2"]
            _ = try await fixture.ask(.get, range, Self.part(fixture, "2-3/4", "ab"))
            fixture.time.advance(by: .seconds(1))
            _ = try await fixture.ask(fixture.answer(200, Self.fresh, body: "wxyz"))
            let after = try await fixture.ask(.get, range)
            #expect(after.isHit && after.body == "yz")
        }
    }

    @Test("What must not be stored, or would never be fresh, is not kept as a part either")
    func notStored() async throws {
        try await RelayFixture.run { fixture in
            for fields: HTTPFields in [
                [.cacheControl: "no-store"], [.cacheControl: "max-age=0"], [:],
            ] {
                for _ in 0..<2 {
                    let answer = try await fixture.ask(
                        .get,
                        [.range: "bytes=-2"],
                        Self.part(fixture, "2-3/4", "ab", fields)
                    )
                    #expect(!answer.isHit && answer.cacheStatus.isStored == false)
                }
            }
            #expect(try await fixture.cache.entries().isEmpty)
        }
    }

    @Test("The end of a part that is still coming answers no other request: it may be lost")
    func unsealedEnd() async throws {
        try await RelayFixture.run { fixture in
            let body = bytes(200_000)
            var fields = Self.fresh
            fields[.contentRange] = "bytes 0-131071/200000"
            fields[.contentLength] = "131072"
            let coming = ScriptedResponse(
                status: 206,
                fields: fields,
                steps: [.bytes(Array(body[..<70_000])), .stall]
            )
            fields[.contentRange] = "bytes 65536-131071/200000"
            fields[.contentLength] = "65536"
            let another = ScriptedResponse(
                status: 206,
                fields: fields,
                steps: [.bytes(Array(body[65_536..<131_072]))]
            )
            fixture.prepare(coming, another)
            var request = try CacheRequest("http://origin.example/a")
            request.range = .bounded(0..<131_072)
            let first = try await fixture.cache.response(for: request)
            var iterator = first.body.makeAsyncIterator()
            var count = 0
            while count < 70_000, let chunk = try await iterator.next() { count += chunk.count }
            request.range = .bounded(66_000..<67_000)
            let second = try await fixture.cache.data(for: request)
            #expect(firstDifference([UInt8](second), Array(body[66_000..<67_000])) == nil)
            #expect(fixture.transport.requests.count == 2)
            // What is sealed stays, whatever becomes of the rest.
            request.range = .bounded(1000..<2000)
            let third = try await fixture.cache.data(for: request)
            #expect(firstDifference([UInt8](third), Array(body[1000..<2000])) == nil)
            #expect(fixture.transport.requests.count == 2)
        }
    }

    @Test("A part whose bytes turn out to be gone is fetched, where the policy lets it be")
    func damaged() async throws {
        try await RelayFixture.run { fixture in
            for isCacheOnly in [false, true] {
                fixture.prepare(Self.part(fixture, "0-7/8", "abcdefgh"))
                var request = try CacheRequest("http://origin.example/\(isCacheOnly)")
                request.range = .bounded(2..<6)
                let data = try await fixture.cache.data(for: request)
                #expect(String(decoding: data, as: UTF8.self) == "cdef")
                for path in fixture.disk.files.keys where path.hasSuffix(".record") {
                    fixture.disk.cut(path, to: (fixture.disk.files[path] ?? 0) / 64)
                }
                fixture.prepare(Self.part(fixture, "0-7/8", "ABCDEFGH"))
                if isCacheOnly { request.policy = .cacheOnly }
                let wanted = request
                do throws(CacheError) {
                    let data = try await fixture.cache.data(for: wanted)
                    #expect(!isCacheOnly && String(decoding: data, as: UTF8.self) == "CDEF")
                } catch {
                    #expect(isCacheOnly && error.code == .notCached)
                }
            }
        }
    }

    @Test("A part that breaks off is never taken for whole")
    func cutParts() async throws {
        let once: (inout MediaCache.Configuration) -> Void = { $0.retries = 1 }
        try await RelayFixture.run(once) { fixture in
            let range: HTTPFields = [.range: "bytes=-5"]
            let fields: HTTPFields = [.cacheControl: "max-age=60", .contentLength: "5"]
            let cut = Self.part(fixture, "5-9/10", "567", fields)
            _ = await #expect(throws: (any Error).self) {
                try await fixture.ask(.get, range, cut)
            }
            let again = try await fixture.ask(.get, range, Self.part(fixture, "5-9/10", "56789"))
            #expect(!again.isHit && again.body == "56789")
            #expect(try await fixture.ask(.get, range).isHit)
        }
    }

    @Test("The application gets bytes of such a part too")
    func application() async throws {
        try await RelayFixture.run { fixture in
            var request = try CacheRequest("http://origin.example/a")
            request.range = .bounded(1..<3)
            fixture.prepare(Self.part(fixture, "0-3/4", "abcd"))
            let first = try await fixture.cache.data(for: request)
            #expect(String(decoding: first, as: UTF8.self) == "bc")
            request.range = .suffix(2)
            let second = try await fixture.cache.response(for: request)
            #expect(second.cacheStatus.isHit && second.source == .disk)
            #expect(second.completeLength == 4 && second.range.lowerBound == 2)
            let bytes = try await second.body.collect()
            #expect(String(decoding: bytes, as: UTF8.self) == "cd")
            request.policy = .reload
            fixture.prepare(
                Self.part(fixture, "0-3/4", "efgh"),
                Self.part(fixture, "0-3/4", "efgh")
            )
            let third = try await fixture.cache.data(for: request)
            #expect(String(decoding: third, as: UTF8.self) == "gh")
        }
    }

    @Test(
        "A player gets bytes of such a part from where they are; a reader takes no part for the whole"
    )
    func players() async throws {
        try await RelayFixture.run { fixture in
            let block = Int(BlockTable.blockSize)
            let whole = (0..<3 * block / 8).map { String($0 + 10_000_000) }.joined()
            let last = String(whole.dropFirst(2 * block))
            var request = try CacheRequest("http://origin.example/a")
            request.range = .openEnded(from: 2 * Int64(block))
            let place = "\(2 * block)-\(3 * block - 1)/\(3 * block)"
            fixture.prepare(Self.part(fixture, place, last))
            #expect(try await fixture.cache.data(for: request).count == block)
            request.range = .openEnded(from: 2 * Int64(block) + 1000)
            let played = try await fixture.cache.streamedResponse(for: request)
            #expect(played.cacheStatus.isHit && played.completeLength == Int64(3 * block))
            #expect(played.range == (2 * Int64(block) + 1000, 3 * Int64(block)))
            let bytes = try await played.body.collect()
            #expect(firstDifference(bytes, last.utf8.dropFirst(1000)) == nil)
            fixture.prepare(fixture.answer(200, Self.fresh, body: whole))
            let reader = try await fixture.cache.reader(for: request, at: 2 * Int64(block))
            #expect(try await firstDifference(reader.all(), whole.utf8) == nil)
        }
    }

    @Test("What one client got for its credentials is not for the others of a private cache")
    func credentials() async throws {
        try await RelayFixture.run { fixture in
            let alice: HTTPFields = [.authorization: "Basic YQ=="]
            let bob: HTTPFields = [.authorization: "Basic Yg=="]
            let secret = fixture.answer(200, Self.fresh, body: "of alice")
            _ = try await fixture.ask(.get, alice, secret)
            #expect(try await fixture.ask(.get, alice).body == "of alice")
            let other = try await fixture.ask(
                .get,
                bob,
                fixture.answer(200, Self.fresh, body: "of bob")
            )
            #expect(!other.isHit && other.body == "of bob")
            #expect(try await fixture.ask(.get, alice).isHit)
            #expect(try await fixture.ask(.get, bob).body == "of bob")
            let refused = try await fixture.ask(fixture.answer(401, body: "refused"))
            #expect(!refused.isHit && refused.status == 401)
            #expect(try await fixture.ask(.get, alice).isHit)
            // What the origin says is for anybody is.
            let open = fixture.answer(200, [.cacheControl: "public, max-age=60"], body: "open")
            _ = try await fixture.ask(.get, [.authorization: "Basic Yw=="], open)
            #expect(try await fixture.ask().body == "open")
        }
    }
}
