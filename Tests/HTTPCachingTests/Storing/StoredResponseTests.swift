import HTTPTypes
import Testing

@testable import HTTPCaching

@Suite("StoredResponse", .timeLimit(.minutes(10)))
struct StoredResponseTests {
    static func make(
        _ fields: HTTPFields,
        selecting: [SelectingField] = [],
        flags: StoredResponse.Flags = [],
        at received: WallTime = received
    ) -> StoredResponse {
        StoredResponse(
            status: 200,
            fields: fields,
            requestTime: received.advanced(by: .seconds(-1)),
            responseTime: received,
            origin: .init(
                method: "POST",
                url: "http://a/x",
                finalURL: "http://b/",
                explicitKey: "k"
            ),
            selectingFields: selecting,
            flags: flags
        )
    }

    private func reuse(
        _ stored: StoredResponse,
        _ fields: HTTPFields,
        after seconds: Int64
    )
        -> ReuseDecision
    {
        stored.reuse(
            for: RequestFacts(fields: fields),
            requestFields: fields,
            rules: CacheRules(),
            now: received.advanced(by: .seconds(seconds))
        )
    }

    @Test("A decision takes freshness, Vary and invalidation into account")
    func decisions() {
        let fields: HTTPFields = [.cacheControl: "max-age=60"]
        let selecting = [SelectingField("accept", of: [.accept: "a"])]
        let stored = Self.make(fields, selecting: selecting)
        #expect(reuse(stored, [.accept: "a"], after: 1).action == .use)
        #expect(reuse(stored, [.accept: "a"], after: 60).action == .validate)
        #expect(reuse(stored, [.accept: "b"], after: 1).reason == .varyMiss)
        var invalidated = Self.make(fields)
        invalidated.flags.insert(.invalidated)
        #expect(reuse(invalidated, [:], after: 1).reason == .invalidated)
    }

    @Test("A page gets nothing of which the origin has not said whether it may have it")
    func pages() {
        let allowing: HTTPFields = [.accessControlAllowOrigin: "*"]
        for (fields, flags, isSelected) in [
            ([:], [], false), ([:], .crossOrigin, true), (allowing, [], true),
        ] as [(HTTPFields, StoredResponse.Flags, Bool)] {
            let stored = Self.make(fields, flags: flags)
            #expect(stored.isSelected(by: [.origin: "http://a"]) == isSelected)
            #expect(stored.isSelected(by: [:]))
        }
    }

    @Test("A 304 that names a field in Vary for the first time binds the response to its request")
    func freshenedVary() {
        let known = SelectingField("accept", of: [.accept: "a"])
        let stored = Self.make([:], selecting: [known])
        let page = SelectingField("origin", of: [.origin: "http://a"])
        let other = SelectingField("accept", of: [.accept: "b"])
        let answer = Self.make([:], selecting: [other, page], flags: .crossOrigin)
        let freshened = stored.freshened(by: answer, rules: CacheRules())
        #expect(freshened.selectingFields == [known, page])
        #expect(freshened.flags.contains(.crossOrigin))
        let unchanged = stored.freshened(by: Self.make([:]), rules: CacheRules())
        #expect(unchanged.selectingFields == [known])
    }

    @Test("Age is generated, Date only where it is missing")
    func fieldsForReuse() {
        let later = received.advanced(by: .milliseconds(30_900))
        let dated = Self.make([.date: WallTime.date(0), .age: "30"]).fieldsForReuse(now: later)
        #expect(dated == [.date: WallTime.date(0), .age: "61"])
        let undated = Self.make([:]).fieldsForReuse(now: later)
        #expect(undated == [.date: WallTime.date(0), .age: "31"])
    }

    @Test("A 304 makes it young again")
    func freshened() {
        let stored = Self.make(
            [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentLength: "9"],
            flags: [.invalidated, .withoutRanges]
        )
        let later = received.advanced(by: .seconds(1000))
        #expect(reuse(stored, [:], after: 1000).action == .validate)
        let freshened = stored.freshened(
            by: Self.make([.cacheControl: "max-age=90", .contentLength: "0"], at: later),
            rules: CacheRules()
        )
        // It had been asked for a second before.
        #expect(reuse(freshened, [:], after: 1000).timeToLive == .seconds(89))
        #expect(freshened.fields[.contentLength] == "9")
        #expect(freshened.flags == .withoutRanges)
        #expect(freshened.origin == stored.origin)
        #expect(freshened.validator?.fieldValue == "\"a\"")
    }

    @Test("A date too young to vouch for the bytes does not grow strong by a later 304")
    func youngDates() {
        let date = HTTPDate.format(received)
        let stored = Self.make([.lastModified: date, .date: date])
        #expect(stored.validator == nil)
        let later = received.advanced(by: .seconds(1000))
        let freshened = stored.freshened(
            by: Self.make([.lastModified: date, .date: HTTPDate.format(later)], at: later),
            rules: CacheRules()
        )
        #expect(freshened.validator == nil)
        #expect(freshened.facts.hasValidator)
    }
}

@Suite("StoredResponse coding", .timeLimit(.minutes(10)))
struct StoredResponseCodingTests {
    private var sample: StoredResponse {
        var fields: HTTPFields = [.contentType: "video/mp4", .cacheControl: "max-age=60"]
        fields[values: .setCookie] = ["a=1", "b=ü"]
        return StoredResponseTests.make(
            fields,
            selecting: [
                SelectingField(name: "accept", digest: "x"),
                SelectingField(name: "foo", digest: nil), SelectingField(name: "bar", digest: ""),
            ],
            flags: [.invalidated, .init(rawValue: 1 << 31)]
        )
    }

    @Test("What is written is read again")
    func roundTrip() throws {
        let read = try #require(StoredResponse(encoded: sample.encoded()))
        #expect(read == sample)
        #expect(read.origin.finalURL == "http://b/")
        let bare = StoredResponse(
            status: 65_535,
            fields: [:],
            requestTime: WallTime(nanoseconds: .min),
            responseTime: WallTime(nanoseconds: .max),
            origin: .init(url: "é")
        )
        #expect(StoredResponse(encoded: bare.encoded()) == bare)
    }

    @Test("Bytes of a value that is not UTF-8 survive")
    func latin1() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: .server, lenientValue: [0x61, 0xFC, 0x62]))
        let bytes = StoredResponseTests.make(fields).encoded()
        let read = try #require(StoredResponse(encoded: bytes))
        #expect(read.encoded() == bytes)
    }

    @Test("The layout of version 2 does not change")
    func layout() {
        let response = StoredResponse(
            status: 200,
            fields: [.eTag: "x"],
            requestTime: WallTime(nanoseconds: 1),
            responseTime: WallTime(nanoseconds: 2),
            origin: .init(method: "G", url: "u", explicitKey: "k"),
            selectingFields: [SelectingField(name: "n", digest: nil)],
            flags: .invalidated
        )
        let head: [UInt8] = [2, 200, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
        let origin: [UInt8] = [1, 0, 0, 0, 0x47, 1, 0, 0, 0, 0x75, 0, 1, 1, 0, 0, 0, 0x6B]
        let selecting: [UInt8] = [1, 0, 1, 0, 0, 0, 0x6E, 0]
        let fields: [UInt8] = [1, 0, 4, 0, 0, 0, 0x45, 0x54, 0x61, 0x67, 1, 0, 0, 0, 0x78]
        #expect(response.encoded() == head + origin + selecting + fields)
    }

    @Test("Every cut and every other version is refused")
    func cuts() {
        let bytes = sample.encoded()
        for count in 0..<bytes.count {
            #expect(StoredResponse(encoded: bytes.prefix(count)) == nil, "\(count)")
        }
        #expect(StoredResponse(encoded: bytes + [0]) == nil)
        for version: UInt8 in [0, 3, 255] {
            #expect(StoredResponse(encoded: [version] + bytes.dropFirst()) == nil)
        }
    }

    /// As version 1 wrote it.
    private func old(_ selecting: [(String, String?)], _ fields: HTTPFields) -> StoredResponse? {
        var writer = ByteWriter()
        writer.write(UInt8(1))
        writer.write(UInt16(200))
        for _ in 0..<2 { writer.write(received.nanoseconds) }
        writer.write(UInt32(0))
        writer.write(text: "GET")
        writer.write(text: "http://h/")
        for _ in 0..<2 { writer.write(optionalText: nil) }
        writer.write(UInt16(selecting.count))
        for (name, value) in selecting {
            writer.write(text: name)
            writer.write(optionalText: value)
        }
        writer.write(UInt16(fields.count))
        for field in fields {
            writer.write(text: field.name.rawName)
            writer.write(text: field.value)
        }
        return StoredResponse(encoded: writer.bytes)
    }

    @Test("Version 1 is read: nothing is guessed for it, and it hands no cookie on")
    func version1() throws {
        let fields: HTTPFields = [
            .setCookie: "a=b", .lastModified: WallTime.date(-1_000_000),
        ]
        let read = try #require(old([], fields))
        #expect(read.fields[.setCookie] == nil && read.fields[.lastModified] != nil)
        let rules = CacheRules()
        #expect(FreshnessLifetime(of: read.facts, rules: rules).source == .none)
        // Until the origin has confirmed it for a request without a cookie.
        let confirmed = read.freshened(
            by: StoredResponse(
                status: 304,
                fields: [:],
                requestTime: received,
                responseTime: received,
                origin: read.origin
            ),
            rules: rules
        )
        #expect(FreshnessLifetime(of: confirmed.facts, rules: rules).source == .heuristic)
        #expect(StoredResponse(encoded: read.encoded()) == read)
    }

    @Test(
        "Of version 1 those fields match that are lists, absent, or were digests already",
        arguments: [
            ("accept-language", "de,en", "en, DE", true), ("accept-language", "de", "en", false),
            ("accept", "a/b,c/d", "a/b, c/d", true), ("origin", "https://a", "https://a", false),
            ("x-key", "k", "k", false),
        ]
    )
    func selectingFieldsOfVersion1(
        name: String,
        stored: String,
        presented: String,
        expected: Bool
    ) throws {
        let field = try #require(HTTPField.Name(name))
        let read = try #require(old([(name, stored), ("foo", nil)], [:]))
        #expect(VaryMatch.matches(read.selectingFields, request: [field: presented]) == expected)
        #expect(!VaryMatch.matches(read.selectingFields, request: [:]))
        let digest = SHA256Digest.hex(of: "a=b")
        let secret = try #require(old([("cookie", digest)], [:]))
        #expect(VaryMatch.matches(secret.selectingFields, request: [.cookie: "a=b"]))
        #expect(!VaryMatch.matches(secret.selectingFields, request: [.cookie: "a=c"]))
    }

    @Test("Damaged and random bytes never trap")
    func fuzz() {
        var random = SeededGenerator(seed: 40)
        let bytes = sample.encoded()
        for round in 0..<15_000 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: 0..<damaged.count, using: &random)
                damaged[index] = UInt8.random(in: 0...255, using: &random)
            }
            if let read = StoredResponse(encoded: damaged) {
                let again = StoredResponse(encoded: read.encoded())
                #expect(again == read, "seed 40, round \(round)")
            }
            let noise = (0..<40).map { _ in UInt8.random(in: 0...3, using: &random) }
            _ = StoredResponse(encoded: [1] + noise)
        }
    }

    @Test("A pseudo field or a bad name in the bytes is damage")
    func badNames() {
        let good = StoredResponseTests.make([.eTag: "x"]).encoded()
        for name in [":tag", "a: b", "a\n b", "    "] {
            var bytes = good
            let start = bytes.count - 9
            bytes.replaceSubrange(start..<start + 4, with: name.utf8.prefix(4))
            #expect(StoredResponse(encoded: bytes) == nil, "\(name)")
        }
    }
}
