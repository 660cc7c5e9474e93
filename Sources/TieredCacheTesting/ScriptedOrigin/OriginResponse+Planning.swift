import HTTPCaching
import HTTPTypes

extension OriginResponse {
    /// The response to `request` by RFC 9110, with the deviations of the script.
    static func plan(
        _ request: OriginRequest,
        resource: OriginResource,
        behaviour: OriginBehaviour,
        now: WallTime
    ) -> OriginResponse {
        var answer = OriginResponse(date: HTTPDate.format(now))
        answer.bytesPerSecond = behaviour.bytesPerSecond
        if behaviour.delay > .zero { answer.steps.append(.sleep(behaviour.delay)) }
        if let gate = behaviour.gate { answer.steps.append(.wait(gate)) }
        switch behaviour.response {
        case .none(let cut):
            answer.steps.append(.cut(cut))
        case .raw(let bytes):
            answer.steps += [.raw(bytes), .cut(.finish)]
        case .status(let status, let body):
            let draft = OriginDraft(status: status, source: .bytes(body), fields: [:])
            answer.add(draft, for: request, behaviour: behaviour)
        case .resource:
            answer.add(
                .of(resource, for: request, behaviour: behaviour),
                for: request,
                behaviour: behaviour
            )
        }
        return answer
    }

    /// The response to an unknown target.
    static func notFound(_ request: OriginRequest, now: WallTime) -> OriginResponse {
        plan(request, resource: .text(""), behaviour: .status(404), now: now)
    }

    private mutating func add(
        _ draft: OriginDraft,
        for request: OriginRequest,
        behaviour: OriginBehaviour
    ) {
        var draft = draft
        if draft.framing == .chunked, !request.isVersion11 { draft.framing = .close }
        closesConnection =
            behaviour.closesConnection || !request.keepsAlive
            || (draft.framing == .close && draft.mayHaveBody)
        status = draft.status
        source = draft.source
        isChunked = draft.framing == .chunked && draft.mayHaveBody
        for status in behaviour.interimStatuses {
            steps.append(.raw(Array("HTTP/1.1 \(status) Interim\r\n\r\n".utf8)))
        }
        steps.append(.head(draft.head(behaviour, closes: closesConnection, date: date)))
        guard request.method != "HEAD", draft.mayHaveBody else { return }
        addBody(draft.range, behaviour: behaviour)
    }

    private mutating func addBody(_ range: Range<Int64>, behaviour: OriginBehaviour) {
        var position = range.lowerBound
        for (offset, interruption) in behaviour.interruptions.sorted(by: { $0.offset < $1.offset })
        {
            let next = min(range.upperBound, range.lowerBound + max(0, offset))
            // If the body is shorter than the offset, the interruption does not happen.
            guard offset <= Int64(range.count) else { break }
            if next > position { steps.append(.body(position..<next)) }
            position = next
            steps.append(Self.step(for: interruption))
            if case .cut = interruption { return }
        }
        if range.upperBound > position { steps.append(.body(position..<range.upperBound)) }
        if isChunked { steps.append(.raw(Array("0\r\n\r\n".utf8))) }
    }

    private static func step(for interruption: OriginBehaviour.Interruption) -> Step {
        switch interruption {
        case .pause(let duration): .sleep(duration)
        case .wait(let gate): .wait(gate)
        case .stall: .stall
        case .cut(let cut): .cut(cut)
        case .changeVersion: .changeVersion
        }
    }
}
