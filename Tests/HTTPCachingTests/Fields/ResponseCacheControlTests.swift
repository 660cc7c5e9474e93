import HTTPCaching
import HTTPTypes
import Testing

@Suite("ResponseCacheControl", .timeLimit(.minutes(10)))
struct ResponseCacheControlTests {
    /// nil: no lifetime; zero: stale at once, which RFC 9111 §4.2.1 asks for where it is invalid.
    @Test(
        "max-age, however it is written",
        arguments: [
            ("max-age=3600", 3600), ("MaX-aGe=3600", 3600), ("max-age=\"3600\"", 3600),
            (" , max-age=3600 , ", 3600), ("max-age =3600", 3600), ("max-age= 3600", 3600),
            ("max-age=003600", 3600), ("foobar, max-age=3600", 3600), ("a=\"b,c\",max-age=1", 1),
            ("max-age=2147483647", 2_147_483_647), ("max-age=2147483648", 2_147_483_648),
            ("max-age=2147483649", 2_147_483_648), ("max-age=99999999999999999999", 2_147_483_648),
            ("max-age=1800, max-age=1", 1), ("max-age=1, max-age=1800", 1),
            ("max-age=5, max-age=x", 0), ("max-age", 0), ("max-age=", 0), ("max-age=-1", 0),
            ("max-age='3600'", 0), ("max-age=3600.5", 0), ("max-age=a3600", 0),
            ("max-age=3600a", 0), ("max-age=36 00", 0), ("max-age=3600;x", 0), ("max-age==1", 0),
            ("extension=\"max-age=3600\", max-age=1", 1), ("x=\"max-age=1\"", nil),
            ("x=\"\\\"max-age=1\"", nil), ("x-max-age=1", nil), ("s-maxage=1", nil), ("", nil),
            ("max age=1", nil), ("=max-age=1", nil), ("no-cache=\"a, max-age=1", 1),
        ] as [(String, Int64?)]
    )
    func maxAge(text: String, expected: Int64?) {
        #expect(ResponseCacheControl(text).maxAge == expected)
    }

    @Test("All flags, and that an argument does not unmake them")
    func flags() {
        let names: [(String, ResponseCacheControl.Flags)] = [
            ("no-store", .noStore), ("no-cache", .noCache), ("private", .isPrivate),
            ("public", .isPublic), ("must-revalidate", .mustRevalidate),
            ("proxy-revalidate", .proxyRevalidate), ("must-understand", .mustUnderstand),
            ("immutable", .immutable), ("no-transform", .noTransform),
        ]
        for (name, flag) in names {
            #expect(ResponseCacheControl(name).flags == flag)
            #expect(ResponseCacheControl("x, \(name.uppercased()) ,y").flags == flag)
            #expect(ResponseCacheControl("\(name)=\"\"").flags == flag)
        }
    }

    @Test("Qualified directives name fields and are no flags")
    func qualified() {
        let control = ResponseCacheControl("no-cache=\"Set-Cookie, X-A\", private=x-b, no-cache=Y")
        #expect(control.flags.isEmpty)
        #expect(control.noCacheFields == ["set-cookie", "x-a", "y"])
        #expect(control.privateFields == ["x-b"])
        #expect(ResponseCacheControl("no-cache, no-cache=\"a\"").has(.noCache))
        #expect(ResponseCacheControl("private=\" , \"").has(.isPrivate))
        #expect(ResponseCacheControl("private=\"a, no-store").has(.noStore))
    }

    @Test("Extensions of RFC 5861")
    func extensions() {
        let control = ResponseCacheControl("stale-while-revalidate=30, stale-if-error=\"60\"")
        #expect(control.staleWhileRevalidate == 30)
        #expect(control.staleIfError == 60)
        #expect(ResponseCacheControl("stale-if-error").staleIfError == 0)
    }

    @Test("Several lines are one list")
    func lines() {
        var fields = HTTPFields()
        fields[values: .cacheControl] = ["max-age=5", "no-store"]
        let control = ResponseCacheControl(in: fields)
        #expect(control.maxAge == 5 && control.has(.noStore))
        #expect(ResponseCacheControl(in: [:]) == ResponseCacheControl(""))
    }

    @Test("Hostile texts never trap, and an unknown directive changes nothing")
    func fuzz() {
        var random = SeededGenerator(seed: 10)
        let pieces = [
            "max-age", "s-maxage", "no-cache", "private", "no-store", "=", "\"", ",", " ", "10",
            "99999999999999999999", "\\", "stale-if-error", "é",
        ]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 12)
            let control = ResponseCacheControl(text)
            #expect(ResponseCacheControl("unknown=1, \(text)") == control, "\(text)")
            #expect((control.maxAge ?? 0) <= 1 << 31)
            let request = RequestCacheControl(text)
            #expect(RequestCacheControl("unknown=\"no-cache\", \(text)") == request, "\(text)")
        }
    }
}

@Suite("RequestCacheControl", .timeLimit(.minutes(10)))
struct RequestCacheControlTests {
    @Test("All directives")
    func all() {
        let text = "MAX-AGE=1, min-fresh=2, max-stale=3, stale-if-error=4, no-cache, no-store"
        let control = RequestCacheControl(text + ", only-if-cached")
        #expect(control.maxAge == 1)
        #expect(control.minFresh == 2)
        #expect(control.maxStale == .seconds(3))
        #expect(control.staleIfError == 4)
        #expect(control.noCache && control.noStore && control.onlyIfCached)
    }

    @Test("Repeated and invalid values restrict")
    func restrictive() {
        #expect(RequestCacheControl("max-stale").maxStale == .any)
        #expect(RequestCacheControl("max-stale, max-stale=5").maxStale == .seconds(5))
        #expect(RequestCacheControl("max-stale=5, max-stale").maxStale == .seconds(5))
        #expect(RequestCacheControl("max-stale=5, max-stale=3").maxStale == .seconds(3))
        #expect(RequestCacheControl("max-stale=x").maxStale == .seconds(0))
        #expect(RequestCacheControl("max-age=x").maxAge == 0)
        #expect(RequestCacheControl("min-fresh=1, min-fresh=7").minFresh == 7)
    }

    @Test("Pragma counts only where there is no Cache-Control")
    func pragma() throws {
        let name = try #require(HTTPField.Name("pragma"))
        #expect(RequestCacheControl(in: [name: "no-cache"]).noCache)
        #expect(RequestCacheControl(in: [name: "x, No-Cache"]).noCache)
        #expect(!RequestCacheControl(in: [name: "unknown"]).noCache)
        #expect(!RequestCacheControl(in: [name: "no-cache", .cacheControl: "max-age=1"]).noCache)
        #expect(RequestCacheControl(in: [:]) == RequestCacheControl())
    }
}
