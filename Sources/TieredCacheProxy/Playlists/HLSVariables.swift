package import HTTPCaching

/// The variables that a playlist defines, to be substituted for `{$NAME}` (RFC 8216bis §4.3).
///
/// | `EXT-X-DEFINE` with | value |
/// | --- | --- |
/// | `NAME`, `VALUE` | the value |
/// | `IMPORT` | that of the master playlist which led here |
/// | `QUERYPARAM` | that parameter of the playlist's URL, escapes decoded |
///
/// At most 256 definitions count, and 64 KiB of names and values.
///
/// The input is not trusted: a name that is not defined before its use, or a value with characters
/// that no URL has, leaves the text unchanged.
package struct HLSVariables: Hashable, Sendable {
    /// The longest substituted address, in bytes; many variables could make one huge.
    private static let maximumLength = 16 << 10
    /// The most definitions that are read; then the most bytes of names and values together.
    private static let maximumCount = 256
    private static let maximumSize = 64 << 10
    private static let definition = "#EXT-X-DEFINE:"

    private var values: [String: [UInt8]] = [:]
    private var definitions = 0
    /// The bytes of names and values.
    private(set) var size = 0

    /// No variables.
    package init() {}

    /// The variables of a whole playlist, which its children may import.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - location: the final URL of the playlist.
    ///   - imported: the variables of the master playlist; empty without one.
    package init(_ bytes: [UInt8], at location: TargetURI, importing imported: HLSVariables) {
        for line in PlaylistLines(bytes) {
            define(bytes[line], at: location, importing: imported)
        }
    }

    /// Whether no variable is defined.
    package var isEmpty: Bool { values.isEmpty }

    /// Adds the variable of a line, if the line is a definition; of several with one name the first
    /// counts.
    ///
    /// - Returns: the value, if the line has defined a variable.
    @discardableResult
    mutating func define(
        _ line: ArraySlice<UInt8>,
        at location: TargetURI,
        importing imported: HLSVariables
    ) -> [UInt8]? {
        guard definitions < Self.maximumCount, line.starts(with: Self.definition.utf8) else {
            return nil
        }
        definitions += 1
        let attributes = HLSAttributes(line.dropFirst(Self.definition.utf8.count))
        let name: String
        let value: [UInt8]?
        if let own = attributes.value("NAME") {
            name = own
            value = attributes.value("VALUE").map { Array($0.utf8) }
        } else if let foreign = attributes.value("IMPORT") {
            name = foreign
            value = imported.values[foreign]
        } else if let parameter = attributes.value("QUERYPARAM") {
            name = parameter
            value = location.queryParameter(parameter)
        } else {
            return nil
        }
        guard let value, values[name] == nil, value.isPartOfAddress,
            size + name.utf8.count + value.count <= Self.maximumSize
        else { return nil }
        size += name.utf8.count + value.count
        values[name] = value
        return value
    }

    /// The text with values substituted for names, in time linear in the length.
    ///
    /// - Parameters:
    ///   - text: an address of the playlist.
    ///   - budget: the budget of the playlist; reduced by the cost.
    /// - Returns: the text; nil if it contains no variable, or an undefined one.
    func substituted(
        _ text: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        guard !values.isEmpty else { return nil }
        var result: [UInt8] = []
        var isChanged = false
        var rest = text[...]
        while let mark = rest.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<mark]
            rest = rest[mark...]
            guard rest.dropFirst().first == UInt8(ascii: "$") else {
                result.append(UInt8(ascii: "{"))
                rest = rest.dropFirst()
                continue
            }
            // Without a closing brace from here on, no later variable has one.
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { break }
            let name = String(decoding: rest[..<end].dropFirst(2), as: UTF8.self)
            guard let value = values[name], !budget.isExceeded else { return nil }
            budget.spend(work: value.count)
            result += value
            isChanged = true
            rest = rest[end...].dropFirst()
            guard result.count <= Self.maximumLength else { return nil }
        }
        return isChanged ? result + rest : nil
    }
}

extension [UInt8] {
    /// Whether the value may be part of a line or a quoted string without ending it.
    fileprivate var isPartOfAddress: Bool {
        count <= 4096 && allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
    }
}

extension TargetURI {
    /// The decoded value of the first parameter of that name in the query; nil if there is none.
    fileprivate func queryParameter(_ name: String) -> [UInt8]? {
        guard let query else { return nil }
        for part in Array(query.utf8).split(separator: UInt8(ascii: "&")) {
            let key = part.prefix { $0 != UInt8(ascii: "=") }
            guard key.endIndex < part.endIndex, key.decodingEscapes.elementsEqual(name.utf8) else {
                continue
            }
            return part[(key.endIndex + 1)...].decodingEscapes
        }
        return nil
    }
}

extension ArraySlice<UInt8> {
    /// The bytes with `%XX` decoded; other bytes stay.
    fileprivate var decodingEscapes: [UInt8] {
        var result: [UInt8] = []
        var rest = self
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                result.append(byte)
                continue
            }
            result.append(value)
            rest = rest.dropFirst(2)
        }
        return result
    }
}
