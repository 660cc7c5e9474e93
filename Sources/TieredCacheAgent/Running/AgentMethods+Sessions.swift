import OrderedCollections
import TieredCache

// What applications do with their sessions.
extension AgentMethods {
    /// Attaches the connection to a session; a message of its own for the time of the call.
    func attach(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let name = try sessionName(given)
        let command = try command(given)
        let attachment: DownloadTable.Attachment
        if let connection = self.attachment {
            let agent = agent
            attachment = try await connection.attach(
                name,
                { () throws(RPCError) in try await agent.attach(name, command: command) },
                detach: { await agent.detach($0) }
            )
        } else {
            attachment = try await agent.attach(name, command: command)
            await agent.detach(name)
        }
        return [
            "session": .string(name), "results": page(attachment.results.keys),
            "unfinished": page(attachment.unfinished),
        ]
    }

    private func page(_ gids: some Sequence<GID>) -> JSONValue {
        .array(gids.prefix(Self.maximumPage).map { answer($0) })
    }

    private func sessionName(_ given: RPCParameters) throws(RPCError) -> String {
        let name = try given.required(0, as: \.string)
        guard SessionForm.isName(name) else {
            throw RPCError("A session is called by 1 to 128 letters, digits, and -._")
        }
        return name
    }

    /// The option `on-complete`: a program and its arguments, or an empty list for none.
    private func command(_ given: RPCParameters) throws(RPCError) -> [String]? {
        guard let options = try given.optional(1, as: \.object) else { return nil }
        guard options.keys.allSatisfy({ $0 == "on-complete" }) else {
            throw RPCError("tieredcache.attach has no other option than on-complete.")
        }
        guard let value = options["on-complete"] else { return nil }
        // As with aria2: a client that knows the secret may download, and not run programs.
        guard isLocal else { throw RPCError("on-complete can be set at the socket alone.") }
        let words = value.array?.compactMap(\.string)
        guard let words, words.count == value.array?.count,
            words.isEmpty || SessionForm.isCommand(words)
        else {
            throw RPCError(
                "on-complete is a list of texts, a program and its arguments, of at most "
                    + "\(SessionForm.maximumCommand) bytes, without control characters."
            )
        }
        return words
    }

    /// Forgets results that the application knows.
    func acknowledge(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let name = try sessionName(given)
        if let session, session != name {
            throw RPCError("This connection is attached to session \(session).")
        }
        let texts = try given.texts(1)
        let count = try await agent.perform { (table, _) throws(RPCError) in
            // What is not there any more was acknowledged before.
            let gids = texts?.compactMap { GID($0.lowercased()) }
            return table.acknowledge(gids, of: name)
        }
        return .integer(Int64(count))
    }
}
