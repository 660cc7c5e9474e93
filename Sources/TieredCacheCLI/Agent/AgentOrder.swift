import HTTPCaching
import TieredCache
import TieredCacheAgent

/// What `pause`, `resume` and `cancel` say to the agent of a directory, where there is one.
struct AgentOrder {
    private let place: AgentPlace

    /// - Parameters:
    ///   - options: those of the command.
    ///   - socket: the path that was given; nil for that of the directory.
    /// - Throws: ``CommandFailure`` where there is no directory.
    init(_ options: CacheOptions, socket: String?) throws(CommandFailure) {
        place = try AgentPlace(options: options, socket: socket)
    }

    /// Calls a method for those downloads that the agent has.
    ///
    /// - Parameters:
    ///   - names: URLs, or identifiers.
    ///   - method: its name.
    /// - Returns: the others, which may be downloads of `get`.
    /// - Throws: ``CommandFailure``, and what it takes to find the agent.
    func rest(of names: [String], _ method: String) async throws -> [String] {
        guard !names.isEmpty, let agent = try await place.ifKnown() else { return names }
        let all = try AgentDownload.all(of: agent).filter(\.isOpen)
        var rest: [String] = []
        for name in names {
            let found = all.filter { $0.gid == name || $0.url == Self.shown(name) }
            if found.isEmpty { rest.append(name) }
            // As for downloads of `get`: what is so already stays so.
            for download in found where !download.isDone(by: method) {
                _ = try agent.ask(method, [.string(download.gid)])
            }
        }
        return rest
    }

    /// Lets all go on that are paused.
    ///
    /// - Returns: false where there is no agent.
    func resumeAll() async throws -> Bool {
        let agent = try await place.ifKnown()
        // Swift 6.3.1 crashes on an early return in the place of this, where it optimizes.
        return try agent.map { agent in try agent.ask("aria2.unpauseAll") } != nil
    }

    /// The URL as it is kept: without userinfo and fragment.
    private static func shown(_ name: String) -> String? {
        do throws(CacheError) {
            return try CacheRequest(name).target.string
        } catch {
            return nil  // An identifier.
        }
    }
}

extension AgentDownload {
    /// Whether it has not stopped.
    var isOpen: Bool { ["active", "waiting", "paused"].contains(state) }

    /// Whether a method would leave it as it is.
    func isDone(by method: String) -> Bool {
        switch method {
        case "aria2.pause": state == "paused"
        case "aria2.unpause": state != "paused"
        default: false
        }
    }
}
