import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What guests of a directory get through its owner.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct GuestServiceTests {
    @Test func twoFetchEachByteOnceAndItIsStored() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(3_000_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join()
            #expect(guest.cache.storageError?.code == .notOwner)
            let request = try fixture.request("/film")
            async let one = owner.cache.data(for: request)
            async let other = guest.cache.data(for: request)
            let expected = try fixture.bytes("/film")
            #expect(try await one == expected)
            #expect(try await other == expected)
            #expect(fixture.sent("/film") == 3_000_000)
            #expect(try await owner.cache.entry(for: request)?.isComplete == true)
        }
    }

    @Test(arguments: [nil, 1_000_500..<1_100_000] as [Range<Int64>?])
    func viaPartsNoTransfers(range: Range<Int64>?) async throws {
        try await GuestFixture.run { fixture in
            let gate = OriginGate()
            let script = OriginScript.first(1, .wait(for: gate, after: 1_000_000))
            fixture.origin.serve("/film", .fresh(3_000_000), script)
            let owner = try await fixture.join { $0.via = "1.1 owner" }
            let guest = try await fixture.join { $0.via = "1.1 guest" }
            async let whole = guest.cache.data(for: fixture.request("/film"))
            await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/film") >= 1_000_000 }
            var request = try fixture.request("/film")
            request.range = range.map { .bounded($0) }
            async let part = owner.cache.data(for: request)
            let shares = { owner.cache.statistics.downloadsShared > 0 }
            while !shares(), fixture.origin.log.exchanges(for: "/film").count < 2 {
                await Task.yield()
            }
            gate.open()
            let expected = try fixture.bytes("/film")
            #expect(try await whole == expected)
            #expect(try await part == range.map { expected[$0] } ?? expected)
            #expect(fixture.sent("/film") == 3_000_000)
        }
    }

    @Test func aGuestAloneStoresThroughTheOwner() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(3_000_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/film")
            let expected = try fixture.bytes("/film")
            for _ in 0..<3 { #expect(try await guest.cache.data(for: request) == expected) }
            #expect(fixture.sent("/film") == 3_000_000)
            #expect(try await owner.cache.entry(for: request)?.isComplete == true)
        }
    }

    @Test func partsAreStoredAsPartsOfOneEntry() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(8_000_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let expected = try fixture.bytes("/film")
            for start in [5_000_000, 0, 7_000_000, 2_500_000] as [Int64] {
                var request = try fixture.request("/film")
                request.range = .bounded(start..<start + 1000)
                let part = try await guest.cache.data(for: request)
                #expect(part == expected[start..<start + 1000])
            }
            let entry = try #require(try await owner.cache.entry(for: fixture.request("/film")))
            #expect(entry.length == 8_000_000 && entry.storedBytes >= 4000)
            #expect(fixture.sent("/film") < 4_000_000)
        }
    }

    @Test func keyAndFieldsAreTheGuests() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(1000))
            let owner = try await fixture.join()
            let guest = try await fixture.join()
            let key = "Käse, 100 %\u{0}\r\n"
            var request = try fixture.request("/film", key: key)
            request.fields[.authorization] = "Bearer of a ring"
            #expect(try await guest.cache.data(for: request).count == 1000)
            #expect(try await owner.cache.entry(for: request)?.explicitKey == key)
            let asked = try #require(fixture.origin.log.exchanges(for: "/film").first)
            #expect(asked.fields[.authorization] == "Bearer of a ring")
            #expect(!asked.fields.contains { $0.name.rawName.hasPrefix("TieredCache-") })
        }
    }

    @Test func aChangeAndAReloadReachTheGuest() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve(
                "/film",
                .generated(length: 200_000, seed: 1, cacheControl: "no-cache")
            )
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/film")
            #expect(try await guest.cache.data(for: request) == fixture.bytes("/film"))
            #expect(try await guest.cache.data(for: request) == fixture.bytes("/film"))
            // It was validated, not fetched again.
            #expect(fixture.sent("/film") == 200_000)
            fixture.origin.update("/film") { $0.version += 1 }
            #expect(try await guest.cache.data(for: request) == fixture.bytes("/film"))
            var reload = request
            reload.policy = .reload
            let before = fixture.sent("/film")
            #expect(try await guest.cache.data(for: reload) == fixture.bytes("/film"))
            #expect(fixture.sent("/film") > before)
        }
    }

    @Test func errorsAndEmptyBodiesAreTheOrigins() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/gone", .fresh(10), OriginScript(.status(404)))
            fixture.origin.serve("/empty", .fresh(0))
            fixture.origin.serve("/moved", .fresh(10), OriginScript(.redirect(to: "/film")))
            fixture.origin.serve("/film", .fresh(5000))
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let gone = try await guest.cache.response(for: fixture.request("/gone"))
            #expect(gone.status == .notFound)
            #expect(try await guest.cache.data(for: fixture.request("/empty")).isEmpty)
            #expect(try await guest.cache.data(for: fixture.request("/moved")).count == 5000)
            #expect(try await guest.cache.data(for: fixture.request("/moved")).count == 5000)
        }
    }

    @Test func aBodyOfUnknownLengthIsWhole() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(3_000_000))
            fixture.origin.update("/film") { resource in
                resource.framing = .chunked
                resource.acceptsRanges = false
            }
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let bytes = try fixture.bytes("/film")
            var part = try fixture.request("/film")
            part.range = .bounded(0..<65_536)
            #expect(try await guest.cache.data(for: part) == bytes.prefix(65_536))
            #expect(try await guest.cache.data(for: fixture.request("/film")) == bytes)
            // What a guest says on the wire: a part of unknown length is asked for, all is given.
            let (directory, url) = (fixture.directory, fixture.origin.url("/film"))
            let head = try await onThread {
                let connection = try connection(toOwnerOf: directory)
                try connection.send(
                    "GET /2/\(url) HTTP/1.1\r\nHost: localhost\r\nTieredCache-Reload: 1\r\n"
                        + "TieredCache-Priority: 2\r\nRange: bytes=0-65535\r\n\r\n"
                )
                _ = try connection.receiveHead()
                return try connection.receiveHead()
            }
            #expect(!head.lowercased().contains("content-length: 65536"), "\(head)")
        }
    }

    @Test func whatARedirectLeadsToIsFetchedOnceAndStored() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/moved", .fresh(10), OriginScript(.redirect(to: "/deep/film")))
            fixture.origin.serve("/deep/film", .fresh(5000))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/moved")
            for _ in 0..<2 {
                let response = try await guest.cache.response(for: request)
                #expect(response.finalTarget.string == fixture.origin.url("/deep/film"))
                let bytes = try await response.body.collect(upTo: 10_000)
                #expect(try bytes == fixture.bytes("/deep/film"))
            }
            #expect(fixture.sent("/deep/film") == 5000)
            #expect(try await owner.cache.entry(for: request)?.isComplete == true)
        }
    }

    @Test("A guest goes on with what a redirect has led to, by what the owner has stored of it")
    func aRedirectedBodyIsGoneOnWith() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/moved", .fresh(10), OriginScript(.redirect(to: "/film")))
            fixture.origin.serve("/film", .fresh(16_000_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/moved")
            let response = try await guest.cache.response(for: request)
            var body = response.body.makeAsyncIterator()
            var bytes = try #require(try await body.next())
            _ = try await owner.cache.data(for: request)
            await owner.stop()
            while let chunk = try await body.next() { bytes += chunk }
            #expect(try bytes == fixture.bytes("/film"))
            #expect(fixture.sent("/film") == 16_000_000)
        }
    }

    @Test func fieldsOfAGuestStayWithTheFirstOrigin() async throws {
        try await GuestFixture.run { fixture in
            let other = fixture.origin.url("/film").replacing("127.0.0.1", with: "localhost")
            fixture.origin.serve("/moved", .fresh(10), OriginScript(.redirect(to: other)))
            fixture.origin.serve("/film", .fresh(5000))
            _ = try await fixture.join()
            let guest = try await fixture.join()
            let token = try #require(HTTPField.Name("X-Token"))
            var request = try fixture.request("/moved")
            request.fields[token] = "secret"
            request.fields[.acceptLanguage] = "en"
            request.firstOriginFields = [token]
            let response = try await guest.cache.response(for: request)
            #expect(try await response.body.collect(upTo: 10_000) == fixture.bytes("/film"))
            // The owner has followed the redirect in the guest's place.
            let log = fixture.origin.log
            #expect(log.exchanges(for: "/moved").map { $0.fields[token] } == ["secret"])
            #expect(log.exchanges(for: "/film").map { $0.fields[token] } == [nil])
            #expect(log.exchanges(for: "/film").map { $0.fields[.acceptLanguage] } == ["en"])
        }
    }

    @Test func theOwnersRulesHoldForWhatItStoresForGuests() async throws {
        try await GuestFixture.run { fixture in
            let other = fixture.origin.url("/film").replacing("127.0.0.1", with: "localhost")
            fixture.origin.serve("/moved", .fresh(10), OriginScript(.redirect(to: other)))
            fixture.origin.serve("/film", .fresh(5000))
            let owner = try await fixture.join()
            var rules = HostRules()
            try rules.add("exclude=localhost")
            owner.service.setRules(rules)
            let guest = try await fixture.join()
            for stored in [0, 1] {
                let response = try await guest.cache.response(for: fixture.request("/moved"))
                #expect(try await response.body.collect(upTo: 10_000) == fixture.bytes("/film"))
                #expect(try await owner.cache.entries().count == stored)
                owner.service.setRules(HostRules())
            }
        }
    }

    @Test func aGuestGoesOnWhereTheOwnerEnds() async throws {
        try await GuestFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/film",
                .fresh(3_000_000),
                .first(1, .wait(for: gate, after: 1_000_000))
            )
            let owner = try await fixture.join()
            let guest = try await fixture.join()
            async let bytes = guest.cache.data(for: fixture.request("/film"))
            await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/film") >= 1_000_000 }
            await owner.stop()
            gate.open()
            #expect(try await bytes == fixture.bytes("/film"))
        }
    }

    @Test(arguments: [false, true])
    func aGuestReadsWhatTheOwnerHasStored(isDamaged: Bool) async throws {
        try await GuestFixture.run { fixture in
            let length: Int64 = 16_000_000
            fixture.origin.serve("/film", .fresh(length))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/film")
            // The guest has begun, and lags behind.
            let response = try await guest.cache.response(for: request)
            var body = response.body.makeAsyncIterator()
            var bytes = try #require(try await body.next())
            _ = try await owner.cache.data(for: request)
            await owner.stop()
            #expect(fixture.sent("/film") == length)
            if isDamaged { try fixture.damageBody(at: 12_000_000) }
            while let chunk = try await body.next() { bytes += chunk }
            #expect(try bytes == fixture.bytes("/film"))
            let again = fixture.sent("/film") - length
            #expect(isDamaged ? again > 0 && again <= 4_065_536 : again == 0)
        }
    }

    @Test func theNextOwnerServesTheOthers() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let heir = try await fixture.join(time: time)
            await owner.stop()
            time.advance(by: .seconds(11))
            // A look at the disk finds the directory free.
            _ = try await heir.cache.entry(for: fixture.request("/film"))
            await heir.service.untilListening()
            #expect(heir.cache.storageError == nil)
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            #expect(guest.cache.storageError?.code == .notOwner)
            for _ in 0..<2 {
                #expect(try await guest.cache.data(for: fixture.request("/film")).count == 100_000)
            }
            #expect(fixture.sent("/film") == 100_000)
        }
    }

    @Test func aPathTooLongForASocketIsNoTrouble() async throws {
        try await GuestFixture.run(directory: String(repeating: "long", count: 40)) { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            for _ in 0..<2 {
                #expect(try await guest.cache.data(for: fixture.request("/film")).count == 100_000)
            }
            #expect(fixture.sent("/film") == 100_000)
        }
    }

    @Test func anOriginHasTheTimeThatTheGuestGivesIt() async throws {
        try await GuestFixture.run { fixture in
            let slow = OriginBehaviour.faithful.with { $0.delay = .milliseconds(2500) }
            fixture.origin.serve("/head", .fresh(1000), OriginScript(slow))
            let pausing = OriginBehaviour.faithful.with {
                $0.interruptions = [(500, .pause(.milliseconds(2500)))]
            }
            // What breaks off cannot be gone on with.
            fixture.origin.serve("/body", .fresh(1000), OriginScript(pausing))
            fixture.origin.update("/body") { resource in
                (resource.entityTag, resource.lastModified) = (.none, nil)
                (resource.framing, resource.acceptsRanges) = (.chunked, false)
            }
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.timeout = .seconds(4) }
            async let head = guest.cache.data(for: fixture.request("/head"))
            async let body = guest.cache.data(for: fixture.request("/body"))
            #expect(try await head == fixture.bytes("/head"))
            #expect(try await body == fixture.bytes("/body"))
            for path in ["/head", "/body"] {
                #expect(fixture.origin.log.exchanges(for: path).count == 1, "\(path)")
            }
        }
    }

    @Test func aBusyOwnerSaysSo() async throws {
        try await GuestFixture.run { fixture in
            let gate = OriginGate()
            let script = OriginScript(.wait(for: gate, after: 10))
            fixture.origin.serve("/film", .fresh(100_000), script)
            fixture.origin.serve("/small", .fresh(5))
            let time = ManualTimeSource()
            let owner = try await fixture.join(time: time) { $0.maximumDownloadsPerHost = 1 }
            // Its clock stands still: it waits as long as the owner does.
            let guest = try await fixture.join(time: ManualTimeSource())
            async let film = owner.cache.data(for: fixture.request("/film"))
            await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/film") >= 10 }
            async let small = guest.cache.data(for: fixture.request("/small"))
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            #expect(try await small == fixture.bytes("/small"))
            gate.open()
            #expect(try await film == fixture.bytes("/film"))
        }
    }

    @Test(arguments: [false, true])
    func aWrongBodyIsFetchedOnceMore(isWrongAgain: Bool) async throws {
        try await GuestFixture.run { fixture in
            let wrong = OriginBehaviour.faithful.with {
                $0.rawFieldLines = [
                    "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
                ]
            }
            let script = isWrongAgain ? OriginScript(wrong) : .first(1, wrong)
            fixture.origin.serve("/film", .fresh(300_000), script)
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let request = try fixture.request("/film")
            if isWrongAgain {
                let error = await #expect(throws: CacheError.self) {
                    try await guest.cache.data(for: request)
                }
                #expect(error?.code == .integrityFailed)
            } else {
                #expect(try await guest.cache.data(for: request) == fixture.bytes("/film"))
            }
        }
    }

    @Test func whatTheOwnerStoresIsSaidToBeStored() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(300_000))
            fixture.origin.serve("/secret", .generated(length: 1000, cacheControl: "no-store"))
            _ = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            for (path, isStored) in [("/film", true), ("/secret", false)] {
                let request = try fixture.request(path)
                let response = try await guest.cache.response(for: request)
                #expect(response.cacheStatus.isStored == isStored, "\(path)")
                #expect(!response.fields.contains { $0.name.rawName.hasPrefix("TieredCache-") })
                #expect(try await response.body.collect(upTo: 1_000_000) == fixture.bytes(path))
                var again = request
                again.policy = .cacheOnly
                let isThere = try? await guest.cache.data(for: again)
                #expect((isThere != nil) == isStored, "\(path)")
            }
            #expect(guest.cache.statistics.storageFailures == 0)
        }
    }
}
