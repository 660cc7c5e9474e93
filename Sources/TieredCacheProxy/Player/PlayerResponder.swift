import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import TieredCache

/// Answers everything that is asked of a player proxy.
struct PlayerResponder: Responder {
    let cache: MediaCache
    let settings: ProxySettings
    let token: String
    let page: StatusPage
    let hits = ResponseHeadCache()
    let playlists = PlaylistRegistry()
    let sessions: PlayingSessions
    let answered = AnsweredItems()
    /// Set as soon as the server listens; nobody can connect before.
    let address = SetOnce<ProxyAddress>()

    init(cache: MediaCache, settings: ProxySettings, token: String) {
        self.cache = cache
        self.settings = settings
        self.token = token
        sessions = PlayingSessions(time: settings.timeSource)
        page = StatusPage(cache: cache, time: settings.timeSource)
    }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        // A client may be that quick.
        guard let address = address.value else { return }
        // A redirect, or a name for this machine, has led back.
        let isLoop = settings.pseudonym.isNamed(in: request.value("via"))
        let route = PlayerRoute(
            method: request.method ?? .trace,
            target: request.target,
            host: request.value("host"),
            address: address
        )
        do {
            switch route {
            case .media where isLoop:
                try await writer.send(.text(PlayerRoute.Refusal.loop.rawValue))
            case .media(let target):
                await answer(request, target, writer)
            case .refused(let refusal):
                try await writer.send(.text(refusal.rawValue))
            case .redirectToBase:
                var answer = WholeAnswer.text(308)
                answer.head.fields[.location] = address.base
                try await writer.send(answer)
            case .statusPage:
                try await writer.send(await page.answer(base: address.base))
            case .metrics:
                try await writer.send(await page.metrics())
            case .form(let action):
                let form = try await PageForm.read(body)
                try await writer.send(try await page.perform(action, form, base: address.base))
            }
        } catch let error as CacheError {
            settings.logger.warning("page failed", metadata: ["error": "\(error)"])
            await fail(writer)
        } catch {
            // The client has left before it had the answer; there is nobody to tell.
            settings.logger.debug("client left", metadata: ["error": "\(error)"])
        }
    }

    /// Tells that the disk could not be asked.
    private func fail(_ writer: ResponseWriter) async {
        do {
            try await writer.send(.text(500))
        } catch {
            // The client has left; the log has it.
        }
    }

    /// Answers with a representation; goes on for a moment when the client leaves.
    ///
    /// Players drop a connection to open the next one at the following byte: what runs for them is
    /// kept that long.
    private func answer(
        _ request: ServerRequest,
        _ target: TargetURI,
        _ writer: ResponseWriter
    ) async {
        let exchange = MediaExchange(
            request,
            target,
            cache: cache,
            settings: settings,
            prefix: "/\(token)/",
            playlists: playlists,
            sessions: sessions,
            answered: answered,
            writer: writer
        )
        await lingering(exchange.start) { try await exchange.run() }
    }

    /// Does the work of an answer, and goes on with it for a moment when the client leaves.
    ///
    /// Only before its first byte: what brings the bytes of an answer that has begun lingers by
    /// itself (``CacheReader``), and both together would be longer than anybody waits.
    func lingering(
        _ start: AnswerStart,
        _ body: @escaping @Sendable () async throws -> Void
    ) async {
        let settings = settings
        let work = Task {
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
                        // Cancelled only where the server stops: then at once.
                    }
                }
                work.cancel()
            }
        }
    }
}

extension WholeAnswer {
    /// A status with its phrase as a text.
    static func text(_ status: Int) -> WholeAnswer {
        let text = "\(status) \(HTTPResponseStatus(statusCode: status).reasonPhrase)\n"
        return WholeAnswer(
            head: ResponseHead(
                status: status,
                fields: [.contentType: "text/plain; charset=utf-8"],
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }
}
