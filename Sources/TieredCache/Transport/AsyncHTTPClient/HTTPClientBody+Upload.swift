#if HTTPClient
import AsyncHTTPClient
import NIOCore
import NIOPosix

extension HTTPClient.Body {
    /// A body that requests the next bytes once the connection has taken the previous ones.
    static func pulling(_ upload: UploadBody) -> HTTPClient.Body {
        .stream(contentLength: upload.length) { writer in
            let loop = MultiThreadedEventLoopGroup.singleton.any()
            return loop.makeFutureWithTask {
                // Also ends with the exchange: the next write fails then.
                while let chunk = try await upload.next() {
                    let buffer = chunk.withUnsafeBytes { ByteBuffer(bytes: $0) }
                    try await writer.write(.byteBuffer(buffer)).get()
                }
            }
        }
    }
}
#endif
