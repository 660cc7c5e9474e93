import FoundationEssentials

/// What a client sends at once: one call, or several in an array.
package enum RPCMessage: Hashable, Sendable {
    /// The most calls of one message, those within `system.multicall` included.
    package static let maximumCalls = 1024

    case one(Result<RPCCall, RPCCall.Refusal>)
    case batch([Result<RPCCall, RPCCall.Refusal>])

    /// Reads the bytes of a message; what is no message is one call that is refused.
    package init(_ bytes: [UInt8]) {
        do throws(JSONReader.Failure) {
            self.init(try JSONReader.value(of: bytes))
        } catch {
            self = .one(.failure(RPCCall.Refusal(id: .null, error: .parse)))
        }
    }

    init(_ value: JSONValue) {
        switch value {
        case .object:
            self = .one(Self.call(value))
        case .array(let members):
            // What is no object gets no answer.
            let calls = members.filter { $0.object != nil }.map(Self.call)
            guard calls.count <= Self.maximumCalls else {
                self = .one(.failure(RPCCall.Refusal(id: .null, error: .tooManyCalls)))
                return
            }
            self = .batch(calls)
        default:
            self = .one(.failure(RPCCall.Refusal(id: .null, error: .parse)))
        }
    }

    private static func call(_ value: JSONValue) -> Result<RPCCall, RPCCall.Refusal> {
        do throws(RPCCall.Refusal) {
            return .success(try RPCCall.read(value))
        } catch {
            return .failure(error)
        }
    }
}

extension RPCError {
    static let tooManyCalls = RPCError(
        "A message has at most \(RPCMessage.maximumCalls) calls; send several."
    )
}

/// A message in the query of a GET (`method`, `id`, `params` in Base64, `jsoncallback`).
package struct RPCQuery: Hashable, Sendable {
    /// The message.
    package let message: RPCMessage
    /// The name of the function that the answer calls (JSONP); nil for none.
    package let callback: String?

    /// Reads the query of a request target, without the question mark.
    package init(_ query: Substring) {
        var fields: [Substring: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            fields[parts[0]] = parts.count > 1 ? String(parts[1]).percentDecoded : ""
        }
        // A name of JavaScript and nothing else: the text is a program there.
        callback = fields["jsoncallback"].flatMap { $0.isFunctionName ? $0 : nil }
        var parameters: JSONValue?
        if let text = fields["params"] {
            guard let bytes = Data(base64Encoded: text) else {
                message = .one(.failure(RPCCall.Refusal(id: .null, error: .parse)))
                return
            }
            do throws(JSONReader.Failure) {
                parameters = try JSONReader.value(of: [UInt8](bytes))
            } catch {
                message = .one(.failure(RPCCall.Refusal(id: .null, error: .parse)))
                return
            }
        }
        guard let method = fields["method"], !method.isEmpty else {
            // Without a method the parameters are a batch.
            message = RPCMessage(parameters ?? .object([:]))
            return
        }
        var call: [String: JSONValue] = ["method": .string(method)]
        call["id"] = fields["id"].map { .string($0) }
        call["params"] = parameters
        message = RPCMessage(.object(call))
    }
}

extension String {
    /// The text with escapes such as `%20` decoded; what is no escape stays.
    var percentDecoded: String {
        var bytes: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).map { Character(Unicode.Scalar($0)).hexDigitValue }
            if byte == UInt8(ascii: "%"), digits.count == 2, let high = digits[0],
                let low = digits[1]
            {
                bytes.append(UInt8(high << 4 | low))
                rest.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    fileprivate var isFunctionName: Bool {
        !isEmpty && utf8.count <= 128
            && utf8.allSatisfy { byte in
                let letter = byte | 0x20
                return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
                    || byte == UInt8(ascii: ".")
            }
    }
}
