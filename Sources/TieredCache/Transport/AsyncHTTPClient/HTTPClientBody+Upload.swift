#if HTTPClient
import AsyncHTTPClient
import NIOCore
import NIOPosix

extension HTTPClient.Body {
    /// A body that asks for the next bytes once the connection has taken the ones before.
    static func pulling(_ upload: UploadBody) -> HTTPClient.Body {
        .stream(contentLength: upload.length) { writer in
            let loop = MultiThreadedEventLoopGroup.singleton.any()
            return loop.makeFutureWithTask {
                // Ends as well when the exchange does: then the next write fails.
                while let chunk = try await upload.next() {
                    let buffer = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
                    try await writer.write(.byteBuffer(buffer)).get()
                }
            }
        }
    }
}
#endif
