import FoundationEssentials
import Subprocess
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The real program with an origin, a cache directory and a place for files of its own.
struct Workplace: Sendable {
    /// A run under way.
    struct Running: Sendable {
        let processIdentifier: pid_t

        /// Sends a signal to that process alone.
        func send(_ signal: Int32) { _ = kill(processIdentifier, signal) }
    }

    let origin: ScriptedOrigin
    let files: TemporaryDirectory

    /// Where the program keeps its entries.
    var cache: FilePath { files.appending("cache") }

    /// Makes a workplace for the time of `body`.
    static func with(_ body: (Workplace) async throws -> Void) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-command")
        do {
            try await body(Workplace(origin: origin, files: files))
        } catch {
            await origin.stop()
            throw error
        }
        await origin.stop()
    }

    /// The program, built beside the test bundle.
    static var program: FilePath {
        get throws {
            let bundle = try #require(
                CommandLine.arguments.first.map { FilePath($0) }.flatMap(resolved)
            )
            let program = bundle.removingLastComponent().appending("tieredcache")
            if access(program.string, X_OK) == 0 { return program }
            let own = try #require(resolved("/proc/self/exe"))
            return own.removingLastComponent().appending("tieredcache")
        }
    }

    private static func resolved(_ path: FilePath) -> FilePath? {
        guard let buffer = realpath(path.string, nil) else { return nil }
        defer { free(buffer) }
        return FilePath(platformString: buffer)
    }

    /// Runs the program to its end in this workplace's cache directory.
    ///
    /// - Parameters:
    ///   - arguments: what follows `tieredcache`.
    ///   - directory: the cache directory; the workplace's own by default.
    ///   - meanwhile: what is done while the program runs.
    /// - Returns: how it ended.
    @discardableResult
    func run(
        _ arguments: String...,
        directory: FilePath? = nil,
        meanwhile: (Running) async throws -> Void = { _ in }
    ) async throws -> ProgramOutcome {
        try await run(arguments, directory: directory, meanwhile: meanwhile)
    }

    @discardableResult
    func run(
        _ arguments: [String],
        directory: FilePath? = nil,
        meanwhile: (Running) async throws -> Void = { _ in }
    ) async throws -> ProgramOutcome {
        let all = arguments + ["--directory", (directory ?? cache).string]
        return try await runPlain(all, meanwhile: meanwhile)
    }

    /// Runs the program with these arguments alone.
    func runPlain(
        _ arguments: [String],
        program: FilePath? = nil,
        meanwhile: (Running) async throws -> Void = { _ in }
    ) async throws -> ProgramOutcome {
        let result = try await Subprocess.run(
            .path(try program ?? Self.program),
            arguments: Arguments(arguments),
            environment: .inherit.updating([
                "HOME": files.path.string, "XDG_CACHE_HOME": files.appending("xdg").string,
            ]),
            workingDirectory: files.path,
            input: .none,
            output: .bytes(limit: 64 << 20),
            error: .string(limit: 1 << 20)
        ) { execution in
            try await meanwhile(Running(processIdentifier: execution.processIdentifier.value))
        }
        return ProgramOutcome(
            arguments: arguments,
            status: result.terminationStatus,
            output: result.standardOutput,
            error: result.standardError
        )
    }

    /// Gets a target into a file, with `--json`.
    @discardableResult
    func get(
        _ target: String,
        into file: String,
        _ options: String...,
        meanwhile: (Running) async throws -> Void = { _ in }
    ) async throws -> ProgramOutcome {
        let output = files.appending(file).string
        let arguments = ["get", origin.url(target), "--output", output, "--json"] + options
        return try await run(arguments, meanwhile: meanwhile)
    }

    /// What the origin was asked for one path.
    func exchanges(_ path: String) -> [OriginExchange] { origin.log.exchanges(for: path) }

    // MARK: Files

    /// Whether a file beside the cache holds exactly what the origin has under `target`.
    func file(_ name: String, equals target: String, version: Int? = nil) throws -> Bool {
        let resource = try #require(origin.resource(target))
        let body = try #require(resource.bodyOfVersion(version ?? resource.version))
        guard files.names.contains(name) else { return false }
        return try files.file(name, equals: body)
    }

    /// The files anywhere below the cache directory and their contents.
    func cacheFiles() throws -> [String: Data] {
        let manager = FileManager.default
        guard manager.fileExists(atPath: cache.string) else { return [:] }
        var result: [String: Data] = [:]
        for name in try manager.subpathsOfDirectory(atPath: cache.string) {
            guard let data = manager.contents(atPath: cache.appending(name).string) else {
                continue
            }
            result[name] = data
        }
        return result
    }

    /// The files below the cache directory in which an ASCII text occurs.
    func cacheFiles(occupancy text: String) throws -> [String] {
        // Repairing what is not UTF-8 leaves every ASCII text in place.
        try cacheFiles().filter { String(decoding: $0.value, as: UTF8.self).contains(text) }
            .keys.sorted()
    }

    /// The path below the cache directory of the only file that ends with `suffix`.
    func onlyCacheFile(_ suffix: String) throws -> FilePath {
        let names = try cacheFiles().keys.filter { $0.hasSuffix(suffix) }
        try #require(names.count == 1, "\(names)")
        return cache.appending(try #require(names.first))
    }
}

extension ScriptedOrigin {
    /// Serves `length` generated bytes, fresh for an hour.
    func serveFresh(
        _ path: String,
        length: Int64,
        seed: UInt64 = 7,
        _ script: OriginScript = OriginScript()
    ) {
        serve(path, .generated(length: length, seed: seed, cacheControl: "max-age=3600"), script)
    }
}
