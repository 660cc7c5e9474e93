import HTTPCaching
import HTTPTypes

/// One exchange: sends the request, hands the head to the sink, reads the body into the sink.
struct DownloadExchange: Sendable {
    let transport: any Transport
    let time: any TimeSource
    let watchdog: DownloadWatchdog
    let network: NetworkGate
    let request: DownloadRequest
    let observation: (any ExchangeObservation)?

    func perform(
        _ run: inout DownloadRun<some DownloadSink>
    ) async -> Result<DownloadStateMachine.Action, CacheError> {
        do throws(CacheError) {
            return .success(try await exchange(&run))
        } catch {
            return .failure(error)
        }
    }

    private func exchange(
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        let requestTime = time.wallTime()
        run.requests += 1
        let response: TransportResponse
        run.sink.willWait()
        watchdog.arm()
        do {
            response = try await transport.send(transportRequest(run.machine.plan))
        } catch {
            return didFail(error, run: &run)
        }
        watchdog.didReceiveHead(from: response.localAddress)
        observation?.didReceiveHead(status: response.head.status.code)
        network.didReceiveBytes()
        // Also after a regular end, where it does nothing: every way out must end the exchange.
        defer { response.body.cancel() }
        let responseTime = time.wallTime()
        let sink = run.sink
        let action = run.machine.didReceiveHead(
            response.head,
            at: responseTime,
            isFromMachine: response.isFromMachine,
            followedTo: response.owner?.target
        ) { sink.canReplaceGeneration() }
        let kind: DownloadHead.Kind?
        switch action {
        case .receive(let received): kind = received
        case .compare(let expected): kind = expected
        default:
            await drain(response.body, head: response.head)
            return action
        }
        run.head = kind.map { kind in
            DownloadHead(
                response: response.head,
                kind: kind,
                finalTarget: run.machine.finalTarget,
                hasCookies: request.head.headerFields.contains(.cookie),
                requestTime: requestTime,
                responseTime: responseTime,
                isStoredByOwner: response.owner?.generation != nil
            )
        }
        return try await receive(response, as: kind, run: &run)
    }

    private func receive(
        _ response: TransportResponse,
        as kind: DownloadHead.Kind?,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        if let kind { run.didBegin(kind) }
        run.throttle.didBeginResponse(time.monotonicTime())
        if let whole = response.whole, let end = try await take(whole: whole, as: kind, run: &run) {
            return end
        }
        // The sink does not learn of a head before its bytes have been compared.
        if !run.machine.isComparing { try await deliverHead(&run) }
        guard kind != .notModified else {
            if !response.body.isNextAtHand { run.sink.willWait() }
            await drain(response.body, head: response.head)
            return .finish(.notModified)
        }
        var inflater: Inflater?
        if case .newGeneration(let start) = kind, start.coding != .identity {
            inflater = Inflater(start.coding)
        }
        return try await receive(response.body, through: inflater, run: &run)
    }

    /// Hands over a body that has come with its head, unless more than its end is to be decided.
    private func take(
        whole body: BodyChunk,
        as kind: DownloadHead.Kind?,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action? {
        guard case .newGeneration(let start)? = kind, start.coding == .identity else { return nil }
        var machine = run.machine
        guard case .write(let offset) = machine.didReceive(body.count) else { return nil }
        let end = machine.didEndBody()
        guard case .finish = end, let head = run.head.take() else { return nil }
        try await run.sink.didReceive(head, whole: body, at: offset)
        run.machine = machine
        run.didReceive(body.count, at: offset, now: time.monotonicTime())
        return end
    }

    private func deliverHead(
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) {
        guard let head = run.head.take() else { return }
        try await run.sink.didReceiveHead(head)
    }

    private func transportRequest(_ plan: DownloadPlan) -> TransportRequest {
        var outgoing = TransportRequest(
            head: request.head,
            body: request.body,
            upload: plan.upload.map { watchdog.watching($0) },
            connectTimeout: plan.policy.connectTimeout
        )
        outgoing.onInterim = plan.relay?.onInterim
        outgoing.shared = plan.shared
        // What a redirect has led to would be another entry of the other cache.
        if request.target != plan.target, plan.shared?.failure == nil {
            outgoing.shared?.failure = .noAnswer
        }
        outgoing.onStart = { [watchdog] cancel in watchdog.attach(cancel) }
        outgoing.onOwner = { [watchdog] owner in watchdog.watch(owner) }
        return outgoing
    }

    /// Reads a body into the sink; where it is decoded, offsets count decoded bytes.
    private func receive(
        _ body: any TransportBody,
        through inflater: Inflater?,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        var held: BodyChunk?
        while true {
            let chunk: BodyChunk?
            let asked = watchdog.arm()
            if !body.isNextAtHand { run.sink.willWait() }
            do {
                chunk = try await body.next()
            } catch {
                return didFail(error, run: &run)
            }
            let now = watchdog.disarm()
            guard let chunk else {
                if let held, let end = try await take(held, now: now, run: &run) { return end }
                guard inflater?.isComplete ?? true else { return run.machine.didFailDecoding() }
                return run.machine.didEndBody()
            }
            // A transport of the application may give empty ones, which say nothing.
            guard chunk.count > 0 else { continue }
            if let inflater {
                inflater.supply(chunk)
                if let end = try await take(from: inflater, now: now, run: &run) { return end }
                continue
            }
            if let held, case .instead(let end) = run.machine.didReceive(held.count + chunk.count) {
                return end
            }
            guard !run.machine.mustBeHeld(chunk.count) else {
                held = chunk
                continue
            }
            if let end = try await take(chunk, now: now, run: &run) { return end }
            let waited = asked.duration(to: now)
            if let action = run.didMeasure(chunk.count, waited: waited, now: now) { return action }
        }
    }

    /// Hands over what can be decoded by now.
    private func take(
        from inflater: Inflater,
        now: MonotonicTime,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action? {
        while true {
            let output: [UInt8]?
            do {
                output = try inflater.next()
            } catch {
                return run.machine.didFailDecoding()
            }
            guard let output else { return nil }
            if let end = try await take(BodyChunk(output), now: now, run: &run) { return end }
        }
    }

    /// Hands bytes to the sink; returns an action that ends the body early.
    private func take(
        _ chunk: BodyChunk,
        now: MonotonicTime,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action? {
        switch run.machine.didReceive(chunk.count) {
        case .write(let offset):
            try await run.sink.write(chunk, at: offset)
            run.didReceive(chunk.count, at: offset, now: now)
        case .compare(let offset, let count):
            if let end = try await compare(chunk, count: count, at: offset, now: now, run: &run) {
                return end
            }
        case .instead(let action):
            return action
        }
        if network.isForbidden(
            run.machine.finalTarget,
            avoidingExpensive: run.machine.plan.policy.avoidsExpensiveNetworks
        ) {
            return run.machine.waitForNetwork("can be reached only over a metered network")
        }
        guard run.machine.isMidBody, run.sink.shouldStop(at: run.machine.position) else {
            return nil
        }
        return run.machine.didStop()
    }

    /// Compares repeated bytes with the stored ones; new bytes after them go to the sink (row 28).
    private func compare(
        _ chunk: BodyChunk,
        count: Int,
        at offset: Int64,
        now: MonotonicTime,
        run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action? {
        guard await run.sink.isStored(count, of: chunk, at: offset) else {
            return run.machine.didMismatch()
        }
        run.didReceive(count, at: offset, now: now)
        if !run.machine.isComparing { try await deliverHead(&run) }
        guard count < chunk.count else { return nil }
        let rest = BodyChunk(chunk.withUnsafeBytes { [UInt8]($0[count...]) })
        try await run.sink.write(rest, at: offset + Int64(count))
        run.didReceive(rest.count, at: offset + Int64(count), now: now)
        return nil
    }

    /// Reads a short body that is not needed, so that the connection can be reused.
    ///
    /// Closing would cost the next request a handshake; after a redirect or a 304 one usually
    /// follows.
    private func drain(_ body: any TransportBody, head: HTTPResponse) async {
        let length = Int64(head.headerFields[.contentLength] ?? "") ?? 0
        // About the initial window of TCP (RFC 6928), so that it has usually arrived already.
        guard length <= 16 << 10 else { return }
        watchdog.arm()
        defer { watchdog.disarm() }
        do {
            var pulls = 0
            while pulls < 4, try await body.next() != nil { pulls += 1 }
        } catch {
            // The connection is lost; only its reuse would have been of value.
            return
        }
    }

    private func didFail(
        _ error: TransportError,
        run: inout DownloadRun<some DownloadSink>
    ) -> DownloadStateMachine.Action {
        let isOffline = network.isOffline(for: run.machine.finalTarget)
        // The watchdog ends an exchange by cancelling it; the caller has not cancelled then.
        guard error.kind == .cancelled else {
            observation?.didFail(error, type: error.kind.rawValue)
            return run.machine.didFail(error, isOffline: isOffline)
        }
        switch watchdog.decision {
        case .silent:
            let failure = DownloadFailure.timedOut(after: run.machine.plan.policy.timeout)
                .error(for: run.machine.plan.target)
            observation?.didFail(failure, type: failure.code.description)
            return run.machine.didTimeOut(isOffline: isOffline)
        case .addressLost:
            observation?.didFail(error, type: "addressLost")
            return run.machine.didLoseAddress()
        case nil:
            observation?.didCancel()
            return run.machine.didFail(error)
        }
    }
}

extension TransportResponse {
    /// Whether it came over loopback, whatever the host name of the request.
    fileprivate var isFromMachine: Bool {
        guard let localAddress else { return false }
        return localAddress.hasPrefix("127.") || localAddress == "::1"
    }
}
