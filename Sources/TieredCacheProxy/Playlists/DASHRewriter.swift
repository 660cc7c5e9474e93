import HTTPCaching

/// Makes the addresses of a DASH manifest lead through the proxy; every other byte stays.
package enum DASHRewriter {
    /// The attributes that are addresses, by element.
    private static let addresses: [(element: String, attributes: [String])] = [
        ("SegmentTemplate", ["media", "initialization", "index", "bitstreamSwitching"]),
        ("SegmentURL", ["media", "index"]),
        ("Initialization", ["sourceURL"]),
        ("RepresentationIndex", ["sourceURL"]),
        ("BitstreamSwitching", ["sourceURL"]),
        ("Period", ["href"]),
        ("AdaptationSet", ["href"]),
        ("EventStream", ["href"]),
    ]
    /// The elements whose text is an address.
    private static let texts = ["BaseURL", "Location", "PatchLocation"]

    private struct Walk {
        var depth = 0
        /// Whether the text that follows is an address, and whether relative ones count too.
        var awaitsAddress = false
        var isBase = false
        var isAtRoot = false
        var hasRootBase = false
        /// Where an element for the base of all addresses belongs.
        var insertion: Int?
        var edits: [(range: Range<Int>, replacement: [UInt8])] = []
        /// What decides below the base URLs that hold here, each from the depth at which it was
        /// found on.
        var bases: [(depth: Int, rewriter: AddressRewriter)] = []
        var budget: PlaylistBudget

        init(_ budget: PlaylistBudget) { self.budget = budget }

        /// What decides at a depth; nil for the manifest's own place.
        func base(at depth: Int) -> AddressRewriter? {
            bases.last { $0.depth <= depth }?.rewriter
        }
    }

    /// Rewrites a manifest.
    ///
    /// - Parameters:
    ///   - bytes: the manifest.
    ///   - rewriter: decides about each address.
    ///   - budget: what is left of it says what this has cost.
    /// - Returns: the manifest for the player; nil for one that exceeds its budget.
    static func rewrite(
        _ bytes: [UInt8],
        _ rewriter: AddressRewriter,
        _ budget: inout PlaylistBudget
    ) -> [UInt8]? {
        var walk = Walk(budget)
        defer { budget = walk.budget }
        for piece in XMLScanner(bytes) {
            take(piece, bytes, rewriter, &walk)
            guard !walk.budget.isExceeded else { return nil }
        }
        if let folder = rewriter.redirectedFolder, !walk.hasRootBase, let place = walk.insertion {
            // The player knows only where it has asked; relative addresses mean who answered.
            let base = Array("<BaseURL>".utf8) + escaped(folder) + Array("</BaseURL>".utf8)
            walk.budget.spend(output: base.count)
            walk.edits.append((place..<place, base))
            walk.edits.sort { $0.range.lowerBound < $1.range.lowerBound }
        }
        var result: [UInt8] = []
        var copied = 0
        for edit in walk.edits {
            result += bytes[copied..<edit.range.lowerBound]
            result += edit.replacement
            copied = edit.range.upperBound
        }
        return result + bytes[copied...]
    }

    private static func take(
        _ piece: XMLScanner.Piece,
        _ bytes: [UInt8],
        _ rewriter: AddressRewriter,
        _ walk: inout Walk
    ) {
        switch piece {
        case .start(let name, let attributes, let isEmpty, let place):
            let local = String(decoding: name.local, as: UTF8.self)
            walk.isAtRoot = walk.depth == 1
            if walk.isAtRoot, local != "ProgramInformation", walk.insertion == nil {
                walk.insertion = place
            }
            walk.awaitsAddress = texts.contains(local) && !isEmpty
            if walk.awaitsAddress, walk.isAtRoot, local == "BaseURL" { walk.hasRootBase = true }
            walk.isBase = local == "BaseURL"
            let below = walk.base(at: walk.depth) ?? rewriter
            rewriteAttributes(of: local, bytes, attributes, below, &walk)
            if !isEmpty { walk.depth += 1 }
        case .end:
            walk.depth -= 1
            walk.awaitsAddress = false
            while let last = walk.bases.last, last.depth > walk.depth { walk.bases.removeLast() }
        case .text(let range):
            guard walk.awaitsAddress else { return }
            let text = bytes[range].trimmed
            guard !text.isEmpty else { return }
            walk.awaitsAddress = false
            // A base is relative to those outside of the element that it is for.
            let place = walk.base(at: walk.depth - 2) ?? rewriter
            replace(text, place, includesRelative: walk.isAtRoot, &walk)
            if walk.isBase { takeBase(text, at: place, &walk) }
        }
    }

    /// Remembers what addresses in the element around mean; of several bases the first counts.
    private static func takeBase(
        _ text: ArraySlice<UInt8>,
        at outer: AddressRewriter,
        _ walk: inout Walk
    ) {
        let depth = walk.depth - 1
        guard walk.bases.last.map({ $0.depth < depth }) ?? true, depth < maximumDepth,
            text.count <= maximumBase
        else { return }
        do throws(TargetURIError) {
            walk.budget.spend(work: outer.location.path.utf8.count)
            let base = try outer.location.resolving(reference: XMLValues.decoded(text))
            // Each level may add to the path of the one before.
            guard base.path.utf8.count <= maximumBase else { return }
            walk.bases.append((depth, outer.at(base, &walk.budget)))
        } catch {
            // No URL of ours, so there is nothing below it that could lead through the proxy.
        }
    }

    /// Of the elements whose bases count.
    private static let maximumDepth = 64
    /// Of a base, in bytes.
    private static let maximumBase = 8192

    private static func rewriteAttributes(
        of element: String,
        _ bytes: [UInt8],
        _ range: Range<Int>,
        _ rewriter: AddressRewriter,
        _ walk: inout Walk
    ) {
        guard let known = addresses.first(where: { $0.element == element }) else { return }
        for attribute in XMLAttributes(bytes[range])
        where known.attributes.contains(where: { attribute.name.local.elementsEqual($0.utf8) }) {
            replace(bytes[attribute.value], rewriter, includesRelative: false, &walk)
        }
    }

    /// Relative addresses below the root follow the base that was rewritten there.
    private static func replace(
        _ text: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        includesRelative: Bool,
        _ walk: inout Walk
    ) {
        let isRelative = text.first != UInt8(ascii: "/") && !text.hasScheme
        guard includesRelative || !isRelative,
            let replacement = rewriter.rewritten(text, &walk.budget)
        else { return }
        let whole = isRelative ? escaped(replacement) : replacement
        walk.budget.spend(output: whole.count - replacement.count)
        walk.edits.append((text.indices, whole))
    }

    private static func escaped(_ text: [UInt8]) -> [UInt8] {
        text.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            default: [byte]
            }
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate var trimmed: ArraySlice<UInt8> {
        let start = drop { $0.isXMLSpace }
        return start.dropLast(start.reversed().prefix { $0.isXMLSpace }.count)
    }

    fileprivate var hasScheme: Bool {
        let name = prefix { $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) }
        return !name.isEmpty && name.endIndex < endIndex && self[name.endIndex] == UInt8(ascii: ":")
    }
}
