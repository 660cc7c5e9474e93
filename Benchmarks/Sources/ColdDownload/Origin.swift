#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// nginx on a free port of loopback, serving the files of a place.
struct Origin {
    private let port: UInt16
    private let process: pid_t

    init(in place: Place) throws {
        port = try Self.freePort()
        try place.write("nginx.conf", Self.configuration(port: port))
        process = try Run.spawn([
            "nginx", "-e", "stderr", "-p", place.path(""), "-c", place.path("nginx.conf"),
        ])
        var attempts = 0
        while !Self.answers(port) {
            attempts += 1
            guard attempts < 500 else { throw Failure("nginx does not listen") }
            usleep(20_000)
        }
    }

    func url(_ file: String) -> String { "http://127.0.0.1:\(port)/\(file)" }

    func stop() {
        kill(process, SIGTERM)
        var status: Int32 = 0
        waitpid(process, &status, 0)
    }

    private static func configuration(port: UInt16) -> String {
        """
        \(geteuid() == 0 ? "user root;" : "")
        daemon off;
        worker_processes 1;
        pid nginx.pid;
        error_log stderr crit;
        events { worker_connections 64; }
        http {
            access_log off;
            client_body_temp_path t1;
            proxy_temp_path t2;
            fastcgi_temp_path t3;
            uwsgi_temp_path t4;
            scgi_temp_path t5;
            sendfile on;
            server {
                listen 127.0.0.1:\(port);
                location / { root files; add_header Cache-Control max-age=3600; }
            }
        }
        """
    }

    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withAddress(&address) { bind(descriptor, $0, length) == 0 }
        guard isBound, withAddress(&address, { getsockname(descriptor, $0, &length) == 0 }) else {
            throw Failure("no free port")
        }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func answers(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = loopback(port)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withAddress(&address) { connect(descriptor, $0, length) == 0 }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func withAddress<Result>(
        _ address: inout sockaddr_in,
        _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
