import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Redirects", .timeLimit(.minutes(10)))
struct RedirectsTests {
    private func response(_ status: Int, _ location: String?) -> HTTPResponse {
        var fields = HTTPFields()
        fields[.location] = location
        return HTTPResponse(status: .init(code: status), headerFields: fields)
    }

    private func chain(
        _ url: String = "https://a.example/x/y?q",
        method: HTTPRequest.Method = .get
    ) throws -> RedirectChain {
        RedirectChain(target: try TargetURI(url), method: method)
    }

    @Test("Targets are resolved, statuses that are no redirects are left alone")
    func resolves() throws {
        for (location, expected) in [
            ("/b", "https://a.example/b"), ("z", "https://a.example/x/z"),
            ("//b.example/c#f", "https://b.example/c"), ("?r", "https://a.example/x/y?r"),
            ("https://u:p@c.example/", "https://c.example/"),
        ] {
            var chain = try chain()
            #expect(chain.follow(response(302, location), maximum: 10) == .follow)
            #expect(chain.target.string == expected)
            #expect(chain.target.userinfo == nil)
        }
        for status in [200, 206, 300, 304, 305, 404] {
            var chain = try chain()
            #expect(chain.follow(response(status, "/b"), maximum: 10) == .none)
        }
    }

    @Test("From elsewhere no redirect leads to this machine or the local link")
    func staysOutside() throws {
        for (origin, location, place) in [
            ("http://a.example/", "http://127.0.0.1:8080/x", "this machine"),
            ("http://10.0.0.1/", "http://localhost/", "this machine"),
            ("http://169.254.1.1/", "http://[::1]/", "this machine"),
            ("http://a.example/", "http://169.254.169.254/latest/", "the local link"),
        ] {
            var chain = try chain(origin)
            let end = try TargetURI(location).origin
            let refusal = RedirectChain.Step.refuse("to \(end), an address of \(place)")
            #expect(chain.follow(response(302, location), maximum: 10) == refusal)
            #expect(chain.count == 0)
            #expect(
                chain.follow(response(302, location), maximum: 10, staysOutside: false) == .follow
            )
        }
        for (origin, location) in [
            ("http://127.0.0.1:1/", "http://localhost:2/"),
            ("http://localhost/", "http://169.254.1.1/"),
            ("http://127.0.0.1/", "http://a.example/"),
            ("http://a.example/", "http://10.0.0.1/"),
        ] {
            var chain = try chain(origin)
            #expect(chain.follow(response(302, location), maximum: 10) == .follow)
        }
    }

    @Test("A name that turns out to be this machine's is no way around that")
    func namesOfThisMachine() throws {
        var direct = try chain("http://a.example/")
        // A request by that name means it.
        #expect(direct.didReachMachine(staysOutside: true) == .none)
        #expect(direct.follow(response(302, "http://127.0.0.1/"), maximum: 10) == .follow)
        var led = try chain("http://a.example/")
        #expect(led.follow(response(302, "http://b.example/"), maximum: 10) == .follow)
        #expect(
            led.didReachMachine(staysOutside: true)
                == .refuse("to http://b.example, a name for this machine")
        )
        #expect(led.didReachMachine(staysOutside: false) == .none)
    }

    @Test("At most ten, no circle, no downgrade, no other scheme, no missing target")
    func refusals() throws {
        var long = try chain()
        for index in 0..<10 {
            #expect(long.follow(response(307, "/\(index)"), maximum: 10) == .follow)
        }
        #expect(long.count == 10)
        #expect(
            long.follow(response(307, "/10"), maximum: 10) == .refuse("more than 10 times")
        )
        var circle = try chain("https://a.example/1")
        #expect(circle.follow(response(302, "/2"), maximum: 10) == .follow)
        #expect(circle.follow(response(302, "/1"), maximum: 10) == .refuse("in a circle"))
        for location in ["http://a.example/", "ftp://a.example/", "http://", nil, ""] {
            var chain = try chain()
            guard case .refuse = chain.follow(response(301, location), maximum: 10) else {
                Issue.record("\(String(describing: location))")
                continue
            }
            #expect(chain.count == 0)
        }
        var upgrade = try chain("http://a.example/")
        #expect(upgrade.follow(response(301, "https://a.example/"), maximum: 10) == .follow)
    }

    @Test("Twenty redirects are followed, as by Fetch, and no more")
    func limit() async throws {
        for count in [20, 21] {
            let transport = ScriptedTransport { _, index in
                guard index < count else { return ScriptedResponse(status: 200) }
                return ScriptedResponse(status: 302, fields: [.location: "/\(index)"])
            }
            let downloader = Downloader(transport: transport, time: ManualTimeSource())
            let plan = DownloadPlan(
                target: try TargetURI("http://a.example/"),
                range: 0..<Int64.max,
                generation: nil
            )
            do throws(CacheError) {
                let outcome = try await downloader.run(plan, into: RecordingSink())
                #expect(count == 20 && outcome.finalTarget.path == "/19")
            } catch {
                #expect(count == 21 && error.message.contains("more than 20 times"), "\(error)")
            }
            #expect(transport.requests.count == 21)
        }
    }

    /// An origin whose first URL sets a cookie that the next one wants; `location` is that.
    private func sent(
        _ setCookie: String,
        _ location: String,
        own: String? = nil
    ) async throws -> (cookies: [String?], end: DownloadOutcome?, head: DownloadHead?) {
        let transport = ScriptedTransport { request, index in
            guard index == 0 else {
                let isAllowed = request.head.headerFields[.cookie] != nil
                return ScriptedResponse(status: isAllowed ? 200 : 403)
            }
            let fields: HTTPFields = [.location: location, .setCookie: setCookie]
            return ScriptedResponse(status: 302, fields: fields)
        }
        var fields: HTTPFields = [:]
        fields[.cookie] = own
        let plan = DownloadPlan(target: try TargetURI("http://w.a.example/x"), fields: fields)
        let downloader = Downloader(transport: transport, time: ManualTimeSource())
        let sink = RecordingSink()
        let outcome: DownloadOutcome?
        do throws(CacheError) {
            outcome = try await downloader.run(plan, into: sink)
        } catch {
            outcome = nil
        }
        let cookies = transport.requests.map { $0.head.headerFields[values: .cookie].first }
        return (cookies, outcome, sink.snapshot.heads.last)
    }

    @Test("A cookie of a redirect goes with the next requests that it is for, of this chain alone")
    func cookies() async throws {
        // Also to the same URL, which is no circle then.
        for location in ["/y", "/x"] {
            let found = try await sent("k=1", location)
            #expect(found.cookies == [nil, "k=1"] && found.end != nil)
            // No lifetime is guessed for what may be for one client.
            #expect(found.head?.hasCookies == true)
        }
        #expect(try await sent("k=1", "/y", own: "k=0; l=2").cookies == ["k=0; l=2", "l=2; k=1"])
        let elsewhere = "http://cdn.a.example/y"
        #expect(try await sent("k=1; Domain=a.example", elsewhere).cookies == [nil, "k=1"])
        // Those of the application stay with the first origin, and so does one without a domain.
        let own = try await sent("k=1; Domain=a.example", elsewhere, own: "l=2")
        #expect(own.cookies == ["l=2", "k=1"])
        let refused = try await sent("k=1", elsewhere)
        #expect(refused.cookies.allSatisfy { $0 == nil } && refused.head == nil)
        let circle = try await sent("k=1; Path=/z", "/x")
        #expect(circle.cookies == [nil] && circle.end == nil)
    }

    @Test("POST becomes GET after 301, 302 and 303, and stays after 307 and 308")
    func methods() throws {
        for (status, method, expected) in [
            (301, HTTPRequest.Method.post, HTTPRequest.Method.get), (302, .post, .get),
            (303, .post, .get), (303, .put, .get), (303, .head, .head), (307, .post, .post),
            (308, .post, .post), (301, .head, .head), (302, .put, .put),
        ] {
            var chain = try chain(method: method)
            #expect(chain.follow(response(status, "/b"), maximum: 10) == .follow)
            #expect(chain.method == expected)
            #expect(chain.keepsBody == (method == expected))
        }
    }

    @Test("Credentials stay with the first origin, range and validator go along")
    func credentials() throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        let secret: HTTPFields = [
            .authorization: "Basic x", .cookie: "a=b", .proxyAuthorization: "y", .origin: "o",
            .accept: "video/mp4", .range: "bytes=0-1", key: "z",
        ]
        let plan = DownloadPlan(target: try TargetURI("https://a.example/x"), fields: secret)
        var chain = RedirectChain(target: plan.target, method: .get)
        let validator = try #require(
            Validator(of: [.eTag: "\"v\""], responseTime: WallTime(seconds: 0))
        )
        let kind = RequestKind.resume(5..<Int64.max, Generation(validator: validator))
        func fields() -> HTTPFields {
            DownloadRequest(kind: kind, plan: plan, chain: chain, bypassesCaches: false)
                .head.headerFields
        }
        #expect(chain.follow(response(302, "/y"), maximum: 10) == .follow)
        #expect(fields()[.authorization] == "Basic x")
        for location in ["https://b.example/", "https://a.example/back"] {
            #expect(chain.follow(response(302, location), maximum: 10) == .follow)
            for name in [HTTPField.Name.authorization, .cookie, .proxyAuthorization, .origin, key] {
                #expect(fields()[name] == nil, "\(name)")
            }
            #expect(fields()[.range] == "bytes=5-")
            #expect(fields()[.ifRange] == "\"v\"")
            #expect(fields()[.accept] == "video/mp4")
            #expect(fields()[.acceptEncoding] == "identity")
        }
    }

    @Test("Userinfo is sent as Basic authorization, unless the caller has its own")
    func userinfo() throws {
        var plan = DownloadPlan(target: try TargetURI("https://u:p@a.example/x"))
        let chain = RedirectChain(target: plan.target, method: .get)
        func authorization() -> String? {
            DownloadRequest(kind: .full, plan: plan, chain: chain, bypassesCaches: false)
                .head.headerFields[.authorization]
        }
        #expect(authorization() == "Basic dTpw")
        plan.fields = [.authorization: "Bearer z"]
        #expect(authorization() == "Bearer z")
    }
}
