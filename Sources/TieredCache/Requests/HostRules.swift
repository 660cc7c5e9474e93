public import HTTPCaching
import HTTPTypes

/// What holds for requests to some hosts: whether they use the cache, which further fields they
/// have, and which parameters of a URL do not tell what it stands for.
///
/// Rules are lines, as a file of settings has them:
///
/// ```
/// exclude=HOST ...           these hosts are left alone
/// header=HOST NAME: VALUE    a field of requests to the host
/// key=HOST PARAMETER ...     parameters of its queries that are no part of the key: signatures
/// ```
///
/// A host stands for itself and for all hosts below it, with or without a dot in front; with a port
/// (`example.org:8080`) for that port alone; `*` for all. A rule adds to those before it; one
/// without a value removes those of its name. Values of fields may be secrets: do not log rules.
public struct HostRules: Hashable, Sendable {
    private struct Field: Hashable {
        let host: HostPattern
        let field: HTTPField
    }

    private struct Parameters: Hashable {
        let host: HostPattern
        let names: Set<String>
    }

    /// The hosts that are left alone.
    package private(set) var excluded: [HostPattern] = []
    private var fields: [Field] = []
    private var parameters: [Parameters] = []

    /// Creates rules that change nothing.
    public init() {}

    // MARK: Reading

    /// Adds the rule of a line.
    ///
    /// - Parameter line: the line, without a line break.
    /// - Throws: `.invalidArgument` for a line that is no rule; the rules stay as they are.
    public mutating func add(_ line: String) throws(CacheError) {
        let name = line.utf8.prefix { $0 != UInt8(ascii: "=") }
        let value = Self.trimmed(line.utf8[name.endIndex...].dropFirst())
        guard name.endIndex < line.utf8.endIndex else { throw Self.invalid }
        switch String(Substring(name)) {
        case "exclude":
            excluded = value.isEmpty ? [] : excluded + (try Self.words(value).map(Self.host))
        case "header":
            fields = value.isEmpty ? [] : fields + [try Self.field(value)]
        case "key":
            parameters = value.isEmpty ? [] : parameters + [try Self.parameters(value)]
        default:
            throw Self.invalid
        }
    }

    private static let invalid = CacheError(
        .invalidArgument,
        "a rule is 'exclude=HOST ...', 'header=HOST NAME: VALUE' or 'key=HOST PARAMETER ...', "
            + "a host NAME, NAME:PORT or *"
    )

    private static func host(_ text: String) throws(CacheError) -> HostPattern {
        guard let host = HostPattern(text) else { throw invalid }
        return host
    }

    private static func field(_ value: Substring.UTF8View) throws(CacheError) -> Field {
        let (host, rest) = try split(value)
        let name = rest.prefix { $0 != UInt8(ascii: ":") }
        let text = String(Substring(trimmed(rest[name.endIndex...].dropFirst())))
        guard name.endIndex < rest.endIndex, HTTPField.isValidValue(text),
            let name = HTTPField.Name(String(Substring(name)))
        else { throw invalid }
        let field = HTTPField(name: name, value: text)
        guard !CacheRequest.isOwnField(field) else {
            throw CacheError(.invalidArgument, "the cache sets the field \(name) itself")
        }
        return Field(host: host, field: field)
    }

    private static func parameters(_ value: Substring.UTF8View) throws(CacheError) -> Parameters {
        let (host, rest) = try split(value)
        let names = Set(words(rest))
        guard !names.isEmpty else { throw invalid }
        return Parameters(host: host, names: names)
    }

    /// The host, and what follows the blanks behind it.
    private static func split(
        _ value: Substring.UTF8View
    ) throws(CacheError) -> (host: HostPattern, rest: Substring.UTF8View) {
        let host = value.prefix { !isBlank($0) }
        return (try Self.host(String(Substring(host))), trimmed(value[host.endIndex...]))
    }

    private static func words(_ value: Substring.UTF8View) -> [String] {
        value.split { isBlank($0) || $0 == UInt8(ascii: ",") }.map { String(Substring($0)) }
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        let start = text.drop(while: isBlank)
        return start.dropLast(start.reversed().prefix(while: isBlank).count)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    // MARK: Asking

    /// Whether the host of a URL is left alone: nothing of it is to go through the cache.
    public func excludes(_ target: TargetURI) -> Bool {
        excluded.contains { $0.matches(target.origin) }
    }

    /// What names the entry of a URL: the URL without its fragment and without the parameters that
    /// a rule names.
    ///
    /// - Parameter target: the URL.
    /// - Returns: the name, for the key of a ``CacheRequest``; nil if no rule is for the host.
    public func key(for target: TargetURI) -> String? {
        let rules = parameters.filter { $0.host.matches(target.origin) }
        guard !rules.isEmpty else { return nil }
        guard let query = target.query else { return target.string }
        let names = rules.reduce(into: Set()) { $0.formUnion($1.names) }
        let kept = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
            .filter { part in
                !names.contains(String(Substring(part.prefix { $0 != UInt8(ascii: "=") })))
            }
        let rest = kept.map { String(Substring($0)) }.joined(separator: "&")
        return "\(target.origin)\(target.path)" + (kept.isEmpty ? "" : "?\(rest)")
    }

    /// Applies the rules to a request, but for its key and for whether it is to be made at all.
    ///
    /// It gets the fields for its host, in place of its own of the same names and of those that rules
    /// gave it before; and where a redirect leads it to a host that is left alone, what comes is not
    /// stored.
    public func apply(to request: inout CacheRequest) {
        request.excludedHosts = excluded
        let own = fields.filter { $0.host.matches(request.target.origin) }
        let names = Set(own.map(\.field.name))
        let replaced = request.ruleFields.union(names)
        guard !replaced.isEmpty else { return }
        var all = request.fields
        for name in replaced { all[name] = nil }
        for rule in own { all.append(rule.field) }
        request.fields = all
        request.firstOriginFields.subtract(request.ruleFields)
        request.firstOriginFields.formUnion(names)
        request.ruleFields = names
    }
}
