import Foundation
import Glibc

/// The servers of the proxy's rows: nginx as the origin and as the peer, and our program.
///
/// All of them share one core, and clients have another one, so that what is compared is what a
/// request costs the server, with one worker each.
final class BenchServers {
    static let sizes = [4096, 65_536, 1 << 20]

    private let directory: String
    private let program: String
    private var processes: [Process] = []
    /// The one process of nginx.
    private(set) var nginx = Process()
    let originPort: Int
    let cachePort: Int

    /// Our program, or nil where something is missing, which is said then.
    static func findProgram() -> String? {
        let program = ProcessInfo.processInfo.environment["TIEREDCACHE_PROGRAM"] ?? ""
        guard FileManager.default.isExecutableFile(atPath: program) else {
            print("No rows of the proxy: TIEREDCACHE_PROGRAM names no program.")
            return nil
        }
        for tool in ["nginx", "wrk", "taskset"] where BenchTools.path(tool) == nil {
            print("No rows of the proxy: \(tool) is missing.")
            return nil
        }
        return program
    }

    init(program: String) throws {
        self.program = program
        let base = ProcessInfo.processInfo.environment["TIEREDCACHE_BENCH_DIR"] ?? "/var/tmp"
        directory = "\(base)/tieredcache-proxy-bench-\(getpid())"
        originPort = 20_000 + Int(getpid()) % 20_000
        cachePort = originPort + 1
        try makeFiles()
        guard let nginx = BenchTools.path("nginx") else { throw BenchFailure("no nginx") }
        self.nginx = try BenchTools.start(
            nginx,
            ["-p", directory, "-c", "\(directory)/conf"],
            onCore: 0
        )
        processes.append(self.nginx)
        try waitFor(originPort)
        try waitFor(cachePort)
    }

    /// Ends the servers and removes their files.
    func stop() {
        for process in processes where process.isRunning {
            process.terminate()
            process.waitUntilExit()
        }
        do {
            try FileManager.default.removeItem(atPath: directory)
        } catch {
            print("cannot remove \(directory): \(error)")
        }
    }

    /// Starts `tieredcache serve`.
    ///
    /// - Returns: the process, and the base of its URLs.
    func serve(_ name: String, _ arguments: [String] = []) throws -> (Process, String) {
        let output = Pipe()
        let process = try BenchTools.start(
            program,
            ["serve", "--json", "--directory", "\(directory)/\(name)"] + arguments,
            onCore: 0,
            output: output
        )
        processes.append(process)
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let parts = line.split(separator: "\"").map(String.init)
        guard let base = parts.first(where: { $0.hasPrefix("http://") }) else {
            throw BenchFailure("serve said: \(line)")
        }
        return (process, base)
    }

    private func makeFiles() throws {
        for name in ["files", "cache", "tmp", "logs"] {
            try FileManager.default.createDirectory(
                atPath: "\(directory)/\(name)",
                withIntermediateDirectories: true
            )
        }
        for size in Self.sizes {
            let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            try bytes.write(to: URL(fileURLWithPath: "\(directory)/files/\(size)"))
        }
        let film = "\(directory)/files/film"
        guard FileManager.default.createFile(atPath: film, contents: nil),
            truncate(film, 1 << 30) == 0
        else { throw BenchFailure("cannot make \(film)") }
        try configuration.write(toFile: "\(directory)/conf", atomically: true, encoding: .utf8)
    }

    private var configuration: String {
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(directory)/tmp/\($0);"
        }
        return """
            daemon off; master_process off; worker_processes 1; pid \(directory)/pid;
            error_log \(directory)/logs/error;
            events { worker_connections 4096; }
            http {
              access_log off; sendfile on; default_type video/mp4; types { }
              keepalive_requests 1000000000; keepalive_timeout 600s;
              \(paths.joined(separator: " "))
              proxy_cache_path \(directory)/cache levels=1:2 keys_zone=z:10m max_size=1g;
              server {
                listen 127.0.0.1:\(originPort); root \(directory)/files;
                add_header Cache-Control "max-age=86400";
                location /cold/ { try_files /65536 =404; }
              }
              server {
                listen 127.0.0.1:\(cachePort);
                location / { proxy_pass http://127.0.0.1:\(originPort); proxy_cache z; }
              }
            }
            """
    }

    private func waitFor(_ port: Int) throws {
        for _ in 0..<500 {
            if (try? BenchConnection(port: port)) != nil { return }
            usleep(20_000)
        }
        throw BenchFailure("nothing listens on port \(port)")
    }
}
