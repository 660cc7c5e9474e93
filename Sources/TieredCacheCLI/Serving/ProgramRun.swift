import CLinuxCalls
import Dispatch
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// How a program that `exec` has run ended; thrown to end this one alike.
struct ProgramEnding: Error, Equatable {
    /// Its exit code, or 128 and the number of the signal that ended it.
    let code: Int32
}

/// A program that runs with the standard streams, the terminal and the signals of this one.
struct ProgramRun {
    private let process: Int32

    /// Starts a program, which is looked up in `PATH` if its name has no slash.
    ///
    /// - Parameter words: its name and its arguments.
    /// - Throws: ``ProgramEnding``, after a line on standard error: 127 if there is no such
    ///   program, 126 if it cannot be run, as shells say it.
    init(_ words: [String]) throws(ProgramEnding) {
        var arguments = words.map { strdup($0) } + [nil]
        process = tc_spawn_program(&arguments)
        for argument in arguments { free(argument) }
        guard process < 0 else { return }
        let error = Errno(rawValue: -process)
        let name = words.first ?? ""
        StandardError.write("tieredcache: cannot run '\(name)': \(error)".asOneLine)
        throw ProgramEnding(code: error == .noSuchFileOrDirectory ? 127 : 126)
    }

    /// Waits for its end.
    func ending() async throws(CommandFailure) -> ProgramEnding {
        let process = process
        let code = await withCheckedContinuation { continuation in
            // The wait blocks: on a thread that no task needs.
            DispatchQueue(label: "tieredcache.program").async {
                continuation.resume(returning: tc_await_program(process))
            }
        }
        guard code < 0 else { return ProgramEnding(code: code) }
        throw CommandFailure(
            .localFailed,
            message: "cannot wait for the program: \(Errno(rawValue: -code))"
        )
    }

    /// Keeps a program from asking a proxy of the environment for a URL of this machine.
    static func exceptLoopbackFromProxies() {
        let proxies = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        guard proxies.contains(where: { getenv($0) != nil }) else { return }
        for name in ["no_proxy", "NO_PROXY"] {
            let known = getenv(name).map { String(cString: $0) + "," } ?? ""
            setenv(name, known + "127.0.0.1", 1)
        }
    }
}
