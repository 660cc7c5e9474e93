import CLinuxCalls
import Logging
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs the commands of sessions, as processes that outlive the agent.
///
/// Its calls block.
final class SessionRunner: Sendable {
    /// The socket of the agent, which a command may ask; nil for none.
    private let socket: FilePath?
    private let logger: Logger
    private let children = Guarded<[Int32: (command: SessionCommand, isUnit: Bool)]>([:])

    init(socket: FilePath?, logger: Logger) {
        self.socket = socket
        self.logger = logger
    }

    /// Starts a command, in a session of its own, without any descriptor of the agent.
    func run(_ command: SessionCommand) { run(command, userManager: userManager) }

    private func run(_ command: SessionCommand, userManager: FilePath?) {
        let arguments = SessionLaunch(command, socket: socket, userManager: userManager).arguments
        var words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard nothing >= 0 else { return warn(command.session, Errno(rawValue: errno).description) }
        defer { close(nothing) }
        let process = tc_spawn_detached(arguments[0], &words, nothing, -1)
        guard process > 0 else {
            return warn(command.session, Errno(rawValue: -process).description)
        }
        children.withLock { $0[process] = (command, userManager != nil) }
        logger.info("command of a session runs", metadata: ["session": "\(command.session)"])
    }

    /// systemd-run(1), where the user has a manager of their own: what the agent starts itself ends
    /// with the agent's unit.
    private var userManager: FilePath? {
        let program = FilePath("/usr/bin/systemd-run")
        guard let runtime = getenv("XDG_RUNTIME_DIR"),
            access(program.string, X_OK) == 0,
            access(FilePath(platformString: runtime).appending("systemd/private").string, F_OK) == 0
        else { return nil }
        return program
    }

    /// Takes notice of those that have ended.
    func reap() {
        for (process, child) in children.withLock({ $0 }) {
            var status: Int32 = 0
            let result = waitpid(process, &status, WNOHANG)
            guard result == process || (result < 0 && errno != EINTR) else { continue }
            children.withLock { _ = $0.removeValue(forKey: process) }
            guard result == process, status != 0 else { continue }
            warn(child.command.session, "it ended with status \(status)")
            // systemd-run does not wait for what it starts: there was no manager, and nothing runs.
            if child.isUnit { run(child.command, userManager: nil) }
        }
    }

    private func warn(_ session: String, _ reason: String) {
        logger.warning(
            "the command of a session failed",
            metadata: ["session": "\(session)", "reason": "\(reason)"]
        )
    }
}

/// The arguments of the process that runs a command of a session.
struct SessionLaunch: Hashable {
    /// A program by its path, and the words behind it.
    let arguments: [String]

    /// - Parameters:
    ///   - command: the command.
    ///   - socket: the socket of the agent; nil for none.
    ///   - userManager: systemd-run(1); nil for a process of the agent.
    init(_ command: SessionCommand, socket: FilePath?, userManager: FilePath?) {
        var variables = ["TIEREDCACHE_SESSION=\(command.session)"]
        if let socket { variables.append("TIEREDCACHE_SOCKET=\(socket)") }
        if let userManager {
            arguments =
                [userManager.string, "--user", "--quiet", "--collect"]
                + variables.map { "--setenv=\($0)" } + ["--"] + command.words.prefix(1)
                // The manager takes `$` for the beginning of a variable.
                + command.words.dropFirst().map { $0.replacing("$", with: "$$") }
        } else {
            arguments =
                ["/usr/bin/env", "--unset=TIEREDCACHE_RPC_SECRET", "--"] + variables + command.words
        }
    }
}
