import HTTPCaching
import HTTPTypes

/// The bytes of a record; docs/jobs-format.md is normative.
extension JobRecord {
    // As PNG does (RFC 2083 §12.11): not text, not UTF-8, and damaged by conversion of line ends.
    static let magic: [UInt8] = [0x89, 0x54, 0x43, 0x6A, 0x6F, 0x62, 0x01, 0x0A]
    /// Larger records are neither written nor read, in bytes.
    static let maximumSize = 4 << 20

    var encoded: [UInt8] {
        var payload = ByteWriter()
        payload.write(id.number)
        payload.write(created.nanoseconds)
        payload.write(text: url)
        payload.write(optionalText: explicitKey)
        payload.write(text: method)
        payload.write(UInt8(priority.rawValue))
        payload.write(flags)
        payload.write(Int64(attempts))
        payload.write(bytesFromOrigin)
        payload.write(UInt32(clamping: fields.count))
        for field in fields {
            payload.write(text: field.name.rawName)
            payload.write(text: field.value)
        }
        if let body { payload.write(bytes: body) }
        payload.write(UInt8(clamping: digests.count))
        for digest in digests {
            payload.write(text: digest.algorithm.rawValue)
            payload.write(bytes: digest.bytes)
        }
        if !firstOriginFields.isEmpty {
            payload.write(UInt32(clamping: firstOriginFields.count))
            for name in firstOriginFields.map(\.rawName).sorted() { payload.write(text: name) }
        }
        encode(state, to: &payload)
        var head = ByteWriter()
        head.write(payload.bytes.withUnsafeBytes { checksumOf($0) })
        return Self.magic + head.bytes + payload.bytes
    }

    /// - Returns: nil for bytes that are no record of this version with a correct checksum.
    init?(encoded bytes: [UInt8]) {
        guard bytes.count > 16, bytes.count <= Self.maximumSize, bytes.starts(with: Self.magic)
        else { return nil }
        var head = ByteReader(bytes[8..<16])
        let payload = bytes[16...]
        guard head.read(UInt64.self) == payload.withUnsafeBytes({ checksumOf($0) }) else {
            return nil
        }
        var reader = ByteReader(payload)
        self.init(&reader)
    }

    private var flags: UInt8 {
        (isPinned ? 1 : 0) | (lacksCredentials ? 2 : 0) | (body == nil ? 0 : 4)
            | (avoidsExpensiveNetworks ? 8 : 0) | (firstOriginFields.isEmpty ? 0 : 16)
            | (lacksRuleFields ? 32 : 0)
    }

    private init?(_ reader: inout ByteReader) {
        guard let number = reader.read(UInt64.self), let created = reader.read(Int64.self),
            let url = reader.readText(), let explicitKey = reader.readOptionalText(),
            let method = reader.readText(),
            let priority = reader.read(UInt8.self).flatMap({ RequestPriority(rawValue: Int($0)) }),
            let flags = reader.read(UInt8.self), let attempts = reader.read(Int64.self),
            let bytes = reader.read(Int64.self), let fieldCount = reader.read(UInt32.self)
        else { return nil }
        self.init(
            id: DownloadID(number: number),
            created: WallTime(nanoseconds: created),
            url: url,
            method: method
        )
        self.explicitKey = explicitKey
        self.priority = priority
        isPinned = flags & 1 != 0
        lacksCredentials = flags & 2 != 0
        avoidsExpensiveNetworks = flags & 8 != 0
        lacksRuleFields = flags & 32 != 0
        // Both are counters that must not overflow later.
        self.attempts = Int(clamping: min(max(0, attempts), 1 << 32))
        bytesFromOrigin = min(max(0, bytes), ByteOffset.limit)
        for _ in 0..<fieldCount {
            guard let name = reader.readText().flatMap({ HTTPField.Name($0) }),
                let value = reader.readText()
            else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        if flags & 4 != 0 {
            guard let body = reader.readBytes() else { return nil }
            self.body = Array(body)
        }
        guard readDigests(&reader), flags & 16 == 0 || readFirstOriginFields(&reader),
            let state = Self.state(&reader), reader.isAtEnd
        else { return nil }
        self.state = state
    }

    private mutating func readFirstOriginFields(_ reader: inout ByteReader) -> Bool {
        guard let count = reader.read(UInt32.self) else { return false }
        for _ in 0..<count {
            guard let name = reader.readText().flatMap({ HTTPField.Name($0) }) else { return false }
            firstOriginFields.insert(name)
        }
        return true
    }

    private mutating func readDigests(_ reader: inout ByteReader) -> Bool {
        guard let count = reader.read(UInt8.self) else { return false }
        for _ in 0..<count {
            guard let name = reader.readText(), let bytes = reader.readBytes() else { return false }
            // An algorithm of a later version: it cannot be compared here.
            guard let algorithm = ContentDigest.Algorithm(rawValue: name),
                let digest = ContentDigest(algorithm, bytes: Array(bytes))
            else { continue }
            digests.append(digest)
        }
        return true
    }

    // MARK: State

    private func encode(_ state: DownloadState, to payload: inout ByteWriter) {
        payload.write(text: state.name)
        guard case .failed(let problem) = state else { return }
        payload.write(text: problem.code.description)
        payload.write(text: problem.message)
        payload.write(Int64(problem.status ?? 0))
    }

    private static func state(_ reader: inout ByteReader) -> DownloadState? {
        switch reader.readText() {
        // A run ends with its process.
        case "queued", "running": return .queued
        case "waitingForNetwork": return .waitingForNetwork
        case "paused": return .paused
        case "cancelled": return .cancelled
        case "finished": return .finished
        case "failed":
            guard let name = reader.readText(), let message = reader.readText(),
                let status = reader.read(Int64.self)
            else { return nil }
            return .failed(
                DownloadProblem(
                    code: CacheError.Code(name) ?? .originFailed,
                    message: message,
                    status: status == 0 ? nil : Int(clamping: status)
                )
            )
        default: return nil
        }
    }
}
