import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

@Suite("What a request says", .timeLimit(.minutes(1)))
struct CacheRequestTests {
    @Test("What an initializer of the application's own sets counts as what is set afterwards")
    func delegatingInitializers() throws {
        let request = try CacheRequest(forExampleWith: "/film")
        #expect(!request.isPlainGet)
        #expect(try request.facts == Self.setAfterwards().facts)
        #expect(request.range == .openEnded(from: 0))
    }

    private static func setAfterwards() throws -> CacheRequest {
        var request = try CacheRequest("https://example.com/film")
        request.fields[.cacheControl] = "max-age=7"
        request.policy = .cacheOnly
        return request
    }
}

extension CacheRequest {
    fileprivate init(forExampleWith path: String) throws {
        try self.init("https://example.com" + path)
        fields[.cacheControl] = "max-age=7"
        policy = .cacheOnly
        range = .bounded(0..<Int64.max)
    }
}
