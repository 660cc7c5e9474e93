#if os(Linux)
import HTTPTypes
import TieredCache
import TieredCacheTesting

extension TransportRequest {
    /// What the trace says of it.
    var told: String {
        let names: [HTTPField.Name] = [.range, .ifRange, .ifNoneMatch, .ifMatch]
        let fields = names.compactMap { name in
            head.headerFields[name].map { "\(name): \($0)" }
        }
        return ([head.path ?? "?"] + fields).joined(separator: ", ")
    }
}

extension ScriptedResponse {
    /// What the trace says of it.
    var told: String {
        if stallsBeforeHead { return "silence" }
        switch head {
        case .failure(let error): return "\(error.kind)"
        case .success(let head):
            let names: [HTTPField.Name] = [.contentRange, .eTag, .location]
            let fields = names.compactMap { head.headerFields[$0] }
            let isCut = steps.contains { step in
                switch step {
                case .stall, .fail: true
                case .bytes, .delay: false
                }
            }
            return (["\(head.status.code)"] + fields + (isCut ? ["cut"] : []))
                .joined(separator: " ")
        }
    }
}
#endif
