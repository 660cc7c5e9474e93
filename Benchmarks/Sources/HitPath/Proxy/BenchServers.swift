import Foundation
import Glibc

/// The servers of the proxy's rows: nginx as the origin and as the peer, and our program.
///
/// All of them share one core, and clients have another one, so that what is compared is what a
/// request costs the server, with one worker each.
final class BenchServers {
    static let sizes = [4096, 65_536, 1 << 20]
    /// The bytes of each segment below `/segments/`.
    static let segment = 500 << 10

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

    /// A script for wrk by which each request of a run asks for a file of its own below the URL.
    func script(counting run: String) throws -> String {
        let name = run.map { $0.isLetter || $0.isNumber ? String($0) : "-" }.joined()
        return try script("n = n + 1", "\"\(name)-\" .. n")
    }

    /// A script for wrk by which each request asks for one of `count` files below the URL.
    func script(amongst count: Int) throws -> String {
        try script("n = math.random(\(count))", "n")
    }

    private func script(_ step: String, _ name: String) throws -> String {
        let path = "\(directory)/tmp/script"
        let text = """
            local n = 0
            request = function()
              \(step)
              return wrk.format("GET", wrk.path .. \(name))
            end
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
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
        try Data(count: Self.segment)
            .write(to: URL(fileURLWithPath: "\(directory)/files/segment"))
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
              proxy_cache_path \(directory)/cache levels=1:2 keys_zone=z:64m max_size=4g;
              proxy_cache_path \(directory)/little levels=1:2 keys_zone=y:10m max_size=64m;
              upstream origin { server 127.0.0.1:\(originPort); keepalive 64; }
              server {
                listen 127.0.0.1:\(originPort); root \(directory)/files;
                add_header Cache-Control "max-age=86400";
                location /cold/ { try_files /65536 =404; }
                location /small/ { try_files /4096 =404; }
                location /segments/ { try_files /segment =404; }
              }
              server {
                listen 127.0.0.1:\(cachePort);
                proxy_http_version 1.1; proxy_set_header Connection "";
                location / { proxy_pass http://origin; proxy_cache z; }
                location /cold/ { proxy_pass http://origin; proxy_cache y; }
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
