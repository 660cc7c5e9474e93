import FoundationEssentials
import Testing

@testable import TieredCacheAgent

@Suite("Messages of clients", .timeLimit(.minutes(5)))
struct RPCMessageTests {
    private func message(_ text: String) -> RPCMessage { RPCMessage(Array(text.utf8)) }

    private func error(of text: String) throws -> RPCError {
        guard case .one(.failure(let refusal)) = message(text) else {
            throw CancellationError()
        }
        return refusal.error
    }

    @Test("A call has its method, its parameters and its secret")
    func call() throws {
        let text = #"{"jsonrpc":"2.0","id":7,"method":"m","params":["token:s","token:t",1]}"#
        guard case .one(.success(let call)) = message(text) else {
            Issue.record("no call")
            return
        }
        #expect(call.id == 7 && call.method == "m" && call.token == "s")
        #expect(call.parameters.values == ["token:t", 1])
    }

    @Test("The errors are those of aria2")
    func errors() throws {
        #expect(try error(of: "{") == .parse)
        #expect(try error(of: "7") == .parse)
        #expect(try error(of: #"{"method":"m"}"#) == .invalidRequest)
        #expect(try error(of: #"{"id":1}"#) == .invalidRequest)
        #expect(try error(of: #"{"id":1,"method":3}"#) == .invalidRequest)
        #expect(try error(of: #"{"id":1,"method":"m","params":{}}"#) == .invalidParams)
        #expect(RPCError.parse.status == 500 && RPCError("x").status == 400)
    }

    @Test("In a batch what is no object has no answer")
    func batch() {
        guard case .batch(let calls) = message(#"[{"id":1,"method":"m"},3,{"id":2}]"#) else {
            Issue.record("no batch")
            return
        }
        #expect(calls.count == 2)
        #expect(message("[]") == .batch([]))
    }

    @Test("A batch is bounded")
    func longBatch() throws {
        let count = RPCMessage.maximumCalls + 1
        let calls = Array(repeating: #"{"id":1,"method":"m"}"#, count: count)
        #expect(try error(of: "[\(calls.joined(separator: ","))]") == .tooManyCalls)
    }

    @Test("The query of a GET is a call, and names a function for the answer")
    func query() throws {
        let parameters = Data(#"["token:s",1]"#.utf8).base64EncodedString()
        let escaped = parameters.split(separator: "=").joined() + "%3D%3D"
        let query = RPCQuery("method=m&id=f%6fo&params=\(escaped)&jsoncallback=a.b_1$")
        #expect(query.callback == "a.b_1$")
        let wanted = RPCCall(id: "foo", method: "m", parameters: ["token:s", 1])
        let isWhole = parameters.hasSuffix("==")
        #expect(!isWhole || query.message == .one(.success(wanted)))
        #expect(RPCQuery("method=m&id=1&jsoncallback=alert(1)").callback == nil)
        #expect(RPCQuery("").message == .one(.failure(.init(id: .null, error: .invalidRequest))))
        #expect(
            RPCQuery("method=m&id=1&params=%%%").message
                == .one(.failure(.init(id: .null, error: .parse)))
        )
    }

    @Test("Escapes are decoded, and what is none stays")
    func escapes() {
        #expect("a%20b%2Fc%".percentDecoded == "a b/c%")
        #expect("%+1%zz%4".percentDecoded == "%+1%zz%4")
    }
}
