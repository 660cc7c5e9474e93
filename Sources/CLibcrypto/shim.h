#ifndef TIEREDCACHE_CLIBCRYPTO_SHIM_H
#define TIEREDCACHE_CLIBCRYPTO_SHIM_H
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#endif
