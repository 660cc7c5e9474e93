/// What a browser does with what it asks for, as far as it says so (Fetch Metadata Request
/// Headers).
///
/// Whatever is not from a browser says nothing and takes data.
enum BrowserDestination: Hashable, Sendable {
    /// It decodes the bytes, or gives them to a page that has the address.
    case data
    /// It shows them by themselves, in a tab or a frame.
    case document
    /// It runs them as the proxy's own.
    case code

    /// Reads `Sec-Fetch-Dest`; what is not known may be anything, and so a document.
    init(_ value: String?) {
        switch value?.lowercased() {
        case nil, "audio", "empty", "font", "image", "json", "manifest", "script", "style", "track",
            "video":
            self = .data
        case "audioworklet", "paintworklet", "serviceworker", "sharedworker", "worker", "xslt":
            self = .code
        default:
            self = .document
        }
    }

    /// Reads a request.
    init(_ request: ServerRequest) {
        let isWorker = request.value("service-worker") != nil
        self = isWorker ? .code : BrowserDestination(request.value("sec-fetch-dest"))
    }

    /// Whether a response with this `Content-Type` may be given.
    func mayTake(_ contentType: String?) -> Bool {
        switch self {
        case .data: true
        case .document: Self.isPassive(contentType)
        case .code: false
        }
    }

    /// Whether nothing of the type can run: films, sounds, pictures but drawings, plain text, and
    /// what is saved.
    ///
    /// Of several types browsers take the last one, and what has none they guess: neither is
    /// passive.
    static func isPassive(_ contentType: String?) -> Bool {
        guard let contentType, !contentType.utf8.contains(UInt8(ascii: ",")) else { return false }
        let type = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        // Drawings and manifests are XML, in which scripts may stand.
        guard !type.hasSuffix("+xml") else { return false }
        if ["video/", "audio/", "image/"].contains(where: type.hasPrefix) { return true }
        switch type {
        case "text/plain", "text/vtt", "application/octet-stream", "application/mp4",
            "application/ogg", "application/vnd.apple.mpegurl", "application/x-mpegurl":
            return true
        default:
            return false
        }
    }
}

extension ServerRequest {
    /// Whether a browser asks, which says so itself: no page can add or remove these fields.
    var isFromBrowser: Bool {
        ["sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site"].contains { value($0) != nil }
    }
}
