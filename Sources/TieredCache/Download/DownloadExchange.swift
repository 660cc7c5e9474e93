import HTTPCaching
import HTTPTypes

/// One exchange: sends the request, hands the head on, pulls the body into the sink.
struct DownloadExchange: Sendable {
    let transport: any Transport
    let time: any TimeSource
    let watchdog: DownloadWatchdog
    let request: DownloadRequest

    /// What an exchange leaves behind.
    struct Result<Sink: DownloadSink>: Sendable {
        var run: DownloadRun<Sink>
        var action: Swift.Result<DownloadStateMachine.Action, CacheError>
    }

    func perform<Sink: DownloadSink>(_ run: DownloadRun<Sink>) async -> Result<Sink> {
        var run = run
        do throws(CacheError) {
            let action = try await perform(&run)
            return Result(run: run, action: .success(action))
        } catch {
            return Result(run: run, action: .failure(error))
        }
    }

    private func perform(
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        let requestTime = time.wallTime()
        run.requests += 1
        let response: TransportResponse
        watchdog.arm()
        do {
            response = try await transport.send(transportRequest(run.machine.plan))
        } catch {
            return didFail(error, &run)
        }
        watchdog.disarm()
        defer { response.body.cancel() }
        let responseTime = time.wallTime()
        let sink = run.sink
        let action = run.machine.didReceiveHead(response.head, at: responseTime) {
            sink.canReplaceGeneration()
        }
        guard case .receive(let kind) = action else {
            await drain(response.body, response.head)
            return action
        }
        run.didBegin(kind)
        try await sink.didReceiveHead(
            DownloadHead(
                response: response.head,
                kind: kind,
                finalTarget: run.machine.finalTarget,
                requestTime: requestTime,
                responseTime: responseTime
            )
        )
        guard kind != .notModified else {
            await drain(response.body, response.head)
            return .finish(.notModified)
        }
        guard case .newGeneration(let start) = kind, start.coding != .identity else {
            return try await receive(response.body, &run)
        }
        return try await receive(response.body, coding: start.coding, &run)
    }

    private func transportRequest(_ plan: DownloadPlan) -> TransportRequest {
        var outgoing = TransportRequest(
            head: request.head,
            body: request.body,
            upload: plan.upload,
            connectTimeout: plan.policy.connectTimeout
        )
        outgoing.onInterim = plan.relay?.onInterim
        return outgoing
    }

    private func receive(
        _ body: any TransportBody,
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        while true {
            let chunk: BodyChunk?
            watchdog.arm()
            do {
                chunk = try await body.next()
            } catch {
                return didFail(error, &run)
            }
            let now = watchdog.disarm()
            guard let chunk else { return run.machine.didEndBody() }
            if let end = try await take(chunk, now, &run) { return end }
        }
    }

    /// Decodes on the way; offsets then count what comes out.
    private func receive(
        _ body: any TransportBody,
        coding: ContentCoding,
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        let inflater = Inflater(coding)
        while true {
            let chunk: BodyChunk?
            watchdog.arm()
            do {
                chunk = try await body.next()
            } catch {
                return didFail(error, &run)
            }
            let now = watchdog.disarm()
            guard let chunk else {
                return inflater.isComplete
                    ? run.machine.didEndBody() : run.machine.didFailDecoding()
            }
            inflater.supply(chunk)
            while true {
                let output: [UInt8]?
                do {
                    output = try inflater.next()
                } catch {
                    return run.machine.didFailDecoding()
                }
                guard let output else { break }
                if let end = try await take(BodyChunk(output), now, &run) { return end }
            }
        }
    }

    /// Hands bytes to the sink; returns what ends the body early.
    private func take(
        _ chunk: BodyChunk,
        _ now: MonotonicTime,
        _ run: inout DownloadRun<some DownloadSink>
    ) async throws(CacheError) -> DownloadStateMachine.Action? {
        switch run.machine.didReceive(chunk.count) {
        case .write(let offset):
            try await run.sink.write(chunk, at: offset)
            run.didReceive(chunk.count, at: offset, now: now)
        case .instead(let action):
            return action
        }
        guard run.machine.isMidBody, run.sink.shouldStop(at: run.machine.position) else {
            return nil
        }
        return run.machine.didStop()
    }

    /// Reads a short body that nobody wants, so that the connection can be used again.
    ///
    /// Closing costs a handshake for the next request, which for a redirect or a 304 is the rule.
    private func drain(_ body: any TransportBody, _ head: HTTPResponse) async {
        let length = Int64(head.headerFields[.contentLength] ?? "") ?? 0
        guard length <= 16 << 10 else { return }
        watchdog.arm()
        defer { watchdog.disarm() }
        do {
            var pulls = 0
            while pulls < 4, try await body.next() != nil { pulls += 1 }
        } catch {
            // The connection is lost, and with it only what draining was to save.
            return
        }
    }

    private func didFail(
        _ error: TransportError,
        _ run: inout DownloadRun<some DownloadSink>
    ) -> DownloadStateMachine.Action {
        // The watchdog ends an exchange by cancelling it; that is no cancel of the caller's.
        error.kind == .cancelled && watchdog.hasFired
            ? run.machine.didTimeOut() : run.machine.didFail(error)
    }
}
