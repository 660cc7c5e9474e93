import HTTPCaching
import HTTPTypes
import Testing

@Suite("Storability", .timeLimit(.minutes(10)))
struct StorabilityTests {
    private func decide(
        _ status: Int = 200,
        _ control: String = "",
        request: String = "",
        method: HTTPRequest.Method = .get,
        isAuthorized: Bool = false,
        hasKey: Bool = false,
        isSelective: Bool = false,
        canCombine: Bool = false,
        isShared: Bool = false
    ) -> Storability {
        var fields: HTTPFields = [.cacheControl: request]
        fields[.authorization] = isAuthorized ? "Basic eA==" : nil
        return .decide(
            response: .make(status, [.cacheControl: control]),
            request: RequestFacts(method: method, fields: fields),
            hasExplicitKey: hasKey,
            isSelective: isSelective,
            canCombine: canCombine,
            rules: CacheRules(isShared: isShared)
        )
    }

    @Test("Methods")
    func methods() {
        #expect(decide() == .storable)
        for method: HTTPRequest.Method in [.head, .post, .put, .delete, .options] {
            #expect(decide(200, "max-age=9", method: method) == .notStorable(.method))
        }
        #expect(decide(200, "max-age=9", method: .post, hasKey: true) == .storable)
    }

    @Test(
        "With explicit freshness any final status is stored",
        arguments: [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 503, 599]
    )
    func explicitStatus(status: Int) {
        #expect(decide(status, "max-age=9") == .storable)
    }

    @Test("Interim, 304 and impossible statuses are not", arguments: [100, 103, 304, 600, 0, -1])
    func otherStatus(status: Int) {
        #expect(decide(status, "max-age=9") == .notStorable(.status))
    }

    @Test(
        "An error that is about the request alone is not",
        arguments: [408, 411, 412, 413, 415, 416, 417, 421, 425, 428, 429, 431]
    )
    func causedByRequest(status: Int) {
        #expect(decide(status, "public, max-age=9") == .notStorable(.causedByRequest))
    }

    @Test("To a condition or a range, an error is kept only where it is about the target alone")
    func selective() {
        for status in [400, 403, 406, 409, 500, 503, 599] {
            let decision = decide(status, "max-age=9", isSelective: true)
            #expect(decision == .notStorable(.causedByRequest), "\(status)")
        }
        for status in [200, 301, 404, 405, 410, 414, 501] {
            #expect(decide(status, "max-age=9", isSelective: true) == .storable, "\(status)")
        }
    }

    @Test("Without freshness, what is cacheable by default is stored, an error is not")
    func withoutFreshness() {
        #expect(decide(200) == .storable)
        #expect(decide(301) == .storable)
        #expect(decide(200, "max-age=0") == .storable)
        for status in [201, 302, 404, 410, 500, 503] {
            #expect(decide(status) == .notStorable(.freshness), "\(status)")
        }
        #expect(decide(404, "max-age=0") == .notStorable(.freshness))
        #expect(decide(201, "public") == .storable)
        #expect(decide(201, "private") == .storable)
    }

    @Test("no-store, in either direction, and must-understand beside it")
    func noStore() {
        #expect(decide(200, "max-age=9, no-store") == .notStorable(.responseNoStore))
        #expect(decide(200, "max-age=9", request: "no-store") == .notStorable(.requestNoStore))
        #expect(decide(200, "max-age=9, no-store, must-understand") == .storable)
        #expect(decide(599, "max-age=9, no-store, must-understand") == .notStorable(.status))
        #expect(decide(599, "max-age=9, must-understand") == .notStorable(.status))
    }

    @Test("private is for shared caches")
    func isPrivate() {
        #expect(decide(200, "max-age=9, private") == .storable)
        let shared = decide(200, "max-age=9, private", isShared: true)
        #expect(shared == .notStorable(.isPrivate))
        #expect(decide(200, "max-age=9, private=\"x\"", isShared: true) == .storable)
    }

    @Test("Credentials keep a response out of a shared cache unless the origin allows it")
    func authorization() {
        #expect(decide(200, "max-age=9", isAuthorized: true) == .storable)
        for (control, isAllowed) in [
            ("max-age=9", false), ("max-age=9, public", true), ("s-maxage=9", true),
            ("max-age=9, must-revalidate", true), ("max-age=9, proxy-revalidate", false),
        ] {
            let decision = decide(200, control, isAuthorized: true, isShared: true)
            #expect(decision == (isAllowed ? .storable : .notStorable(.authorization)))
        }
    }

    @Test("A part is stored only if it can be joined with others")
    func partial() {
        #expect(decide(206, "max-age=9") == .notStorable(.partial))
        #expect(decide(206, "max-age=9", canCombine: true) == .storable)
    }
}
