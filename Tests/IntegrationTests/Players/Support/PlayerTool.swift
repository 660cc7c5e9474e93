import Subprocess
import SystemPackage
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A player that scripts/setup.sh installs, as a program.
enum PlayerTool: String, Sendable {
    case curl
    case ffmpeg
    case ffprobe
    case mpv
    case gstreamer = "gst-play-1.0"
    case vlc = "cvlc"
    case chromium
    case shell = "sh"
    case runuser
    case timeout

    /// Where the program is; nil if it is not installed.
    var path: FilePath? {
        ["/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/sbin"].map {
            FilePath($0).appending(rawValue)
        }
        .first { access($0.string, X_OK) == 0 }
    }

    /// Runs only where the program is installed.
    var isInstalled: ConditionTrait {
        .enabled(
            if: path != nil,
            "\(rawValue) is not installed and scripts/setup.sh could not install it"
        )
    }

    struct Outcome: Sendable {
        let hasSucceeded: Bool
        let output: [UInt8]
        let error: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// Runs the program to its end.
    ///
    /// - Parameters:
    ///   - arguments: its arguments.
    ///   - directory: where it runs.
    /// - Returns: how it ended.
    func run(_ arguments: [String], in directory: FilePath? = nil) async throws -> Outcome {
        let path = try #require(path)
        let result = try await Subprocess.run(
            .path(path),
            arguments: Arguments(arguments),
            workingDirectory: directory,
            input: .none,
            output: .bytes(limit: 64 << 20),
            error: .string(limit: 1 << 20)
        )
        return Outcome(
            hasSucceeded: result.terminationStatus.isSuccess,
            output: result.standardOutput,
            error: result.standardError
        )
    }

    /// Runs VLC to the end of what it plays; it refuses to be root, so it runs as `nobody` there.
    ///
    /// - Parameter arguments: its arguments.
    static func playInVLC(_ arguments: [String]) async throws -> Outcome {
        let words = ["--play-and-exit"] + arguments + ["vlc://quit"]
        guard getuid() == 0 else { return try await vlc.run(words) }
        let user = ["-u", "nobody", "--", "env", "HOME=/tmp", vlc.rawValue]
        return try await runuser.run(user + words)
    }

    /// What has VLC write down what it decodes, as fast as it comes.
    static func writing(pictures: String, sound: String) -> [String] {
        [
            "--sout",
            "#transcode{vcodec=I420,threads=1}:"
                + "es{access=file,mux=dummy,dst-video=\(pictures),dst-audio=\(sound)}",
            "--sout-all",
        ]
    }

    /// Runs the program, does `body` once it has printed a word, and ends it then.
    ///
    /// - Parameters:
    ///   - arguments: its arguments.
    ///   - word: what it prints when it is ready.
    ///   - body: what is done meanwhile.
    func running(
        _ arguments: [String],
        onceItSays word: String,
        _ body: @Sendable () async throws -> Void
    ) async throws {
        let path = try #require(path)
        let result = try await Subprocess.run(
            .path(path),
            arguments: Arguments(arguments),
            input: .none,
            output: .sequence,
            error: .discarded
        ) { execution in
            var result: Swift.Result<Void, any Error>?
            for try await line in execution.standardOutput.strings() {
                guard result == nil, line.contains(word) else { continue }
                do { result = .success(try await body()) } catch { result = .failure(error) }
                // It may have ended by itself.
                _ = try? execution.send(signal: .kill)
            }
            return try #require(result, "\(rawValue) did not say '\(word)'")
        }
        try result.closureResult.get()
    }

    /// Runs the program while `body` runs, and ends it then.
    ///
    /// - Parameters:
    ///   - arguments: its arguments.
    ///   - body: what is done meanwhile.
    func running(_ arguments: [String], _ body: @Sendable () async throws -> Void) async throws {
        let path = try #require(path)
        let result = try await Subprocess.run(
            .path(path),
            arguments: Arguments(arguments),
            input: .none,
            output: .discarded,
            error: .discarded
        ) { execution in
            let result: Swift.Result<Void, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            // It may have ended by itself.
            _ = try? execution.send(signal: .kill)
            return result
        }
        try result.closureResult.get()
    }
}
