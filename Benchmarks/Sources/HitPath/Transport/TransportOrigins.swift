import Foundation

/// Origins that have more than small files and a port.
extension MissOrigin {
    /// How many bytes the film has.
    static let filmLength = 256 << 20

    /// Where it listens.
    var address: OriginAddress { OriginAddress("http", "127.0.0.1:\(port)") }

    /// Where one with TLS listens for it.
    var secureAddress: OriginAddress { OriginAddress("https", "localhost:\(port + 1)") }

    /// The PEM file with the certificate that one with TLS shows.
    var certificate: String { Self.certificate(in: directory) }

    /// One that listens with TLS too.
    ///
    /// - Parameter openssl: the program that makes the certificate.
    /// - Returns: the origin, which runs.
    /// - Throws: why there is none.
    static func withTLS(_ openssl: String) throws -> MissOrigin {
        try MissOrigin { directory, port in
            let (certificate, key) = (Self.certificate(in: directory), "\(directory)/key.pem")
            try BenchTools.run(
                openssl,
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", key, "-out", certificate,
                ]
            )
            return """
                listen 127.0.0.1:\(port + 1) ssl;
                ssl_certificate \(certificate); ssl_certificate_key \(key);
                """
        }
    }

    /// One that has a film of 256 MiB at `/film`.
    ///
    /// - Returns: the origin, which runs.
    /// - Throws: why there is none.
    static func withFilm() throws -> MissOrigin {
        try MissOrigin { directory, _ in
            try writeFilm("\(directory)/files/film")
            return ""
        }
    }

    /// One that is all the hosts of ``HostsProcess``.
    ///
    /// It listens at the address of each: a socket of 127.0.0.1 has no connections to another one,
    /// and a socket of every address would have those from other machines.
    ///
    /// - Returns: the origin, which runs.
    /// - Throws: why there is none.
    static func withManyHosts() throws -> MissOrigin {
        try MissOrigin { _, port in
            (0..<HostsProcess.hosts)
                .map { "listen \(HostsProcess.address($0)):\(port);" }
                .joined(separator: "\n")
        }
    }

    private static func certificate(in directory: String) -> String {
        "\(directory)/certificate.pem"
    }

    private static func writeFilm(_ path: String) throws {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw BenchFailure("cannot make \(path)") }
        // Bytes rather than a hole, which some file systems send from one page again and again.
        let block = Data((0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        for _ in 0..<filmLength / block.count { try file.write(contentsOf: block) }
        try file.close()
    }
}
