/// GET of 4 KiB six at a time on kept connections, the body read to its end: the transport beside
/// AsyncHTTPClient, in the clear and over TLS.
enum SmallRows {
    static let plain = "transport GET 4 KiB"
    static let secure = "transport TLS GET 4 KiB"

    /// Measures the row in the clear.
    ///
    /// - Parameters:
    ///   - rounds: how many there are at most.
    ///   - report: gets what the row gave.
    /// - Throws: why it could not be measured.
    static func measurePlain(_ rounds: Int, into report: inout TransportRows.Report) throws {
        let origin = try MissOrigin()
        defer { origin.stop() }
        try TransportPair.with { pair in
            let contenders = Contenders(pair, origin.address)
            contenders.measure(plain, target: 0.5, rounds, into: &report)
        }
    }

    /// Measures the row over TLS; says so where it cannot.
    ///
    /// Each client trusts the certificate of the origin beside the roots of the system, and does so
    /// by the same file. Handshakes are made in the first run, which is not counted.
    ///
    /// - Parameters:
    ///   - rounds: how many there are at most.
    ///   - report: gets what the row gave.
    /// - Throws: why it could not be measured.
    static func measureSecure(_ rounds: Int, into report: inout TransportRows.Report) throws {
        guard let openssl = BenchTools.path("openssl") else {
            return print("No row of the transport over TLS: openssl is missing.")
        }
        let origin = try MissOrigin.withTLS(openssl)
        defer { origin.stop() }
        try TransportPair.with(trusting: origin.certificate) { pair in
            let contenders = Contenders(pair, origin.secureAddress)
            contenders.measure(secure, target: 0.7, rounds, into: &report)
        }
    }

    /// Both clients at one origin.
    private struct Contenders {
        let ours: Meter
        let bare: Meter

        init(_ pair: TransportPair, _ origin: OriginAddress) {
            ours = Meter(isRepeating: false) { number in
                try await Self.check(pair.transport.length(of: "/small/\(number)", at: origin))
            }
            bare = Meter(isRepeating: false) { number in
                try await Self.check(pair.client.length(of: "/small/\(number)", at: origin))
            }
        }

        func measure(
            _ name: String,
            target: Double,
            _ rounds: Int,
            into report: inout TransportRows.Report
        ) {
            let row = Row(
                name: name,
                target: target,
                count: 4000,
                contenders: [
                    Contender("the transport") { ours.run($0) },
                    Contender("AsyncHTTPClient") { bare.run($0) },
                ]
            )
            report.outcomes.append(Harness(rounds: max(3, min(rounds, 15))).measure(row))
            report.processorTime.append(
                (
                    name,
                    [
                        ("the transport", ours.processorTime),
                        ("AsyncHTTPClient", bare.processorTime),
                    ]
                )
            )
        }

        private static func check(_ length: Int) throws {
            guard length == 4096 else { throw BenchFailure("a body of \(length) bytes") }
        }
    }
}
