import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The text of `nginx.conf` for one test: loopback only, everything inside one directory.
///
/// | location | what it does with the files |
/// | --- | --- |
/// | `/` | as nginx does by default: length, `ETag`, `Last-Modified`, ranges |
/// | `/chunked/` | the same bytes, chunked, without length, validators or ranges |
/// | `/gzip/` | gzip-coded for a client that accepts it |
/// | `/slow/` | 1 MiB/s |
/// | `/cached/` | what another origin serves, through `proxy_cache` |
struct NginxConfiguration {
    var directory: FilePath
    var httpPort: Int
    var httpsPort: Int
    /// The port of the origin behind the cache; nil for none.
    var originPort: Int?

    var text: String {
        // Workers of a master that runs as root would be `nobody`, which may not enter the directory.
        let user = geteuid() == 0 ? "user root;" : ""
        return """
            \(user)
            daemon off;
            worker_processes 1;
            pid \(directory)/nginx.pid;
            error_log stderr notice;
            events { worker_connections 512; }
            http {
                log_format exchanges '$connection $status $request_method $request_uri';
                access_log \(directory)/access.log exchanges;
                client_body_temp_path \(directory)/t1;
                proxy_temp_path \(directory)/t2;
                fastcgi_temp_path \(directory)/t3;
                uwsgi_temp_path \(directory)/t4;
                scgi_temp_path \(directory)/t5;
                proxy_cache_path \(directory)/cache keys_zone=cache:1m;
                types {}
                default_type application/octet-stream;
                sendfile on;
                tcp_nodelay on;
                keepalive_timeout 60s;
                keepalive_requests 100000;
                add_header Cache-Control "max-age=3600";
                server {
                    listen 127.0.0.1:\(httpPort);
                    listen 127.0.0.1:\(httpsPort) ssl;
                    ssl_certificate \(directory)/certificate.pem;
                    ssl_certificate_key \(directory)/key.pem;
                    location / { root \(directory)/files; }
                    location /chunked/ {
                        alias \(directory)/files/;
                        # Server-side includes cannot know the length beforehand.
                        ssi on;
                        ssi_types *;
                    }
                    location /gzip/ {
                        alias \(directory)/files/;
                        gzip on;
                        gzip_types *;
                        gzip_min_length 1;
                        gzip_comp_level 1;
                    }
                    \(cachedLocation)
                    location /slow/ {
                        alias \(directory)/files/;
                        limit_rate 1m;
                    }
                }
            }
            """
    }

    private var cachedLocation: String {
        guard let originPort else { return "" }
        return """
            location /cached/ {
                proxy_pass http://127.0.0.1:\(originPort)/;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_cache cache;
                proxy_cache_revalidate on;
                # Takes the place of the fields that are added elsewhere.
                add_header X-Cache $upstream_cache_status;
            }
            """
    }
}
