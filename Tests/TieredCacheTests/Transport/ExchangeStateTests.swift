#if HTTPClient
import HTTPTypes
import NIOCore
import Testing

@testable import TieredCache

@Suite("Exchange state", .timeLimit(.minutes(10)))
struct ExchangeStateTests {
    private func head(
        of state: ExchangeState
    ) async -> Exchange.HeadResult {
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
        state.didReceiveHead(response)
        _ = state.didEnd(error)
        #expect(await head(of: state) == .success(response))
        var failed = ExchangeState()
        _ = failed.didEnd(error)
        #expect(await head(of: failed) == .failure(error))
        var cancelled = ExchangeState()
        cancelled.didReceiveHead(response)
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
        state.didReceiveHead(HTTPResponse(status: .ok))
        state.didReceivePart(ByteBuffer(string: "first"))
        state.didReceivePart(ByteBuffer(string: "last"))
        _ = state.didEnd(nil)
        #expect(state.takePart()?.0 == .success(ByteBuffer(string: "first")))
        _ = state.cancel()
        #expect(state.takePart()?.0.failure?.kind == .cancelled)
    }

    @Test("A body that was read to its end stays complete when its exchange is cancelled")
    func cancelledAfterTheLastByte() {
        var state = ExchangeState()
        state.didReceiveHead(HTTPResponse(status: .ok))
        state.didReceivePart(ByteBuffer(string: "all"))
        _ = state.didEnd(nil)
        #expect(state.takePart()?.0 == .success(ByteBuffer(string: "all")))
        _ = state.cancel()
        #expect(state.takePart()?.0 == .success(nil))
    }

    @Test("A consumer that waits for the head is woken once for all that a read brings")
    func oneWakePerRead() async {
        let response = HTTPResponse(status: .ok)
        var state = ExchangeState()
        let head = await withCheckedContinuation { continuation in
            #expect(state.waitForHead(continuation) == nil)
            state.didReceiveHead(response)
            state.didReceivePart(ByteBuffer(string: "all"))
            #expect(state.isNextAtHand)
            state.didCompleteRead().perform()
        }
        #expect(head == .success(response))
        #expect(state.takePart()?.0 == .success(ByteBuffer(string: "all")))
        #expect(!state.isNextAtHand)
        #expect(state.didCompleteRead().part == nil)
    }

    @Test("A head and bytes that came in the read before a failure are handed out first")
    func bytesBeforeFailure() async {
        let response = HTTPResponse(status: .ok)
        var state = ExchangeState()
        let head = await withCheckedContinuation { continuation in
            #expect(state.waitForHead(continuation) == nil)
            state.didReceiveHead(response)
            state.didEnd(TransportError(.closedEarly, "cut")).perform()
        }
        #expect(head == .success(response))
        var streaming = ExchangeState()
        streaming.didReceiveHead(response)
        let part = await withCheckedContinuation { continuation in
            #expect(streaming.waitForPart(continuation) == nil)
            streaming.didReceivePart(ByteBuffer(string: "some"))
            streaming.didEnd(TransportError(.closedEarly, "cut")).perform()
        }
        #expect(part == .success(ByteBuffer(string: "some")))
        #expect(streaming.takePart()?.0.failure?.kind == .closedEarly)
    }

    @Test("A task that is cancelled does not take what has arrived for a body without bytes")
    func cancelledTask() async {
        let exchange = Exchange()
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
