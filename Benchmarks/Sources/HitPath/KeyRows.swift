import CBenchCrypto
import Foundation
@_spi(Benchmarks) import TieredCache

/// The rows of keys: MD5 of a URL.
enum KeyRows {
    static func make() -> [Row] {
        [md5()]
    }

    private static func md5() -> Row {
        let urls = Samples(count: 1000).urls.map { Array($0.utf8) }
        return Row(
            name: "MD5 of a 75-byte key",
            target: nil,
            count: 50_000,
            contenders: [
                Contender("fetched once, context reused") { count in
                    digest(urls, count) { blackHole(MD5.digest(of: $0)) }
                },
                Contender("EVP_Q_digest (fetch per call)") { count in
                    var output = [UInt8](repeating: 0, count: 16)
                    digest(urls, count) {
                        EVP_Q_digest(nil, "MD5", nil, $0.baseAddress, $0.count, &output, nil)
                    }
                },
            ]
        )
    }

    private static func digest(
        _ keys: [[UInt8]],
        _ count: Int,
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var next = 0
        for _ in 0..<count {
            keys[next].withUnsafeBytes(body)
            next = next + 1 == keys.count ? 0 : next + 1
        }
    }
}
