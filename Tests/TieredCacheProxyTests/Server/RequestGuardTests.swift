import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct RequestGuardTests {
    /// The parser tells of these heads before it refuses them, or takes no content for theirs.
    @Test(arguments: [
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
    func theGuardRefusesByItself(head: String) {
        var subject = RequestGuard(limits: ServerLimits())
        let decision = Array(head.utf8).withUnsafeBytes { subject.inspection(of: $0) }
        guard case .failure = decision else {
            Issue.record("\(head.debugDescription) is passed on")
            return
        }
    }

    /// Feeds text in pieces of `size` bytes to the guard, and what it passes on to the parser;
    /// returns what was passed on for each request, whole ones first, and the refusal of either
    /// that ended it.
    private func run(
        _ text: String,
        pieces size: Int = .max,
        limits: ServerLimits = ServerLimits()
    ) -> (requests: [String], rest: String, refusal: RequestRefusal?) {
        var subject = RequestGuard(limits: limits)
        var parser = RequestParser()
        defer { parser.close() }
        var requests: [String] = []
        var current: [UInt8] = []
        var waiting: [UInt8] = []
        var input = Array(text.utf8)[...]
        while !input.isEmpty {
            waiting += input.prefix(size)
            input = input.dropFirst(size)
            do throws(RequestRefusal) {
                while let decision = try Self.step(&subject, &waiting, &current, parser) {
                    guard decision else { continue }
                    requests.append(String(decoding: current, as: UTF8.self))
                    current = []
                    // A request of HTTP/1.0 ends a connection; the next one stands for another.
                    parser.close()
                    parser = RequestParser()
                }
            } catch {
                return (requests, String(decoding: current, as: UTF8.self), error)
            }
        }
        return (requests, String(decoding: current + waiting, as: UTF8.self), nil)
    }

    /// One decision: nil for "more bytes", else whether it ended a request.
    private static func step(
        _ subject: inout RequestGuard,
        _ waiting: inout [UInt8],
        _ current: inout [UInt8],
        _ parser: RequestParser
    ) throws(RequestRefusal) -> Bool? {
        let decision = try waiting.withUnsafeBytes { subject.inspection(of: $0) }.get()
        switch decision {
        case .incomplete:
            return nil
        case .drop(let count):
            waiting.removeFirst(count)
            return false
        case .pass(let count, let endsRequest):
            let part = Array(waiting.prefix(count))
            parser.feed(current.isEmpty ? RequestParser.ofKnownMethod(part) : part)
            // The connection answers an error of the parser as it answers a refusal.
            guard parser.error == nil else { throw .malformed("the parser refuses it") }
            current += part
            waiting.removeFirst(count)
            return endsRequest
        }
    }

    static let good: [String] = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX-Odd!#$%&'*+-.^_`|~: \t\u{e4} \t\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost:a\r\ncontent-length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            + "3;x=\"y\"\r\nabc\r\n00a\r\n0123456789\r\n0\r\nTrailer: yes\r\n\r\n",
        "M-SEARCH * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, \"x\"\r\nEmpty:\r\n\r\n",
    ]

    @Test(arguments: [1, 2, 3, 7, 64, Int.max])
    func goodRequestsPassUnchangedHoweverTheyAreCut(size: Int) {
        let (requests, rest, refusal) = run(Self.good.joined(), pieces: size)
        #expect(requests == Self.good)
        #expect(rest.isEmpty)
        #expect(refusal == nil)
    }

    @Test func emptyLinesBeforeARequestAreDropped() {
        let (requests, _, refusal) = run("\r\n\r\n" + Self.good[0] + "\r\n" + Self.good[1])
        #expect(requests == [Self.good[0], Self.good[1]])
        #expect(refusal == nil)
    }

    static let bad: [(String, Int)] = [
        // Two lengths, length with chunked.
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "0\r\n\r\n", 400
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
                + "0\r\n\r\n", 400
        ),
        // Transfer codings other than chunked, once.
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n", 400
        ),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        // Odd line ends.
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 400),
        // Names.
        ("GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n: c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nname\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\u{e4}: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\u{7f}\r\n\r\n", 400),
        // Folded lines.
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n", 400),
        // Hosts.
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        // Request lines.
        ("GET / \r\nHost: a\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("G[T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\r\n", 400),
        // Chunks.
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;\r\nabc\n0\r\n\r\n",
            400
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r0\r\n\r\n",
            400
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n a: b\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \tchunked,\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chun\u{212A}ed\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1;\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\u{B}\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{661}\r\n\r\na", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n Transfer-Encoding: chunked\r\n\r\na",
            400
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\nContent-Length:1 1\r\n\r\na", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\u{85}X: b\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "10000000000000003\r\nabc\r\n", 400
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3;a\0b\r\nabc\r\n", 400
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX y: z\r\n\r\n",
            400
        ),
    ]

    @Test(arguments: bad, [1, 5, Int.max])
    func badRequestsAreRefusedHoweverTheyAreCut(example: (String, Int), size: Int) {
        let (requests, _, refusal) = run(example.0, pieces: size)
        #expect(requests.isEmpty)
        #expect(refusal?.status == example.1, "\(example.0.debugDescription)")
    }

    @Test func whatStandsBeforeABadRequestPasses() {
        let (requests, _, refusal) = run(Self.good[4] + Self.bad[0].0)
        #expect(requests == [Self.good[4]])
        #expect(refusal?.status == 400)
    }

    @Test func sizesAreLimited() {
        var limits = ServerLimits()
        limits.maximumHeadSize = 200
        limits.maximumTargetSize = 50
        limits.maximumFieldCount = 5
        limits.maximumBodySize = 10
        let long = String(repeating: "x", count: 300)
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        let cases: [(String, Int)] = [
            ("GET /\(long) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET /\(long.prefix(60)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \(long)\r\n\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: y\r\n", count: 6))\r\n", 431),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", 413),
            (chunked + "b\r\n", 413),
            (chunked + "6\r\n123456\r\n5\r\n", 413),
            (chunked + "1;\(long)\r\n", 431),
            (chunked + "0\r\nX: \(long)\r\n\r\n", 431),
            // Without an end of line in sight.
            ("GET /\(long)", 414),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \(long)", 431),
        ]
        for (text, status) in cases {
            for size in [1, 17, Int.max] {
                let refusal = run(text, pieces: size, limits: limits).refusal
                #expect(refusal?.status == status, "\(text.debugDescription) by \(size)")
            }
        }
    }

    /// Heads, chunks and lengths with bytes changed, cut out and doubled: nothing traps, and what
    /// is let through does not depend on how it arrives.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func spoiltRequestsAreReadInOneWay(seed: UInt64) {
        var random = seed
        func pick(_ count: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(truncatingIfNeeded: random >> 33) % count
        }
        let samples = Self.good + Self.bad.map(\.0)
        let special = Array("\r\n :;,\t0aAfF\"=".utf8)
        for round in 0..<400 {
            var bytes = Array((samples[pick(samples.count)] + samples[pick(samples.count)]).utf8)
            for _ in 0...pick(4) {
                let place = pick(bytes.count)
                switch pick(4) {
                case 0: bytes.insert(special[pick(special.count)], at: place)
                case 1: bytes.remove(at: place)
                case 2: bytes[place] = special[pick(special.count)]
                default: bytes.insert(contentsOf: bytes[place...].prefix(pick(12)), at: place)
                }
                if bytes.isEmpty { bytes = [0x0A] }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let (whole, pieces) = (run(text), run(text, pieces: 1 + pick(5)))
            #expect(
                whole.requests == pieces.requests && whole.refusal == pieces.refusal,
                "seed \(seed), round \(round): \(text.debugDescription)"
            )
        }
    }
}
