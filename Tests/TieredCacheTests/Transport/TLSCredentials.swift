#if HTTPClient
/// Certificates and their key, for tests alone: nothing else trusts them.
enum TLSCredentials {
    /// The one that the others are signed by.
    static let root = """
        -----BEGIN CERTIFICATE-----
        MIIBfzCCASWgAwIBAgIUUBqkd/Fk5SSBHST7zh3ZQocb6QMwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJcm9vdC50ZXN0MCAXDTI2MTEyODAzMzQ0NloYDzIxMjYxMTA0
        MDMzNDQ2WjAUMRIwEAYDVQQDDAlyb290LnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAARnJnQHeVlZzvCJcNCtb1gTnZBh7Cu8AkhKyH5WDGQltbvOjqh5eYjt
        2DDFaNJxI4yHxYHstHau6ylW/Gc35loyo1MwUTAdBgNVHQ4EFgQUhNq/24TNn1ov
        scBMnkyskDz68igwHwYDVR0jBBgwFoAUhNq/24TNn1ovscBMnkyskDz68igwDwYD
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAiPOxQmsXcIsk6LAgFUSB
        BOW/N7L7WKmNcBl+HLeDH1UCIHrzofNd1aa6ucz0pP6qoCNXGw3uwVDsSG9xkLvf
        hX8c
        -----END CERTIFICATE-----

        """

    /// For `localhost` and 127.0.0.1, until 2126.
    static let valid = """
        -----BEGIN CERTIFICATE-----
        MIIBgjCCASigAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlyb290LnRl
        c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
        CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFBD0uWI6HE5N76E
        9Ok1PJV6wSFMCchyAVKOGIsIWEXulg8NF+zXZsninZgVpkkx3RY+53TyT2ih9NTJ
        teIIy+WjaTBnMAkGA1UdEwQCMAAwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAAB
        MB0GA1UdDgQWBBTf9PklIjEVMKF3oIBWbS6gFkyOqzAfBgNVHSMEGDAWgBSE2r/b
        hM2fWi+xwEyeTKyQPPryKDAKBggqhkjOPQQDAgNIADBFAiBubaikjyNcB5nDttN7
        FggBvZldLAU5CG4VncCN3acZsQIhAJaEMnxKooGvl/ktecyEcoQo+NyqbS67Af3M
        zZIvc+D1
        -----END CERTIFICATE-----

        """

    /// For `localhost`, until 2021.
    static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBejCCASCgAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlyb290LnRl
        c3QwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAls
        b2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARQQ9LliOhxOTe+hPTp
        NTyVesEhTAnIcgFSjhiLCFhF7pYPDRfs12bJ4p2YFaZJMd0WPud08k9oofTUybXi
        CMvlo2MwYTAJBgNVHRMEAjAAMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAdBgNVHQ4E
        FgQU3/T5JSIxFTChd6CAVm0uoBZMjqswHwYDVR0jBBgwFoAUhNq/24TNn1ovscBM
        nkyskDz68igwCgYIKoZIzj0EAwIDSAAwRQIgEVQqYnASMyeydpcRl87JOUs7h5Kp
        ATebdgFGcqFUNNkCIQCu1EcSqI+Smyr5Rjxrzu7aMgXqdqmlZw4j7YFA2uIXnw==
        -----END CERTIFICATE-----

        """

    /// For `other.test`.
    static let other = """
        -----BEGIN CERTIFICATE-----
        MIIBfjCCASSgAwIBAgIBAzAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlyb290LnRl
        c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
        Cm90aGVyLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARQQ9LliOhxOTe+
        hPTpNTyVesEhTAnIcgFSjhiLCFhF7pYPDRfs12bJ4p2YFaZJMd0WPud08k9oofTU
        ybXiCMvlo2QwYjAJBgNVHRMEAjAAMBUGA1UdEQQOMAyCCm90aGVyLnRlc3QwHQYD
        VR0OBBYEFN/0+SUiMRUwoXeggFZtLqAWTI6rMB8GA1UdIwQYMBaAFITav9uEzZ9a
        L7HATJ5MrJA8+vIoMAoGCCqGSM49BAMCA0gAMEUCIHYLxgjHOYMVEE/JUag2UnKb
        kQXFVFFsdXoA8k5bzXJMAiEA3WLpkoEF1LAB3/qMQeZlErw4BO6E/RUL37HUIeu4
        mhE=
        -----END CERTIFICATE-----

        """

    /// The key of the three.
    static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4ZWnbbaI7KXJuXgo
        1h/eFoCNQcT5swe4+6s/EGn6/yChRANCAARQQ9LliOhxOTe+hPTpNTyVesEhTAnI
        cgFSjhiLCFhF7pYPDRfs12bJ4p2YFaZJMd0WPud08k9oofTUybXiCMvl
        -----END PRIVATE KEY-----

        """
}
#endif
