import CLinuxCalls
public import CTieredCache
import Dispatch
import FoundationEssentials
import SystemPackage
import TieredCache
import TieredCacheAgent

/// What a program attaches with, as values of the agent's client.
struct HostedAgentOptions {
    let session: String
    let directory: URL?
    let socket: URL?
    let program: URL?

    /// Reads the struct of the header.
    ///
    /// - Throws: `TIERED_E_INVALID`.
    init(_ pointer: UnsafePointer<tiered_agent_options>?) throws(Status) {
        let given = try structure(pointer, empty: tiered_agent_options())
        session = try text(given.session)
        directory = try Self.url(given.directory) ?? MediaCache.Configuration.defaultDirectory
        socket = try Self.url(given.socket)
        program = try Self.url(given.program)
    }

    private static func url(_ pointer: UnsafePointer<CChar>?) throws(Status) -> URL? {
        guard let path = try optionalText(pointer) else { return nil }
        guard !path.isEmpty else { throw .invalid }
        return URL(
            file: try CanonicalPath.absolute(
                FilePath(path),
                in: CanonicalPath.workingDirectory
            )
        )
    }
}

@c @implementation
public func tiered_agent_open(
    _ options: UnsafePointer<tiered_agent_options>!,
    _ agent: UnsafeMutablePointer<OpaquePointer?>!
) -> CInt {
    status { () throws(Status) in
        // Before anything takes a lock, which a child would find taken.
        tc_begin_use()
        try give(to: agent, of: agents) { () throws(Status) in
            let options = try HostedAgentOptions(options)
            try ProcessParts.start()
            return try HostedAgent(options)
        }
    }
}

@c @implementation
public func tiered_agent_retain(_ agent: OpaquePointer!) -> OpaquePointer! {
    agents?.retain(agent)
}

@c @implementation
public func tiered_agent_release(_ agent: OpaquePointer!) { agents?.release(agent)?.close() }

@c @implementation
public func tiered_agent_error(
    _ agent: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> CInt {
    status { () throws(Status) in
        let error = try object(agents, agent).lastError
        try write(error?.message ?? "", to: buffer, count: count)
        if let error { throw Status(error) }
    }
}

// MARK: Downloads

@c @implementation
public func tiered_agent_add(
    _ agent: OpaquePointer!,
    _ download: UnsafePointer<tiered_download>!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let hosted = try object(agents, agent)
        let given = try structure(download, empty: tiered_download())
        // Looked at before there is a download.
        try write("", to: buffer, count: count)
        let urls = try texts(given.urls)
        guard let url = urls.first else { throw .invalid }
        let fields = try fields(given.fields)
        let options = try options(given.options)
        let id = try hosted.call { agent async throws(CacheError) in
            var request = try CacheRequest(url)
            request.take(fields)
            return try await agent.add(
                request,
                mirrors: Array(urls.dropFirst()),
                options: options
            )
        }
        return try write("\(id)", to: buffer, count: count)
    }
}

private func options(
    _ lines: UnsafePointer<UnsafePointer<CChar>?>?
) throws(Status) -> [String: String] {
    var options: [String: String] = [:]
    for line in try texts(lines) {
        guard let equals = line.firstIndex(of: "="), equals != line.startIndex else {
            throw .invalid
        }
        options[String(line[..<equals])] = String(line[line.index(after: equals)...])
    }
    return options
}

@c @implementation
public func tiered_agent_next(
    _ agent: OpaquePointer!,
    _ milliseconds: Int32,
    _ info: UnsafeMutablePointer<tiered_download_info>!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> CInt {
    status { () throws(Status) in
        let hosted = try object(agents, agent)
        guard milliseconds >= -1, info != nil else { throw .invalid }
        // Looked at before one is taken.
        try fill(info, with: tiered_download_info())
        try write("", to: buffer, count: count)
        let end: DispatchTime =
            milliseconds < 0 ? .distantFuture : .now() + .milliseconds(Int(milliseconds))
        guard let download = try hosted.next(until: end) else { throw Status(TIERED_E_AGAIN) }
        try fill(info, with: tiered_download_info(download))
        let path = download.file.flatMap { FilePath(fileURL: $0) }?.string
        try write(download.problem?.message ?? path ?? "", to: buffer, count: count)
    }
}

extension DownloadAgent.Download {
    fileprivate var problem: DownloadProblem? { state.numbered.1 }
}

extension tiered_download_info {
    fileprivate init(_ download: DownloadAgent.Download) {
        self.init()
        let unknown = Int64(TIERED_E_UNKNOWN.rawValue)
        withUnsafeMutableBytes(of: &identifier) { bytes in
            bytes.copyBytes(from: "\(download.id)".utf8.prefix(bytes.count - 1))
        }
        state = Int32(download.state.numbered.0.rawValue)
        if let problem = download.problem { status = Status(problem.error).number }
        bytes = download.status.bytes
        total = download.status.total ?? unknown
        let rate = download.status.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) }
        bytes_per_second = rate ?? unknown
        lacks_credentials = download.status.lacksCredentials ? 1 : 0
    }
}

// MARK: Commands

@c @implementation
public func tiered_agent_acknowledge(
    _ agent: OpaquePointer!,
    _ identifier: UnsafePointer<CChar>!
) -> CInt {
    status { () throws(Status) in
        try perform(agent, identifier) { (agent, id) async throws(CacheError) in
            try await agent.acknowledge(id)
        }
    }
}

@c @implementation
public func tiered_agent_cancel(
    _ agent: OpaquePointer!,
    _ identifier: UnsafePointer<CChar>!
) -> CInt {
    status { () throws(Status) in
        try perform(agent, identifier) { (agent, id) async throws(CacheError) in
            try await agent.cancel(id)
        }
    }
}

@c @implementation
public func tiered_agent_resume(
    _ agent: OpaquePointer!,
    _ identifier: UnsafePointer<CChar>!,
    _ lines: UnsafePointer<UnsafePointer<CChar>?>!
) -> CInt {
    status { () throws(Status) in
        let fields = try fields(lines)
        try perform(agent, identifier) { (agent, id) async throws(CacheError) in
            try await agent.resume(id, fields: fields)
        }
    }
}

private func perform(
    _ agent: OpaquePointer?,
    _ identifier: UnsafePointer<CChar>?,
    _ body: @escaping @Sendable (DownloadAgent, DownloadID) async throws(CacheError) -> Void
) throws(Status) {
    let hosted = try object(agents, agent)
    guard let id = DownloadID(try text(identifier)) else { throw .invalid }
    try hosted.call { agent async throws(CacheError) in try await body(agent, id) }
}
