import HTTPCaching
import HTTPTypes
import Testing

@Suite("StoredFields", .timeLimit(.minutes(10)))
struct StoredFieldsTests {
    private func name(_ text: String) throws -> HTTPField.Name {
        try #require(HTTPField.Name(text))
    }

    private func response() throws -> HTTPFields {
        var fields: HTTPFields = [.contentType: "video/mp4", .connection: "X-A, close, x-b"]
        for text in [
            "X-A", "X-B", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info",
            "Proxy-Authorization", "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade",
        ] {
            fields[try name(text)] = "1"
        }
        return fields
    }

    @Test("What concerns the connection goes")
    func hopByHop() throws {
        let fields = try response()
        #expect(StoredFields.of(fields, rules: CacheRules()) == [.contentType: "video/mp4"])
        #expect(StoredFields.endToEnd(fields) == [.contentType: "video/mp4"])
    }

    @Test("What Cache-Control forbids to keep goes, what only shared caches must not stays")
    func qualified() throws {
        let control = "no-cache=\"x-a\", private=\"x-b\""
        let fields: HTTPFields = [
            .cacheControl: control, try name("X-A"): "1", try name("X-B"): "2",
        ]
        let kept = StoredFields.of(fields, rules: CacheRules())
        #expect(kept == [.cacheControl: control, try name("X-B"): "2"])
        let shared = StoredFields.of(fields, rules: CacheRules(isShared: true))
        #expect(shared == [.cacheControl: control])
    }

    @Test("Repeated fields stay, in order")
    func repeated() {
        var fields = HTTPFields()
        fields[values: .setCookie] = ["a=1", "b=2"]
        let kept = StoredFields.of(fields, rules: CacheRules())
        #expect(kept[values: .setCookie] == ["a=1", "b=2"])
    }

    @Test("A part tells about the whole")
    func partial() {
        let fields: HTTPFields = [
            .contentRange: "bytes 0-9/100", .contentLength: "10", .eTag: "\"a\"",
        ]
        let known = StoredFields.ofRepresentation(
            partial: fields,
            completeLength: 100,
            rules: CacheRules()
        )
        #expect(known == [.contentLength: "100", .eTag: "\"a\""])
        let unknown = StoredFields.ofRepresentation(
            partial: fields,
            completeLength: nil,
            rules: CacheRules()
        )
        #expect(unknown == [.eTag: "\"a\""])
    }
}
