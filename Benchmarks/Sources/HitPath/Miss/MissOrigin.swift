import Foundation
import Glibc

/// nginx on loopback that answers every URL below `/small/`, `/large/` and `/stale/`, each with one
/// file.
final class MissOrigin {
    let directory: String
    let port: Int
    private let process: Process
    private var asked = 0

    /// Starts the server.
    ///
    /// - Parameter addition: makes in the directory what the server has beside its small files, and
    ///   returns lines for its configuration. The port after the one that it is given is free too.
    /// - Throws: what `addition` throws, or why there is no server.
    init(
        _ addition: (_ directory: String, _ port: Int) throws -> String = { _, _ in "" }
    ) throws {
        let parent = ProcessInfo.processInfo.environment["TIEREDCACHE_BENCH_DIR"] ?? "/var/tmp"
        directory = "\(parent)/tieredcache-miss-bench-\(getpid())"
        port = 20_000 + Int(getpid()) % 20_000
        guard let nginx = BenchTools.path("nginx") else { throw BenchFailure("no nginx") }
        for name in ["files", "tmp"] {
            try FileManager.default.createDirectory(
                atPath: "\(directory)/\(name)",
                withIntermediateDirectories: true
            )
        }
        for (name, size) in [("small", 4096), ("large", 1 << 20)] {
            let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            try bytes.write(to: URL(fileURLWithPath: "\(directory)/files/\(name)"))
        }
        let configuration = try Self.configuration(directory, port, addition(directory, port))
        try configuration.write(toFile: "\(directory)/conf", atomically: true, encoding: .utf8)
        process = try BenchTools.start(
            nginx,
            ["-e", "stderr", "-p", directory, "-c", "\(directory)/conf"],
            onCore: 0
        )
        try waitUntilItListens()
    }

    var base: String { "http://127.0.0.1:\(port)" }

    /// How many requests there were so far, those for this number apart.
    func requests() throws -> Int {
        let connection = try BenchConnection(port: port)
        try connection.ask("/count", port: port, "Connection: close\r\n")
        // "server accepts handled requests", and below it a line of the three numbers.
        let numbers = connection.rest().split(separator: "\n").map { $0.split(separator: " ") }
            .first { $0.count == 3 && $0.allSatisfy { Int($0) != nil } }
        guard let last = numbers?.last, let count = Int(last) else {
            throw BenchFailure("the origin does not count its requests")
        }
        asked += 1
        return count - asked
    }

    /// Ends the server and removes the files.
    func stop() {
        process.terminate()
        process.waitUntilExit()
        do {
            try FileManager.default.removeItem(atPath: directory)
        } catch {
            print("cannot remove \(directory): \(error)")
        }
    }

    private static func configuration(
        _ directory: String,
        _ port: Int,
        _ addition: String
    ) -> String {
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(directory)/tmp/\($0);"
        }
        return """
            \(geteuid() == 0 ? "user root;" : "")
            daemon off; master_process off; worker_processes 1; pid \(directory)/pid;
            error_log stderr crit;
            events { worker_connections 4096; }
            http {
              access_log off; sendfile on; default_type video/mp4; types { }
              keepalive_requests 1000000000; keepalive_timeout 600s;
              open_file_cache max=16; open_file_cache_valid 600s;
              \(paths.joined(separator: " "))
              server {
                listen 127.0.0.1:\(port); root \(directory)/files;
                location /small/ { add_header Cache-Control max-age=86400; try_files /small =404; }
                location /large/ { add_header Cache-Control max-age=86400; try_files /large =404; }
                location /stale/ { add_header Cache-Control max-age=0; try_files /small =404; }
                location = /post { error_page 404 405 =200 /small; }
                location = /count { stub_status; }
                \(addition)
              }
            }
            """
    }

    private func waitUntilItListens() throws {
        for _ in 0..<500 {
            if (try? BenchConnection(port: port)) != nil { return }
            usleep(20_000)
        }
        throw BenchFailure("nothing listens on port \(port)")
    }
}
