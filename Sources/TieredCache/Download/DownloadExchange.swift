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
            response = try await transport.send(
                TransportRequest(
                    head: request.head,
                    body: request.body,
                    connectTimeout: run.machine.plan.policy.connectTimeout
                )
            )
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
        return try await receive(response.body, &run)
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
            switch run.machine.didReceive(chunk.count) {
            case .write(let offset):
                try await run.sink.write(chunk, at: offset)
                run.didReceive(chunk.count, at: offset, now: now)
            case .instead(let action):
                return action
            }
            if run.machine.isMidBody, run.sink.shouldStop(at: run.machine.position) {
                return run.machine.didStop()
            }
        }
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
