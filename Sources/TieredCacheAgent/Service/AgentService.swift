package import FoundationEssentials
import Logging
package import SystemPackage
package import TieredCache
package import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// An agent with its servers: the methods at a socket and at a port, guests of the directory, and
/// the player proxy.
package final class AgentService: Sendable {
    /// Where it listens, and what it does beside downloads.
    package struct Settings: Sendable {
        /// The socket, where systemd gives none.
        package var socket: FilePath
        /// The port of 127.0.0.1 for programs that know ``secret``; nil for none.
        package var port: Int?
        package var secret: String?
        /// The port of a player proxy, 0 for any; nil for no proxy.
        package var proxyPort: Int?
        package var activation = Activation()
        /// The options of the agent where none were changed.
        package var options = DownloadOptions()
        /// How long it stays without work or clients.
        package var idle = Duration.seconds(30)
        /// What the proxy and the guests get.
        package var proxy = ProxySettings()

        package init(socket: FilePath) {
            self.socket = socket
        }
    }

    /// Where it can be asked.
    package struct Address: Hashable, Sendable {
        package var socket: FilePath
        /// The URL for programs that know the secret; nil for none.
        package var rpc: String?
        /// What proxied URLs begin with; nil for no proxy.
        package var base: URL?
    }

    package let address: Address
    package let agent: Agent
    private let cache: MediaCache
    private let servers: [MessageServer]
    private let guests: GuestService
    private let proxy: PlayerProxy?
    private let time: any TimeSource
    private let idle: Duration
    private let ends: AsyncStream<Void>

    private init(
        _ parts: Parts,
        address: Address,
        settings: Settings,
        servers: [MessageServer],
        proxy: PlayerProxy?
    ) {
        self.address = address
        agent = parts.agent
        cache = parts.cache
        guests = parts.guests
        ends = parts.ends
        time = parts.agent.time
        idle = settings.idle
        self.servers = servers
        self.proxy = proxy
    }

    // MARK: Starting

    /// What servers need.
    private struct Parts {
        let cache: MediaCache
        let agent: Agent
        let guests: GuestService
        let ends: AsyncStream<Void>
        let methods: AgentMethods
    }

    /// Opens cache and downloads, listens, and goes on with what was left.
    ///
    /// - Throws: ``CacheError``: `.notOwner` where another process owns the directory;
    ///   `.localStorage` where nothing can listen; `.invalidArgument`.
    package static func start(
        _ configuration: MediaCache.Configuration,
        settings: Settings
    ) async throws(CacheError) -> AgentService {
        try check(settings)
        let cache = try MediaCache(configuration)
        do throws(CacheError) {
            let agent = try await Agent(
                configuration,
                cache: cache,
                options: settings.options,
                socket: settings.activation.listeners.lazy.compactMap(\.path).first
                    ?? settings.socket
            )
            let (ends, end) = AsyncStream.makeStream(
                of: Void.self,
                bufferingPolicy: .bufferingNewest(1)
            )
            let parts = Parts(
                cache: cache,
                agent: agent,
                guests: GuestService(
                    cache: cache,
                    directory: configuration.directory,
                    settings: settings.proxy
                ),
                ends: ends,
                methods: AgentMethods(agent: agent) { end.yield() }
            )
            let service = try await listen(parts, settings, directory: configuration.directory)
            await agent.resume()
            return service
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    private static func check(_ settings: Settings) throws(CacheError) {
        let needsSecret =
            settings.port != nil || settings.activation.listeners.contains { $0.path == nil }
        guard !needsSecret || settings.secret.map({ !$0.isEmpty }) ?? false else {
            throw CacheError(
                .invalidArgument,
                "a port needs a secret that its clients know; give --rpc-secret"
            )
        }
    }

    private static func listen(
        _ parts: Parts,
        _ settings: Settings,
        directory: URL?
    ) async throws(CacheError) -> AgentService {
        var servers: [MessageServer] = []
        var address = Address(socket: settings.socket)
        do throws(CacheError) {
            for listener in settings.activation.listeners {
                if let path = listener.path { address.socket = path }
                let server = try await server(
                    at: .descriptor(listener.descriptor, isSocket: listener.path != nil),
                    parts,
                    settings,
                    name: listener.path?.string ?? "a port of systemd"
                )
                if listener.path == nil { address.rpc = url(server.port) }
                servers.append(server)
            }
            if settings.activation.listeners.allSatisfy({ $0.path == nil }) {
                servers.append(try await server(atOwn: settings.socket, parts, settings))
            }
            if let port = settings.port {
                let server = try await server(
                    at: .port(port),
                    parts,
                    settings,
                    name: "127.0.0.1:\(port)"
                )
                address.rpc = url(server.port)
                servers.append(server)
            }
            var proxy: PlayerProxy?
            if let port = settings.proxyPort {
                var chosen = settings.proxy
                chosen.port = port == 0 ? nil : port
                proxy = try await PlayerProxy.start(
                    cache: parts.cache,
                    directory: directory,
                    settings: chosen
                )
                address.base = proxy?.base
            }
            return AgentService(
                parts,
                address: address,
                settings: settings,
                servers: servers,
                proxy: proxy
            )
        } catch {
            for server in servers { await server.stop() }
            await parts.guests.stop()
            throw error
        }
    }

    private static func url(_ port: Int) -> String {
        "http://127.0.0.1:\(port)\(AgentHandler.path)"
    }

    private static func server(
        atOwn path: FilePath,
        _ parts: Parts,
        _ settings: Settings
    ) async throws(CacheError) -> MessageServer {
        guard !AgentClient(socket: path).isAnswered else {
            throw CacheError(
                .localStorage,
                "another program listens at \(path); give another --socket"
            )
        }
        return try await server(
            at: .socket(path, on: parts.agent.files),
            parts,
            settings,
            name: path.string
        )
    }

    private static func server(
        at place: MessageServer.Place,
        _ parts: Parts,
        _ settings: Settings,
        name: String
    ) async throws(CacheError) -> MessageServer {
        let isPort =
            switch place {
            case .port, .descriptor(_, isSocket: false): true
            case .socket, .descriptor: false
            }
        let time = parts.agent.time
        let secret = isPort ? settings.secret.map { AgentSecret($0, time: time) } : nil
        var limits = ServerLimits()
        limits.maximumBodySize = Int64(AgentHandler.maximumMessage)
        let hosts = AgentHosts()
        var methods = parts.methods
        methods.isLocal = !isPort
        do {
            let server = try await MessageServer.start(
                at: place,
                handler: AgentHandler(
                    calls: AgentCalls(methods: methods, secret: secret),
                    agent: parts.agent,
                    hosts: isPort ? hosts : nil
                ),
                limits: limits,
                maximumConnections: settings.proxy.maximumConnections ?? 1024,
                logger: settings.proxy.logger
            )
            hosts.allow(port: server.port)
            return server
        } catch {
            throw CacheError(
                .localStorage,
                "cannot listen at \(name): \(error); choose another one"
            )
        }
    }

    // MARK: Running

    /// Returns when a client has asked for the end, when nothing is left to do and no client is
    /// there, or when the task is cancelled.
    package func untilDone() async {
        await withTaskGroup { group in
            group.addTask { [self] in
                for await _ in ends { break }
                await pause(.milliseconds(100))  // For the answer to the client.
            }
            group.addTask { [self] in await untilIdle() }
            await group.next()
            group.cancelAll()
        }
    }

    private func untilIdle() async {
        var watch = IdleWatch(after: idle, now: time.monotonicTime())
        while await pause(.seconds(1)) {
            await agent.tick()
            let guests = await guests.clients()
            var (connected, total) = (guests.connected, guests.total)
            for server in servers {
                connected += server.connections
                total += server.total
            }
            connected += proxy?.clients.connected ?? 0
            total += proxy?.clients.total ?? 0
            let isBusy = connected > 0 || agent.isBusy
            if watch.observe(isBusy: isBusy, clients: total, now: time.monotonicTime()) { return }
        }
    }

    /// - Returns: false where the task is cancelled.
    @discardableResult
    private func pause(_ duration: Duration) async -> Bool {
        do {
            try await time.sleep(for: duration)
            return true
        } catch {
            return false
        }
    }

    /// Ends all of it; downloads go on in the next process.
    package func stop() async {
        for server in servers { await server.stop() }
        await proxy?.stop()
        await agent.close()
        await guests.stop()
        await cache.shutdown()
    }
}
