import SystemPackage
import TieredCache
import TieredCacheAgent

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where the agent of a cache directory listens.
struct AgentPlace {
    let options: CacheOptions
    /// The path of the socket.
    let socket: FilePath

    /// - Parameters:
    ///   - options: those of the command.
    ///   - socket: the path that was given; nil for that of the directory.
    /// - Throws: ``CommandFailure`` where there is no directory.
    init(options: CacheOptions, socket: String?) throws(CommandFailure) {
        self.options = options
        if let socket {
            self.socket = AgentPath.absolute(FilePath(socket))
            return
        }
        guard let directory = options.configuration().path else {
            throw CommandFailure(.localFailed, message: "there is no cache directory")
        }
        self.socket = AgentPath.socket(of: directory)
    }

    /// The agent, where one answers.
    var running: AgentClient? {
        let client = AgentClient(socket: socket)
        return client.isAnswered ? client : nil
    }

    /// The agent; starts it where none answers.
    ///
    /// - Throws: ``CommandFailure``, also where another process owns the directory.
    func found() async throws -> AgentClient {
        if let running { return running }
        let program = DetachedProgram.agent(
            file: DetachedProgram.ownFile,
            socket: socket,
            options.sizeArguments
        )
        return try await program.found(in: options.configuration().path) { _ in running }
    }

    /// The agent where one answers, or has downloads; started where it does not answer.
    ///
    /// - Returns: nil where the directory has never had one.
    func ifKnown() async throws -> AgentClient? {
        if let running { return running }
        return hasDownloads ? try await found() : nil
    }

    /// Whether an agent has ever been at work in the directory.
    var hasDownloads: Bool {
        guard let directory = options.configuration().path else { return false }
        return access(directory.appending("agent").appending("journal").string, F_OK) == 0
    }
}

extension AgentClient {
    /// Calls a method.
    ///
    /// - Throws: ``CommandFailure``.
    func ask(
        _ method: String,
        _ parameters: [JSONValue] = []
    ) throws(CommandFailure) -> JSONValue {
        do throws(Failure) {
            return try call(method, parameters)
        } catch {
            switch error {
            case .refused(let refusal):
                throw CommandFailure(.usage, message: "the agent refuses: \(refusal.message)")
            case .noAgent, .noAnswer:
                throw CommandFailure(
                    .localFailed,
                    message: "the agent at \(socket) does not answer; try again"
                )
            }
        }
    }
}
