#if HTTPClient
import HTTPTypes
import NIOCore
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

    @Test("A complete body whose bytes were given up does not end as if all had been read")
    func cancelledBeforeTheLastBytes() {
        var state = ExchangeState()
        _ = state.didReceiveHead(HTTPResponse(status: .ok))
        _ = state.didReceivePart(ByteBuffer(string: "first"))
        _ = state.didReceivePart(ByteBuffer(string: "last"))
        _ = state.didEnd(nil)
        #expect(state.takePart()?.0 == .success(ByteBuffer(string: "first")))
        _ = state.cancel()
        #expect(state.takePart()?.0.failure?.kind == .cancelled)
    }

    @Test("A body that was read to its end stays complete when its exchange is cancelled")
    func cancelledAfterTheLastByte() {
        var state = ExchangeState()
        _ = state.didReceiveHead(HTTPResponse(status: .ok))
        _ = state.didReceivePart(ByteBuffer(string: "all"))
        _ = state.didEnd(nil)
        #expect(state.takePart()?.0 == .success(ByteBuffer(string: "all")))
        _ = state.cancel()
        #expect(state.takePart()?.0 == .success(nil))
    }

    @Test("A task that is cancelled does not take what has arrived for a body without bytes")
    func cancelledTask() async {
        let exchange = AsyncHTTPClientExchange()
        exchange.didReceive(HTTPResponse(status: .ok))
        exchange.didReceive(ByteBuffer(string: "bytes"))
        exchange.didReceiveEnd()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(TransportError) {
                return Result<ByteBuffer?, TransportError>.success(try await exchange.nextPart())
            } catch {
                return .failure(error)
            }
        }
        #expect(await task.value.failure?.kind == .cancelled)
    }
}

extension Result {
    fileprivate var failure: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
#endif
