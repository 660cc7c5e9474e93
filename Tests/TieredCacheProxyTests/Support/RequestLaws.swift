import NIOCore
import NIOEmbedded
import NIOHTTP1

// In the fuzzer, whose module these are a part of, there is none.
#if canImport(TieredCacheProxy)
@testable import TieredCacheProxy
#endif

/// What holds for any bytes that a client sends: the guard and the parser behind it see the same
/// requests, and what reaches a handler can be read in one way.
enum RequestLaws {
    /// A law that does not hold, and where.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// What the guard has made of some bytes.
    struct Guarded: Equatable {
        /// The bytes of each whole request.
        var requests: [[UInt8]] = []
        /// What has been passed on of the one after them.
        var begun: [UInt8] = []
        var refusal: RequestRefusal?
    }

    /// Checks all laws.
    ///
    /// - Parameters:
    ///   - bytes: what the client sends.
    ///   - size: into pieces of how many bytes it is cut as well.
    /// - Throws: ``Broken``.
    static func check(_ bytes: [UInt8], pieces size: Int) throws {
        let whole = guarded(bytes, pieces: max(bytes.count, 1))
        let cut = guarded(bytes, pieces: size)
        guard whole.requests == cut.requests, whole.refusal == cut.refusal else {
            throw Broken(description: "in pieces of \(size) it is read otherwise")
        }
        try RequestReading(whole).check()
    }

    /// Passes bytes through the guard.
    static func guarded(_ bytes: [UInt8], pieces size: Int) -> Guarded {
        var subject = RequestGuard(limits: ServerLimits())
        var result = Guarded()
        var waiting: [UInt8] = []
        var input = bytes[...]
        while !input.isEmpty {
            waiting += input.prefix(size)
            input = input.dropFirst(size)
            do throws(RequestRefusal) {
                while try step(&subject, &waiting, &result) {}
            } catch {
                result.refusal = error
                break
            }
        }
        return result
    }

    /// One decision: whether it got further.
    private static func step(
        _ subject: inout RequestGuard,
        _ waiting: inout [UInt8],
        _ result: inout Guarded
    ) throws(RequestRefusal) -> Bool {
        switch try waiting.withUnsafeBytes({ subject.inspection(of: $0) }).get() {
        case .incomplete:
            return false
        case .drop(let count):
            waiting.removeFirst(count)
        case .pass(let count, let endsRequest):
            result.begun += waiting.prefix(count)
            waiting.removeFirst(count)
            guard endsRequest else { return true }
            result.requests.append(result.begun)
            result.begun = []
        }
        return true
    }
}

/// What the parser makes of the bytes that the guard has let through.
private struct RequestReading {
    private let guarded: RequestLaws.Guarded

    init(_ guarded: RequestLaws.Guarded) {
        self.guarded = guarded
    }

    /// Gives the parser one request after the other, the last byte of each by itself.
    func check() throws {
        let parser = RequestParser()
        defer { parser.close() }
        for request in guarded.requests {
            let bytes = RequestParser.ofKnownMethod(request)
            parser.feed(bytes.dropLast())
            guard parser.error == nil else { return }
            guard parser.ends == 0 else { throw Self.broken("ends early", request) }
            parser.feed(bytes.suffix(1))
            guard parser.error == nil else { return }
            guard parser.heads.count == 1, parser.ends == 1 else {
                throw Self.broken("is \(parser.heads.count) heads, \(parser.ends) ends", request)
            }
            try checkHead(parser.heads[0], request)
            guard !parser.isLast else { return }
            parser.beginNext()
        }
        parser.feed(RequestParser.ofKnownMethod(guarded.begun)[...])
        guard parser.error == nil, parser.ends == 0 else { return }
        for head in parser.heads { try checkHead(head, guarded.begun) }
    }

    private func checkHead(_ head: HTTPRequestHead, _ request: [UInt8]) throws {
        let fields = head.headers
        let lengths = fields["content-length"]
        // The parser leaves the white space behind a value.
        let codings = fields["transfer-encoding"].map { $0.prefix { $0 != " " && $0 != "\t" } }
        guard lengths.count + codings.count <= 1 else {
            throw Self.broken("is framed twice", request)
        }
        guard codings.allSatisfy({ $0.lowercased() == "chunked" }) else {
            throw Self.broken("has a coding", request)
        }
        let hosts = fields["host"].count
        guard hosts == 1 || hosts == 0 && head.version == .http1_0 else {
            throw Self.broken("has \(hosts) hosts", request)
        }
        for (name, value) in fields {
            guard !name.isEmpty, name.utf8.allSatisfy({ TokenCharacters.contains($0) }) else {
                throw Self.broken("has the field name \(name.debugDescription)", request)
            }
            guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw Self.broken("has the value \(value.debugDescription)", request)
            }
        }
        guard !head.uri.isEmpty, head.uri.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Self.broken("has the target \(head.uri.debugDescription)", request)
        }
        guard head.version == .http1_0 || head.version == .http1_1 else {
            throw Self.broken("has the version \(head.version)", request)
        }
    }

    private static func broken(_ what: String, _ request: [UInt8]) -> RequestLaws.Broken {
        RequestLaws.Broken(
            description: "\(String(decoding: request, as: UTF8.self).debugDescription) \(what)"
        )
    }
}
