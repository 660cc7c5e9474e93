#if HTTPClient
import HTTPTypes
import Testing

@testable import TieredCache

@Suite("Exchange state", .timeLimit(.minutes(10)))
struct ExchangeStateTests {
    private func head(
        of state: ExchangeState
    ) async -> AsyncHTTPClientExchange.HeadResult {
        await withCheckedContinuation { continuation in
            var state = state
            let early = state.waitForHead(continuation)
            if let early { continuation.resume(returning: early) }
        }
    }

    @Test("A head that came before the body failed is not lost")
    func headBeforeFailure() async {
        let response = HTTPResponse(status: .ok)
        let error = TransportError(.closedEarly, "cut")
        var state = ExchangeState()
        _ = state.didReceiveHead(response)
        _ = state.didEnd(error)
        #expect(await head(of: state) == .success(response))
        var failed = ExchangeState()
        _ = failed.didEnd(error)
        #expect(await head(of: failed) == .failure(error))
        var cancelled = ExchangeState()
        _ = cancelled.didReceiveHead(response)
        _ = cancelled.cancel()
        guard case .failure(let reason) = await head(of: cancelled) else {
            Issue.record("a cancelled exchange has no head")
            return
        }
        #expect(reason.kind == .cancelled)
    }
}
#endif
