import HTTPCaching
import HTTPTypes
import Instrumentation
import TieredCache
import Tracing

/// Makes spans and measurements of requests to origins.
struct RequestObserver: OriginObserver {
    let tracer: (any Tracer)?
    let durations: RequestDurations?

    func observe(_ reason: CacheStatus.ForwardReason) -> any TransferObservation {
        ObservedTransfer(
            tracer: tracer,
            durations: durations,
            parent: ServiceContext.current ?? .topLevel,
            reason: reason
        )
    }
}

extension RequestObserver {
    func continueTrace(of fields: HTTPFields, in body: @Sendable () async -> Void) async {
        guard let tracer else { return await body() }
        var context = ServiceContext.current ?? .topLevel
        // W3C Trace Context §3.2: the tracer ignores a header that is not valid.
        tracer.extract(fields, into: &context, using: FieldExtractor())
        await ServiceContext.withValue(context) { await body() }
    }
}

/// The requests of one transfer, one after the other; each has a span.
final class ObservedTransfer: TransferObservation {
    private struct State {
        /// The span of the request that is under way.
        var span: (any Span)?
        /// The contexts of the other requests that wait for the transfer, each once.
        var joined: [ServiceContext] = []
        /// The contexts in ``joined``, as a tracer writes them: contexts cannot be compared.
        var names: Set<HTTPFields> = []
        var requests = 0
    }

    /// The most links of a span: OpenTelemetry's limit (`OTEL_SPAN_LINK_COUNT_LIMIT`).
    private static let maximumLinks = 128

    /// Any other method is reported as `_OTHER`, as OpenTelemetry does: each makes a timer.
    private static let knownMethods: Set<HTTPRequest.Method> = [
        .get, .head, .post, .put, .delete, .connect, .options, .trace, .patch,
    ]

    private let tracer: (any Tracer)?
    private let durations: RequestDurations?
    private let parent: ServiceContext
    private let reason: CacheStatus.ForwardReason
    private let state = Guarded(State())

    init(
        tracer: (any Tracer)?,
        durations: RequestDurations?,
        parent: ServiceContext,
        reason: CacheStatus.ForwardReason
    ) {
        self.tracer = tracer
        self.durations = durations
        self.parent = parent
        self.reason = reason
    }

    func didJoin() {
        guard tracer != nil, let context = ServiceContext.current else { return }
        // Without a name it has no span, so that there is nothing to link; and one request may
        // join a transfer many times, with each of its readers and segments.
        let name = name(of: context)
        guard !name.isEmpty, name != self.name(of: parent) else { return }
        let span = state.withLock { state -> (any Span)? in
            guard state.names.count < Self.maximumLinks, state.names.insert(name).inserted else {
                return nil
            }
            state.joined.append(context)
            return state.span
        }
        span?.addLink(SpanLink(context: context, attributes: [:]))
    }

    /// A context as the tracer writes it into a request; empty without a span.
    private func name(of context: ServiceContext) -> HTTPFields {
        var fields = HTTPFields()
        tracer?.inject(context, into: &fields, using: FieldInjector())
        return fields
    }

    func begin(_ request: inout HTTPRequest, to target: TargetURI) -> any ExchangeObservation {
        let method = Self.knownMethods.contains(request.method) ? request.method.rawValue : "_OTHER"
        let span = tracer?.startSpan(method, context: parent, ofKind: .client)
        let (number, joined) = state.withLock { state in
            defer { state.requests += 1 }
            state.span = span
            return (state.requests, state.joined)
        }
        if let span {
            span.updateAttributes { attributes in
                attributes["http.request.method"] = method
                attributes["url.full"] = target.redacted
                attributes["tieredcache.forward_reason"] = reason.rawValue
                if number > 0 { attributes["http.request.resend_count"] = number }
            }
            for context in joined { span.addLink(SpanLink(context: context, attributes: [:])) }
            tracer?.inject(span.context, into: &request.headerFields, using: FieldInjector())
        }
        return ObservedExchange(
            span: span,
            measurement: durations?.begin(method: method),
            didEnd: { [self] in state.withLock { $0.span = nil } }
        )
    }
}

/// One request with its span and its measurement.
final class ObservedExchange: ExchangeObservation {
    private struct State {
        var status: Int?
        /// The kind of the first failure, or `cancelled`; later ones follow from it.
        var failure: String?
    }

    private let span: (any Span)?
    private let measurement: RequestDurations.Measurement?
    private let didEnd: @Sendable () -> Void
    private let state = Guarded(State())

    init(
        span: (any Span)?,
        measurement: RequestDurations.Measurement?,
        didEnd: @escaping @Sendable () -> Void
    ) {
        self.span = span
        self.measurement = measurement
        self.didEnd = didEnd
    }

    func didReceiveHead(status: Int) {
        state.withLock { $0.status = status }
        guard let span else { return }
        span.updateAttributes { $0["http.response.status_code"] = status }
        if status >= 400 { didFail(type: StatusName.of(status), in: span) }
    }

    func didFail(_ error: any Error, type: String) {
        guard isFirst(type), let span else { return }
        span.recordError(error)
        didFail(type: type, in: span)
    }

    func didCancel() {
        guard isFirst("cancelled") else { return }
        // No status: OpenTelemetry leaves it unset for what is no error.
        span?.updateAttributes { $0["tieredcache.cancelled"] = true }
    }

    private func isFirst(_ failure: String) -> Bool {
        state.withLock { state in
            guard state.failure == nil else { return false }
            state.failure = failure
            return true
        }
    }

    private func didFail(type: String, in span: any Span) {
        span.updateAttributes { $0["error.type"] = type }
        span.setStatus(SpanStatus(code: .error))
    }

    func end() {
        didEnd()
        let (status, failure) = state.withLock { ($0.status, $0.failure) }
        measurement?.end(result: failure ?? status.map(StatusName.of) ?? "none")
        span?.end()
    }
}

/// Reads the context of a span from the fields of a request.
private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { fields[$0] }
    }
}

/// Writes the context of a span into the fields of a request.
private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout HTTPFields) {
        // A name that is no field name comes from a tracer of another protocol.
        guard let name = HTTPField.Name(key) else { return }
        fields[name] = value
    }
}
