import ArgumentParser
import TieredCache
import TieredCacheProxy

/// `tieredcache exec -- PROGRAM`: runs a program whose URLs lead through the cache.
struct ExecCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec",
        abstract: "Run a program whose http and https URLs lead through the cache.",
        discussion: """
            tieredcache exec -- ffmpeg -i https://example.com/film.mp4 film.mkv

            Arguments that are URLs become proxied ones, alone or as NAME=URL; what belongs to an option of \
            a referrer, a proxy or an origin stays. Standard streams and the terminal are the \
            program's, signals that are sent to this process reach it, and its exit code is this one's: 128 \
            and the number of a signal that ended it, 127 if there is no such program, 126 if it cannot be run.

            The proxy ends with the program. Where one runs for the directory ('serve', 'url') it is used; \
            where another process owns the directory, what that has stored is used, and it stores what is fetched.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Rewrite this argument of the program alone, counted from 1.",
            discussion: "Can be given several times.",
            valueName: "n"
        )
    )
    var only: [Int] = []

    @Option(
        help: ArgumentHelp(
            "Leave this argument of the program as it is, such as the URL of an upload.",
            discussion: "Can be given several times.",
            valueName: "n"
        )
    )
    var except: [Int] = []

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program and its arguments, behind --.", valueName: "program")
    )
    var program: [String] = []

    func validate() throws {
        guard program.first.map({ !$0.isEmpty }) ?? false else {
            throw ValidationError("there is no program; write it behind --")
        }
    }

    func run() async throws {
        let arguments = ProgramArguments(
            words: Array(program.dropFirst()),
            only: only,
            except: except
        )
        try arguments.requirePlaces()
        guard arguments.hasURLs else {
            throw try await ProgramRun(program).ending()
        }
        ProgramRun.exceptLoopbackFromProxies()
        if let directory = cache.configuration().path,
            let proxy = RunningProxy.find(in: directory)
        {
            let ending = try await run(arguments, port: proxy.port, by: proxy.url)
            // It stays there as long as it is held.
            throw withExtendedLifetime(proxy) { ending }
        }
        throw try await runServing(arguments)
    }

    private func runServing(_ arguments: ProgramArguments) async throws -> ProgramEnding {
        // Port and token are of this run alone: others can read the arguments of a program.
        let served = try await ServedCache.start(cache, keepsAddress: false)
        if let problem = served.cache.storingError(in: cache.configuration().path) {
            StandardError.write("tieredcache: nothing is stored: \(problem.message)".asOneLine)
        }
        do {
            let ending = try await run(
                arguments,
                port: served.proxy.port,
                by: { url throws(CacheError) in try served.proxy.url(for: url) }
            )
            await served.stop()
            return ending
        } catch {
            await served.stop()
            throw error
        }
    }

    private func run(
        _ arguments: ProgramArguments,
        port: Int,
        by proxied: (String) throws(CacheError) -> String
    ) async throws -> ProgramEnding {
        let words = try arguments.rewritten(port: port, by: proxied)
        return try await ProgramRun(program.prefix(1) + words).ending()
    }
}
