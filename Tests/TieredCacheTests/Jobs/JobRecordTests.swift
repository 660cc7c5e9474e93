import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct JobRecordTests {
    private func record() throws -> JobRecord {
        var request = try CacheRequest("https://a.example/film.mp4?sig=1", key: "film")
        request.fields[.acceptLanguage] = "de"
        request.fields[.authorization] = "Bearer s3cret"
        request.fields[.cookie] = "session=s3cret"
        request.fields[try #require(HTTPField.Name("x-api-key"))] = "s3cret"
        request.options.insert(.avoidsExpensiveNetworks)
        request.body = Data([1, 2, 3])
        request.options.insert(.pinned)
        request.priority = .high
        request.expectedDigests = [
            try #require(ContentDigest(.md5, bytes: Array(repeating: 7, count: 16)))
        ]
        var record = JobRecord(
            id: DownloadID(number: 77),
            request: request,
            created: WallTime(seconds: 5)
        )
        record.attempts = 3
        record.bytesFromOrigin = 1 << 40
        let problem = CacheError(.httpStatus, "answered with status 410", status: 410)
        record.state = .failed(DownloadProblem(problem))
        return record
    }

    private func marked() throws -> JobRecord {
        var record = try record()
        record.firstOriginFields = [.acceptLanguage]
        record.lacksRuleFields = true
        return record
    }

    @Test("A record comes back as it was, without what is secret")
    func roundTrip() throws {
        let record = try record()
        let read = try #require(JobRecord(encoded: record.encoded))
        #expect(read == record)
        #expect(read.lacksCredentials)
        #expect(read.fields == [.acceptLanguage: "de"])
        let text = String(decoding: record.encoded, as: UTF8.self)
        #expect(!text.contains("s3cret"))
        let request = try read.request()
        let named = try CacheRequest("https://a.example/", key: "film")
        #expect(request.key == named.key)
        #expect(request.isPinned && request.priority == .high && request.body == Data([1, 2, 3]))
        #expect(request.expectedDigests.count == 1)
        #expect(request.options.contains(.avoidsExpensiveNetworks))
    }

    @Test("Fields of rules are not written down; which are for the first origin alone is")
    func fieldsOfRules() throws {
        let (player, rule) = (HTTPField.Name("X-Player"), HTTPField.Name("X-Rule"))
        var request = try CacheRequest("https://a.example/")
        request.fields = [try #require(player): "own", .acceptLanguage: "de"]
        request.firstOriginFields = [try #require(player), .referer]
        var rules = HostRules()
        try rules.add("header=a.example X-Rule: s3cret")
        try rules.add("header=a.example Authorization: s3cret")
        rules.apply(to: &request)
        #expect(request.fields[try #require(rule)] == "s3cret")
        let record = JobRecord(
            id: DownloadID(number: 1),
            request: request,
            created: WallTime(seconds: 0)
        )
        #expect(!String(decoding: record.encoded, as: UTF8.self).contains("s3cret"))
        let read = try #require(JobRecord(encoded: record.encoded))
        #expect(read == record && read.lacksRuleFields && !read.lacksCredentials)
        let again = try read.request()
        #expect(again.fields.map(\.value).sorted() == ["de", "own"])
        #expect(again.firstOriginFields == [try #require(player)])
    }

    /// What a version wrote that knew of neither, as docs/jobs-format.md has it.
    private static let older = """
        iVRDam9iAQp0M2u6zfz0UE0AAAAAAAAAAPIFKgEAAAAgAAAAaHR0cHM6Ly9hLmV4YW1wbGUvZmlsbS5tcDQ/c2lnPTEB\
        BAAAAGZpbG0DAAAAR0VUAw8DAAAAAAAAAAAAAAAAAQAAAQAAAA8AAABBY2NlcHQtTGFuZ3VhZ2UCAAAAZGUDAAAAAQID\
        AQMAAABtZDUQAAAABwcHBwcHBwcHBwcHBwcHBwYAAABwYXVzZWQ=
        """

    @Test("A record without such marks is read, and written as it was")
    func olderRecord() throws {
        let bytes = try #require(Data(base64Encoded: Self.older))
        var expected = try record()
        expected.state = .paused
        #expect(JobRecord(encoded: Array(bytes)) == expected)
        #expect(expected.encoded == Array(bytes))
    }

    @Test("Every state comes back; running comes back as queued")
    func states() throws {
        var record = try record()
        let states: [DownloadState] = [
            .queued, .running, .waitingForNetwork, .paused, .cancelled, .finished,
        ]
        for state in states {
            record.state = state
            let read = try #require(JobRecord(encoded: record.encoded))
            #expect(read.state == (state == .running ? .queued : state))
        }
    }

    @Test("Any cut and any flipped bit is noticed, and nothing traps")
    func damage() throws {
        let bytes = try marked().encoded
        for length in bytes.indices { #expect(JobRecord(encoded: Array(bytes[..<length])) == nil) }
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << UInt8(index % 8)
            #expect(JobRecord(encoded: damaged) == nil)
        }
        #expect(JobRecord(encoded: bytes + [0]) == nil)
    }

    @Test("A right checksum over anything is read or refused, never a trap")
    func hostilePayload() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(seed: seed)
        let bytes = try marked().encoded
        for _ in 0..<2_000 {
            var payload = Array(bytes[16...])
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: payload.indices, using: &random)
                payload[index] = UInt8.random(in: 0...255, using: &random)
            }
            let sum = payload.withUnsafeBytes { checksumOf($0) }
            let head = withUnsafeBytes(of: sum.littleEndian) { Array($0) }
            guard let read = JobRecord(encoded: JobRecord.magic + head + payload) else { continue }
            #expect(JobRecord(encoded: read.encoded) == read, "seed \(seed)")
        }
    }

    @Test("Identifiers are sixteen digits, and only they are read")
    func identifiers() {
        let id = DownloadID(number: 0xAB)
        #expect(id.description == "00000000000000ab")
        #expect(DownloadID(id.description) == id)
        for text in ["", "ab", "00000000000000AB", "00000000000000a/", "+0000000000000ab"] {
            #expect(DownloadID(text) == nil)
        }
    }

    @Test("Made-up counts can be counted on")
    func madeUpCounts() throws {
        var record = try JobRecord(
            id: DownloadID(number: 1),
            request: CacheRequest("http://a.example/x"),
            created: WallTime(seconds: 0)
        )
        (record.attempts, record.bytesFromOrigin) = (.max, .max)
        let read = try #require(JobRecord(encoded: record.encoded))
        #expect(read.attempts < .max && read.bytesFromOrigin <= ByteOffset.limit)
    }
}
