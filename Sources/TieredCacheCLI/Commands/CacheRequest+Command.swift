import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

extension CacheRequest {
    /// Creates the request of `get`.
    ///
    /// - Throws: `.invalidURL`; ``CommandFailure`` for an invalid method.
    init(_ command: GetCommand) throws {
        guard let method = HTTPRequest.Method(command.effectiveMethod) else {
            throw CommandFailure(.usage, message: "'\(command.effectiveMethod)' is not a method")
        }
        try self.init(command.url, key: command.key, method: method)
        for field in command.header.fields { fields.append(field) }
        body = command.data.map { Data($0.utf8) }
        policy = command.policy.policy
        range = command.range?.spec
        options.set(.pinned, to: command.pin)
    }
}

extension PolicyArgument {
    /// The policy of the engine.
    var policy: CachePolicy {
        switch self {
        case .default: .protocolDefault
        case .reload: .reload
        case .cacheElseLoad: .cacheElseLoad
        case .cacheOnly: .cacheOnly
        }
    }
}

extension RangeArgument {
    /// The half-open range of the engine.
    var spec: ByteRangeSpec {
        switch self {
        // No body has a byte at the largest offset of the type.
        case .bounded(let first, let last): .bounded(min(first, .max - 1)..<min(last, .max - 1) + 1)
        case .from(let first): .openEnded(from: first)
        case .last(let count): .suffix(count)
        }
    }
}
