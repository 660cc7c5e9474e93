extension TargetURI {
    /// The network scope of a host, as far as its name shows, in order.
    public enum Reach: Int, Hashable, Comparable, Sendable {
        /// This machine only: `127.0.0.0/8`, `0.0.0.0`, `::1`, `::`, `localhost` (RFC 6761 §6.3).
        case machine
        /// The local link: `169.254.0.0/16`, `fe80::/10`, with the metadata services of clouds.
        case link
        /// Anywhere else, or unknown.
        case anywhere

        /// Orders from ``machine`` to ``anywhere``.
        public static func < (left: Reach, right: Reach) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    /// The network scope of the host.
    ///
    /// Recognises addresses in every form that resolvers accept: `127.1`, `0x7f000001`,
    /// `2130706433`, `[::ffff:127.0.0.1]`. Names are not resolved.
    public var reach: Reach {
        var host = origin.host[...]
        if host.utf8.last == UInt8(ascii: ".") { host = host.dropLast() }
        if host == "localhost" || host.hasSuffix(".localhost") { return .machine }
        if host.utf8.first == UInt8(ascii: "[") {
            return IPv6Groups(host.dropFirst().dropLast()).map { Self.reach(of: $0.groups) }
                ?? .anywhere
        }
        return IPv4Number(host).map { Self.reach(of: $0.value) } ?? .anywhere
    }

    private static func reach(of address: UInt32) -> Reach {
        switch address >> 24 {
        // Linux connects to 0.0.0.0 as to loopback.
        case 0, 127: .machine
        case 169 where address >> 16 == 0xA9FE: .link
        default: .anywhere
        }
    }

    private static func reach(of groups: [UInt16]) -> Reach {
        let last = UInt32(groups[6]) << 16 | UInt32(groups[7])
        if groups[..<6].allSatisfy({ $0 == 0 }) {
            // `::`, `::1`, and IPv4-compatible addresses.
            return last <= 1 ? .machine : reach(of: last)
        }
        let isMapped = groups[..<5].allSatisfy { $0 == 0 } && groups[5] == 0xFFFF
        // `64:ff9b::/96` is translated to IPv4 (RFC 6052 §2.1).
        let isTranslated =
            groups[0] == 0x64 && groups[1] == 0xFF9B && groups[2..<6].allSatisfy { $0 == 0 }
        if isMapped || isTranslated { return reach(of: last) }
        return groups[0] & 0xFFC0 == 0xFE80 ? .link : .anywhere
    }
}

/// An IPv4 address in the forms of `inet_aton`: one to four numbers, decimal, octal or hexadecimal,
/// the last of which fills the remaining bytes.
struct IPv4Number {
    let value: UInt32

    init?(_ text: Substring) {
        let dot = UInt8(ascii: ".")
        let parts = text.utf8.split(separator: dot, maxSplits: 4, omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count) else { return nil }
        var value: UInt64 = 0
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            let bits = isLast ? 8 * (5 - parts.count) : 8
            guard let number = Self.number(part), number < 1 << UInt64(bits) else { return nil }
            value = value << UInt64(bits) | number
        }
        self.value = UInt32(truncatingIfNeeded: value)
    }

    private static func number(_ text: Substring.UTF8View) -> UInt64? {
        var digits = text
        var radix = 10
        if text.count > 1, text.first == UInt8(ascii: "0") {
            digits = text.dropFirst()
            radix = 8
            if let mark = digits.first, mark | 0x20 == UInt8(ascii: "x") {
                digits = digits.dropFirst()
                radix = 16
            }
        }
        // `UInt64("+1")` is 1; no resolver accepts a sign.
        guard let first = digits.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-")
        else { return nil }
        return UInt64(Substring(digits), radix: radix)
    }
}

/// The eight groups of an IPv6 address (RFC 4291 §2.2).
struct IPv6Groups {
    let groups: [UInt16]

    init?(_ text: Substring) {
        // A zone names an interface and is ignored.
        let address = text.prefix { $0 != "%" }
        let halves = address.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = halves.first, let head = Self.groups(first) else { return nil }
        guard halves.count == 2 else {
            guard head.count == 8 else { return nil }
            groups = head
            return
        }
        guard let tail = Self.groups(halves[1]), head.count + tail.count < 8 else { return nil }
        groups = head + [UInt16](repeating: 0, count: 8 - head.count - tail.count) + tail
    }

    private static func groups(_ text: Substring) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var groups: [UInt16] = []
        for part in text.split(separator: ":", omittingEmptySubsequences: false) {
            if part.utf8.contains(UInt8(ascii: ".")) {
                guard let address = IPv4Number(part) else { return nil }
                groups.append(UInt16(truncatingIfNeeded: address.value >> 16))
                groups.append(UInt16(truncatingIfNeeded: address.value))
            } else {
                guard part.utf8.count <= 4, let group = UInt16(part, radix: 16) else { return nil }
                groups.append(group)
            }
        }
        return groups.count <= 8 ? groups : nil
    }
}
