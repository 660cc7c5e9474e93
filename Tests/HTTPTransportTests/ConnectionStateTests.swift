import HTTPTypes
import NIOCore
import NIOSSL
import Testing

@testable import HTTPTransport

/// The decisions of a connection.
@Suite("Connection state", .timeLimit(.minutes(10)))
struct ConnectionStateTests {
    private static func head(_ text: String = "HTTP/1.1 200 OK\r\n") throws -> ResponseHead {
        var parser = ResponseParser()
        parser.begin(.head)
        parser.add(ByteBuffer(string: text + "\r\n"))
        guard case .head(let head)? = try parser.next() else { throw ConnectionClosed() }
        return head
    }

    /// A connection on which a request was sent, or only begun.
    private static func exchanging(isAlone: Bool = false, isSent: Bool = true) -> ConnectionState {
        var state = ConnectionState()
        #expect(state.begin(isAlone: isAlone) == true)
        if isSent { state.didSendRequest() }
        return state
    }

    private static func end(of state: ConnectionState) throws -> ConnectionState.EndAction? {
        var state = state
        state.didReceive(try head())
        state.didReceiveEnd()
        return state.didCompleteRead()
    }

    @Test("A connection is kept where both sides want that, and the request is out")
    func kept() throws {
        #expect(try Self.end(of: Self.exchanging()) == .keep)
        #expect(try Self.end(of: Self.exchanging(isAlone: true)) == .close)
        #expect(try Self.end(of: Self.exchanging(isSent: false)) == .close)
        for text in ["HTTP/1.0 200 OK\r\n", "HTTP/1.1 101 Switching Protocols\r\n"] {
            var state = Self.exchanging()
            state.didReceive(try Self.head(text))
            state.didReceiveEnd()
            #expect(state.didCompleteRead() == .close)
        }
    }

    @Test("One exchange at a time, and none after a failure")
    func begin() {
        var state = Self.exchanging()
        let isSecond = state.begin(isAlone: false)
        #expect(!isSecond)
        var failed = ConnectionState()
        #expect(failed.didFail(ConnectionClosed()) == true)
        let isAfter = failed.begin(isAlone: false)
        #expect(!isAfter)
    }

    @Test("A close fails an exchange that has not ended, with what went wrong before")
    func closed() throws {
        var idle = ConnectionState()
        #expect(idle.didClose() == .none)
        var cut = Self.exchanging()
        #expect(cut.didClose() == .fail(ExchangeError(ConnectionClosed(), afterHead: false)))
        var broken = Self.exchanging()
        #expect(broken.didFail(ChannelError.connectPending) == true)
        broken.didReceiveEnd()
        #expect(broken.didCompleteRead() == nil)
        let error = ExchangeError(ChannelError.connectPending, afterHead: false)
        #expect(broken.didClose() == .fail(error))
        var ended = Self.exchanging()
        ended.didReceive(try Self.head())
        ended.didReceiveEnd()
        #expect(ended.didClose() == .none)
    }

    @Test("What a kept connection ends without a byte for is sent again, and nothing else")
    func again() throws {
        var kept = Self.exchanging()
        kept.didReceiveBytes()
        kept.didReceive(try Self.head())
        kept.didReceiveEnd()
        #expect(kept.didCompleteRead() == .keep)
        let hasBegun = kept.begin(isAlone: false)
        #expect(hasBegun)
        var begun = kept
        begun.didReceiveBytes()
        #expect(kept.didClose() == .startAgain)
        #expect(kept.didClose() == .none)
        #expect(begun.didClose() == .fail(ExchangeError(ConnectionClosed(), afterHead: false)))
    }
}
