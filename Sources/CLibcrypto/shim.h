#ifndef TIEREDCACHE_CLIBCRYPTO_SHIM_H
#define TIEREDCACHE_CLIBCRYPTO_SHIM_H
#if defined(__linux__) && __has_feature(modules)
// OpenSSL includes <pthread.h>. Without this line the pthread types would belong to this module as
// well as to Glibc, and files that import only Glibc would not compile.
#pragma clang module import SwiftGlibc
#endif
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#endif
