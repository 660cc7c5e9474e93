import Subprocess
import SystemPackage
import Testing
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A real nginx on loopback, HTTP and TLS, for the time of one closure.
struct NginxServer: Sendable {
    /// One line of nginx's access log.
    struct Exchange: Equatable, Sendable {
        /// nginx's serial number of the connection.
        let connection: Int
        let status: Int
        let method: String
        let target: String
    }

    private enum StartFailure: Error, CustomStringConvertible {
        case ended(said: [String])

        var description: String {
            switch self {
            case .ended(let said): "nginx ended: " + said.joined(separator: "\n")
            }
        }
    }

    let httpPort: Int
    let httpsPort: Int
    /// The certificate that nginx shows, to be trusted by the client.
    let certificate: FilePath

    func url(_ target: String) -> String { "http://127.0.0.1:\(httpPort)\(target)" }
    func secureURL(_ target: String) -> String { "https://localhost:\(httpsPort)\(target)" }

    /// Starts nginx, runs `body`, and stops nginx by its process identifier.
    ///
    /// - Parameters:
    ///   - files: what is served, by name.
    ///   - originPort: where the origin behind `/cached/` listens; nil for none.
    ///   - body: what is done meanwhile.
    /// - Returns: what `body` returned, and the exchanges in the order in which they ended.
    /// - Throws: what `body` throws, or why nginx cannot be started.
    static func run<Result: Sendable>(
        files: [String: GeneratedBody] = [:],
        originPort: Int? = nil,
        _ body: @Sendable (NginxServer) async throws -> Result
    ) async throws -> (Result, [Exchange]) {
        let directory = try TemporaryDirectory()
        try directory.makeDirectory("files")
        for (name, content) in files { try directory.write(content, to: "files/\(name)") }
        try await makeCertificate(in: directory)
        let result = try await withPorts { ports in
            try await run(in: directory, ports: ports, originPort: originPort, body)
        }
        return (result, try exchanges(directory.read("access.log")))
    }

    private static func run<Result: Sendable>(
        in directory: TemporaryDirectory,
        ports: (Int, Int),
        originPort: Int?,
        _ body: @Sendable (NginxServer) async throws -> Result
    ) async throws -> Result {
        let configuration = NginxConfiguration(
            directory: directory.path,
            httpPort: ports.0,
            httpsPort: ports.1,
            originPort: originPort
        )
        try directory.write(configuration.text, to: "nginx.conf")
        let server = NginxServer(
            httpPort: ports.0,
            httpsPort: ports.1,
            certificate: directory.appending("certificate.pem")
        )
        let outcome = try await Subprocess.run(
            .path(try program("nginx")),
            arguments: [
                "-e", "stderr", "-p", directory.path.string,
                "-c", directory.appending("nginx.conf").string,
            ],
            input: .none,
            output: .discarded,
            error: .sequence
        ) { execution in
            // Listening sockets exist before the first worker does, and connections to them wait.
            var lines = execution.standardError.strings().makeAsyncIterator()
            var said: [String] = []
            while let line = try await lines.next() {
                said.append(line)
                guard line.contains("start worker process") else { continue }
                let result: Swift.Result<Result, any Error>
                do { result = .success(try await body(server)) } catch { result = .failure(error) }
                try execution.send(signal: .terminate)
                while try await lines.next() != nil {}
                return try result.get()
            }
            throw StartFailure.ended(said: said)
        }
        return outcome.closureResult
    }

    /// Tries with other ports when another program was faster to take those that were free.
    private static func withPorts<Result>(
        _ body: ((Int, Int)) async throws -> Result
    ) async throws -> Result {
        for _ in 0..<5 {
            do {
                return try await body((try freePort(), try freePort()))
            } catch StartFailure.ended(let said) where said.contains(where: { $0.contains("98:") })
            {
                continue
            }
        }
        return try await body((try freePort(), try freePort()))
    }

    private static func makeCertificate(in directory: TemporaryDirectory) async throws {
        let outcome = try await Subprocess.run(
            .path(try program("openssl")),
            arguments: [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout", directory.appending("key.pem").string,
                "-out", directory.appending("certificate.pem").string,
            ],
            output: .discarded
        )
        try #require(outcome.terminationStatus.isSuccess)
    }

    /// Finds a program also where only root's PATH leads.
    private static func program(_ name: String) throws -> FilePath {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let directories = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"]
        let candidates = directories.map { FilePath($0).appending(name) }
        let found = candidates.first { access($0.string, X_OK) == 0 }
        return try #require(found, "\(name) is missing; run 'make setup'")
    }

    private static func exchanges(_ log: String) throws -> [Exchange] {
        try log.split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return Exchange(
                connection: try #require(Int(words[0])),
                status: try #require(Int(words[1])),
                method: String(words[2]),
                target: String(words[3])
            )
        }
    }

    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) + getsockname(descriptor, $0, &size)
            }
        }
        try #require(result == 0)
        return Int(in_port_t(bigEndian: address.sin_port))
    }
}
