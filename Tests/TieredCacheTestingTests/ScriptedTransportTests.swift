import HTTPTypes
import Testing
import TieredCache
import TieredCacheTesting

@Suite("Scripted transport", .timeLimit(.minutes(10)))
struct ScriptedTransportTests {
    private let request = TransportRequest(
        head: HTTPRequest(method: .get, scheme: "http", authority: "a.example", path: "/")
    )

    @Test("Answers come in order, bytes are counted when pulled, requests are remembered")
    func order() async throws {
        let transport = ScriptedTransport([
            ScriptedResponse(status: 200, steps: [.bytes([1, 2]), .bytes([]), .bytes([3])]),
            ScriptedResponse(failure: .closedEarly),
        ])
        let body = try await transport.send(request).body
        #expect(transport.bytesPulled == 0)
        #expect(try await body.next()?.count == 2)
        #expect(transport.bytesPulled == 2)
        #expect(try await body.next()?.count == 1)
        #expect(try await body.next() == nil)
        for kind in [TransportError.Kind.closedEarly, .connect] {
            let error = await #expect(throws: TransportError.self) {
                _ = try await transport.send(request)
            }
            #expect(error?.kind == kind)
        }
        #expect(transport.requests.count == 3)
        await transport.shutdown()
        let error = await #expect(throws: TransportError.self) {
            _ = try await transport.send(request)
        }
        #expect(error?.kind == .shutDown)
    }

    @Test("A stalled body ends when it is cancelled, from outside or with its task")
    func stall() async throws {
        let transport = ScriptedTransport { _, _ in
            ScriptedResponse(status: 200, steps: [.stall])
        }
        let body = try await transport.send(request).body
        let pull = Task { try await body.next()?.count }
        body.cancel()
        let error = await #expect(throws: TransportError.self) { try await pull.value }
        #expect(error?.kind == .cancelled)
        let other = try await transport.send(request).body
        let task = Task { try await other.next()?.count }
        task.cancel()
        let second = await #expect(throws: TransportError.self) { try await task.value }
        #expect(second?.kind == .cancelled)
    }
}
