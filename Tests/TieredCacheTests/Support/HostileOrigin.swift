import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCacheTesting

@testable import TieredCache

/// An origin that redirects, cuts, changes and lies by script, but sends for each offset that it
/// names the byte that one of its representations has there.
///
/// So whatever it claims, delivered bytes can be told to be right. Two paths have representations
/// of their own with the same entity tags: only where they were found tells them apart.
final class HostileOrigin: Sendable {
    static let url = "http://origin.example/latest"
    /// What another client is relayed to, which has to follow redirects itself.
    static let relayedURL = "http://origin.example/film0"

    /// One way to answer.
    private enum Manner: CaseIterable {
        case honest, faithful, cut, short, lie, far, status, ignoringRange, otherTotal
    }

    private struct State {
        var script: EngineScript
        var path = 0
        var version = 0
        var isHonest = false
        var answers = 0
    }

    private static let paths = 2
    private static let versions = 2
    private let length: Int64
    private let state: Guarded<State>

    init(_ script: inout EngineScript) {
        length = script.choose([0, 1, 1000, 65_535, 65_536, 65_537, 131_073, 200_000])
        let seed = (0..<64).map { _ in script.next() }
        state = Guarded(State(script: EngineScript(seed)))
    }

    /// From now on the present representation is served by the rules, where it is.
    func becomeHonest() { state.withLock { $0.isHonest = true } }

    /// The present representation.
    var whole: Data {
        let (path, version) = state.withLock { ($0.path, $0.version) }
        return Data(Self.bytes(path, version, 0..<length))
    }

    /// Whether bytes delivered from an offset on are those of one representation.
    func explains(_ bytes: Data, at start: Int64) -> Bool {
        let (end, overflow) = start.addingReportingOverflow(Int64(bytes.count))
        guard !overflow else { return false }
        return (0..<Self.paths).contains { path in
            (0..<Self.versions).contains { version in
                bytes.elementsEqual(Self.bytes(path, version, start..<end))
            }
        }
    }

    // MARK: Answering

    func answer(_ request: TransportRequest) -> ScriptedResponse {
        let (manner, script, path, version) = state.withLock { state in
            state.answers += 1
            // Whatever it does, it comes to an end.
            if state.answers > 200 { state.isHonest = true }
            guard !state.isHonest else {
                return (Manner.honest, state.script, state.path, state.version)
            }
            if state.script.next() % 8 == 0 { state.path = (state.path + 1) % Self.paths }
            if state.script.next() % 16 == 0 { state.version = (state.version + 1) % Self.versions }
            let manner = state.script.choose(Manner.allCases)
            return (manner, state.script, state.path, state.version)
        }
        guard request.head.path?.hasPrefix("/film") == true else {
            // The query rotates, as a signature does.
            let location = "/film\(path)?sig=\(state.withLock { $0.answers })"
            return ScriptedResponse(status: 302, fields: [.location: location])
        }
        let asked = request.head.path?.hasPrefix("/film1") == true ? 1 : 0
        return answer(request, manner, script, asked, version)
    }

    private func answer(
        _ request: TransportRequest,
        _ manner: Manner,
        _ script: EngineScript,
        _ path: Int,
        _ version: Int
    ) -> ScriptedResponse {
        var script = script
        let place = Place(path: path, version: version, length: length)
        let fields = request.head.headerFields
        var spec = fields[.range].flatMap { RangeRequest($0)?.specs.first }
        if let condition = fields[.ifRange], condition != place.tag { spec = nil }
        if let condition = fields[.ifMatch], condition != place.tag {
            return ScriptedResponse(status: 412)
        }
        if fields[.ifNoneMatch] == place.tag {
            return ScriptedResponse(status: 304, fields: place.fields)
        }
        switch manner {
        case .honest, .faithful: return place.answer(spec)
        case .cut: return place.answer(spec, cutAfter: Int(script.next()) * 300)
        case .ignoringRange: return place.answer(nil)
        case .short: return place.part(spec, count: Int64(script.next()) * 300 + 1)
        case .otherTotal: return place.part(spec, total: script.offset())
        case .status:
            let status = script.choose([204, 206, 304, 404, 412, 416, 503])
            return ScriptedResponse(status: status, fields: place.fields)
        case .far, .lie:
            let start = script.offset()
            let count = manner == .far ? 8 : Int64(script.next()) * 300
            let total = script.choose(["*", "\(script.offset())", "\(length)", ""])
            return place.claim(
                start,
                count: count,
                last: script.next() % 4 == 0 ? script.offset() : nil,
                total: total,
                contentLength: script.next() % 4 == 0 ? script.offset() : nil
            )
        }
    }

    /// A byte is its offset, mixed with where it is found.
    fileprivate static func bytes(_ path: Int, _ version: Int, _ range: Range<Int64>) -> [UInt8] {
        let number = path * versions + version
        guard range.upperBound > near else {
            return Array(nearBytes[number][Int(range.lowerBound)..<Int(range.upperBound)])
        }
        return range.map { byte(number, $0) }
    }

    private static func byte(_ number: Int, _ offset: Int64) -> UInt8 {
        let salt = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
        let word = (UInt64(offset) ^ salt) &* 0xD6E8_FEB8_6659_FD93
        return UInt8(truncatingIfNeeded: word >> 40)
    }

    /// Nearly all bytes are among these, which a build for debugging is slow to make.
    private static let near: Int64 = 300_000
    private static let nearBytes = (0..<paths * versions).map { number in
        (0..<near).map { byte(number, $0) }
    }

    /// One representation at one path.
    private struct Place {
        let path: Int
        let version: Int
        let length: Int64

        var tag: String { "\"v\(version)\"" }

        var fields: HTTPFields {
            [.eTag: tag, .cacheControl: "max-age=\(version * 60)"]
        }

        /// By the rules of RFC 9110.
        func answer(_ spec: ByteRangeSpec?, cutAfter: Int? = nil) -> ScriptedResponse {
            guard let spec else {
                var fields = fields
                fields[.contentLength] = "\(length)"
                let steps = steps(0..<length, cutAfter)
                return ScriptedResponse(status: 200, fields: fields, steps: steps)
            }
            guard let range = spec.resolved(completeLength: length) else {
                let fields: HTTPFields = [.contentRange: "bytes */\(length)"]
                return ScriptedResponse(status: 416, fields: fields)
            }
            return part(range, "\(length)", cutAfter)
        }

        func part(
            _ spec: ByteRangeSpec?,
            count: Int64 = .max,
            total: Int64? = nil
        ) -> ScriptedResponse {
            guard let range = spec?.resolved(completeLength: length) else { return answer(spec) }
            let end = min(range.upperBound, range.lowerBound.clampedSum(count))
            return part(range.lowerBound..<end, "\(total ?? length)", nil)
        }

        private func part(
            _ range: Range<Int64>,
            _ total: String,
            _ cutAfter: Int?
        ) -> ScriptedResponse {
            var fields = fields
            fields[.contentLength] = "\(range.count)"
            fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
            return ScriptedResponse(status: 206, fields: fields, steps: steps(range, cutAfter))
        }

        /// The right bytes from an offset on, with whatever is said of them.
        func claim(
            _ start: Int64,
            count: Int64,
            last: Int64?,
            total: String,
            contentLength: Int64?
        ) -> ScriptedResponse {
            let (end, overflow) = start.addingReportingOverflow(count)
            let range = start..<(overflow ? start : end)
            var fields = fields
            fields[.contentRange] = "bytes \(start)-\(last ?? range.upperBound - 1)/\(total)"
            fields[.contentLength] = "\(contentLength ?? Int64(range.count))"
            return ScriptedResponse(status: 206, fields: fields, steps: steps(range, nil))
        }

        private func steps(_ range: Range<Int64>, _ cutAfter: Int?) -> [ScriptedResponse.Step] {
            let bytes = HostileOrigin.bytes(path, version, range)
            guard let cutAfter, cutAfter < bytes.count else { return [.bytes(bytes)] }
            return [
                .bytes(Array(bytes[..<cutAfter])),
                .fail(TransportError(.closedEarly, "scripted")),
            ]
        }
    }
}
