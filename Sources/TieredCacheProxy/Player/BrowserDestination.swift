/// The use that a browser announces for a response (Fetch Metadata Request Headers).
///
/// A client that is no browser announces nothing; its destination is ``data``.
enum BrowserDestination: Hashable, Sendable {
    /// The browser decodes the bytes, or hands them to a page that knows the URL.
    case data
    /// The browser shows the bytes as a document of their own, in a tab or a frame.
    case document
    /// The browser runs the bytes with the proxy's origin.
    case code

    /// Reads `Sec-Fetch-Dest`; an unknown value counts as ``document``.
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

    /// Reads the fields of a request.
    init(_ request: ServerRequest) {
        // `Service-Worker: script`, which browsers without Fetch Metadata send as well.
        let isWorker = request.value("service-worker") != nil
        self = isWorker ? .code : BrowserDestination(request.value("sec-fetch-dest"))
    }

    /// Whether a response with this `Content-Type` may be sent to the browser.
    func mayTake(_ contentType: String?) -> Bool {
        switch self {
        case .data: true
        case .document: Self.isPassive(contentType)
        case .code: false
        }
    }

    /// Whether content of the type cannot contain scripts: video, audio, bitmap images, plain text,
    /// and types that browsers download.
    ///
    /// Browsers take the last of several types and guess a missing one, so neither counts as
    /// passive.
    static func isPassive(_ contentType: String?) -> Bool {
        guard let contentType, !contentType.utf8.contains(UInt8(ascii: ",")) else { return false }
        let type = contentType.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        // SVG and manifests are XML, which may contain scripts.
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
    /// Whether the request comes from a browser.
    ///
    /// Pages can neither add nor remove these fields.
    var isFromBrowser: Bool {
        ["sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site"].contains { value($0) != nil }
    }
}
