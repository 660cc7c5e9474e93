import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Answers all requests to a player proxy.
struct PlayerResponder: Responder {
    let cache: MediaCache
    let settings: ProxySettings
    let token: String
    let page: StatusPage
    let current: CurrentRules
    let playlists = PlaylistRegistry()
    let sessions: PlayingSessions
    let answered = AnsweredItems()
    let cookies: PlayerCookies
    /// Set as soon as the server listens; no client can connect before.
    let address = SetOnce<ProxyAddress>()

    init(cache: MediaCache, settings: ProxySettings, token: String) {
        self.cache = cache
        self.settings = settings
        self.token = token
        cookies = PlayerCookies(token: token)
        current = CurrentRules(settings.rules)
        sessions = PlayingSessions(time: settings.timeSource)
        page = StatusPage(cache: cache, time: settings.timeSource)
    }

    var observer: (any OriginObserver)? { cache.observer }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        // A client may connect before the address is set.
        guard let address = address.value else { return }
        // A redirect, or a name of this machine, has led back to this proxy.
        let isLoop = settings.pseudonym.isNamed(in: request.value("via"))
        let route = PlayerRoute(
            method: request.method ?? .trace,
            target: request.target,
            host: request.value("host"),
            address: address
        )
        let rules = current.value.rules
        do {
            switch route {
            case .media where isLoop:
                try await writer.send(.text(PlayerRoute.Refusal.loop.rawValue))
            case .media(let target) where rules.excludes(target):
                try await writer.send(.redirect(307, to: target.string))
            case .media(let target):
                await answer(to: request, at: target, by: rules, with: writer)
            case .refused(let refusal):
                try await writer.send(.text(refusal.rawValue))
            case .redirectToBase:
                try await writer.send(.redirect(308, to: address.base))
            case .statusPage:
                try await writer.send(await page.answer(base: address.base))
            case .metrics:
                try await writer.send(await page.metrics())
            case .form(let action):
                let form = try await PageForm.read(body)
                try await writer.send(
                    try await page.perform(action, with: form, base: address.base)
                )
            }
        } catch let error as CacheError {
            settings.logger.warning("page failed", metadata: ["error": "\(error)"])
            await fail(writer)
        } catch {
            // The client has disconnected before the response.
            settings.logger.debug("client left", metadata: ["error": "\(error)"])
        }
    }

    /// Responds that the disk is not usable.
    private func fail(_ writer: ResponseWriter) async {
        do {
            try await writer.send(.text(500))
        } catch {
            // The client has disconnected; the error has been logged.
        }
    }

    /// Sends a representation; keeps working for ``ProxySettings/lingerTime`` after the client
    /// disconnects.
    ///
    /// Players drop a connection to open the next one at the following byte, which can then join
    /// the transfer.
    private func answer(
        to request: ServerRequest,
        at target: TargetURI,
        by rules: HostRules,
        with writer: ResponseWriter
    ) async {
        let exchange = MediaExchange(
            request: request,
            target: target,
            cache: cache,
            settings: settings(with: rules),
            prefix: "/\(token)/",
            playlists: playlists,
            sessions: sessions,
            answered: answered,
            cookies: cookies,
            writer: writer
        )
        await lingering(start: exchange.start, on: writer.executor) { try await exchange.run() }
    }

    /// The settings with rules that were set since.
    func settings(with rules: HostRules) -> ProxySettings {
        var settings = settings
        settings.rules = rules
        return settings
    }

    /// Runs the work of a response, and keeps it running for a moment after the client disconnects.
    ///
    /// Lingers only before the first byte: a response that has begun lingers in its
    /// ``CacheReader``, and the two delays would add up.
    func lingering(
        start: BodyStart,
        on executor: EventLoopExecutor,
        work body: @escaping @Sendable () async throws -> Void
    ) async {
        let settings = settings
        let work = Task(executorPreference: executor) {
            do {
                try await body()
            } catch {
                settings.logger.debug("answer cut", metadata: ["error": "\(error)"])
            }
        }
        await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            Task {
                if !start.hasBegun {
                    do {
                        try await settings.timeSource.sleep(for: settings.lingerTime)
                    } catch {
                        // Cancelled only when the server stops; the work ends at once then.
                    }
                }
                work.cancel()
            }
        }
    }
}

extension WholeResponse {
    /// A text response that leads elsewhere.
    static func redirect(_ status: Int, to location: String) -> WholeResponse {
        var response = text(status)
        response.head.fields[.location] = location
        return response
    }

    /// A text response with the status code and its reason phrase.
    static func text(_ status: Int) -> WholeResponse {
        let text = "\(status) \(HTTPResponseStatus(statusCode: status).reasonPhrase)\n"
        return WholeResponse(
            head: ResponseHead(
                status: status,
                fields: [.contentType: "text/plain; charset=utf-8"],
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }
}
