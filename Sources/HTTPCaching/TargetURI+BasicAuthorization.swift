extension TargetURI {
    /// The value of `Authorization` for the userinfo; nil without userinfo (RFC 7617 §2).
    ///
    /// Percent-encoding is removed, because the origin compares decoded bytes. The first unescaped
    /// colon separates user and password; a missing password is empty. The value is a secret: do
    /// not log or store it.
    public var basicAuthorization: String? {
        guard let userinfo, !userinfo.isEmpty else { return nil }
        let bytes = Self.removingPercentEncoding(userinfo)
        // Not in the decoded bytes: an escaped colon is a part of the user name.
        let hasPassword = userinfo.utf8.contains(UInt8(ascii: ":"))
        return "Basic " + Self.base64(hasPassword ? bytes : bytes + [UInt8(ascii: ":")])
    }

    /// Decodes escapes; a percent sign that starts none stays.
    private static func removingPercentEncoding(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = hexValue(bytes[index + 1]), let low = hexValue(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Encodes bytes by RFC 4648 §4, with padding.
    private static func base64(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let padded = group + Array(repeating: 0, count: 3 - group.count)
            let bits = padded.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            for position in 0..<4 {
                let digit = Int(bits >> UInt32(18 - 6 * position)) & 0x3F
                text.append(position <= group.count ? base64Digits[digit] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static let base64Digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
}
