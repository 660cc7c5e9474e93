import TieredCache

/// The session that a connection is attached to.
///
/// States: `none` → `attaching` → `answering` → `attached`, and from there again; `attaching` goes
/// back where the table refuses; `closed` from each of them.
final class AgentAttachment: Sendable {
    private enum State {
        case none
        case attaching(String)
        /// The client gets the answer next, and then the results.
        case answering(DownloadTable.Attachment)
        case attached(String)
        case closed

        /// The session whose downloads are told.
        var session: String? {
            switch self {
            case .none, .closed: nil
            case .attaching(let name), .attached(let name): name
            case .answering(let attachment): attachment.name
            }
        }

        /// The session that the table counts this connection in.
        var counted: String? {
            if case .attaching = self { nil } else { session }
        }
    }

    private let state = Guarded(State.none)

    /// The session whose downloads the connection sees; nil for those of all.
    var session: String? { state.withLock { $0.session } }

    /// Whether notifications wait until the results have been told.
    var isAttaching: Bool {
        state.withLock { state in
            switch state {
            case .none, .closed, .attached: false
            case .attaching, .answering: true
            }
        }
    }

    /// Attaches the connection, instead of to the session before.
    ///
    /// - Parameters:
    ///   - session: its name.
    ///   - attach: attaches in the table.
    ///   - detach: detaches there.
    /// - Returns: what `attach` gives.
    /// - Throws: the error of `attach`, and the session before is kept; ``RPCError`` where the
    ///   connection has been closed.
    func attach(
        _ session: String,
        _ attach: () async throws(RPCError) -> DownloadTable.Attachment,
        detach: (String) async -> Void
    ) async throws(RPCError) -> DownloadTable.Attachment {
        let before = exchange(.attaching(session))
        let attachment: DownloadTable.Attachment
        do throws(RPCError) {
            attachment = try await attach()
        } catch {
            if case .closed = exchange(before), let counted = before.counted {
                await detach(counted)
            }
            throw error
        }
        let isClosed = if case .closed = exchange(.answering(attachment)) { true } else { false }
        if let counted = before.counted { await detach(counted) }
        guard !isClosed else {
            await detach(session)
            throw RPCError("The connection was closed.")
        }
        return attachment
    }

    /// The results that have to be told now, once.
    func takeResults() -> DownloadTable.Attachment? {
        state.withLock { state in
            guard case .answering(let attachment) = state else { return nil }
            state = .attached(attachment.name)
            return attachment
        }
    }

    /// The connection has ended.
    ///
    /// - Returns: the session to be detached from; nil where an attach under way does that.
    func close() -> String? { exchange(.closed).counted }

    /// Takes the next state, unless the connection is closed.
    ///
    /// - Returns: the state before.
    private func exchange(_ next: State) -> State {
        state.withLock { state in
            if case .closed = state { return state }
            defer { state = next }
            return state
        }
    }
}
