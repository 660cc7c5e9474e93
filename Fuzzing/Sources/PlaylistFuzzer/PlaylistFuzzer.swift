// Feeds the readers and rewriters of playlists with libFuzzer's inputs, under the laws that the
// tests know too: what a playlist costs is in proportion to its length.
//
// The sources are the proxy's own, since its other parts would have to be built for nothing.

/// What libFuzzer calls for each input.
///
/// - Returns: 0, always: a finding is a trap.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 0, count <= 4096 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    for head in ["", "#EXTM3U\n", "<MPD>"] {
        let playlist = Array(head.utf8) + bytes
        for place in PlaylistLaws.Place.all {
            if case .failure(let broken) = PlaylistLaws.cost(playlist, place) {
                preconditionFailure("\(broken), \(place.name)")
            }
        }
        _ = DASHManifest(playlist).sets.first?.first?.addresses(atMost: 10)
    }
    return 0
}
