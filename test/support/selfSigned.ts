// A certificate that nobody has signed but itself, for 127.0.0.1 by that name alone, and its key: of tests, and good for a
// hundred years. Made by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500
// -subj "/CN=leeward test database" -addext subjectAltName=IP:127.0.0.1`.

export const SELF_SIGNED = {
	cert: `-----BEGIN CERTIFICATE-----
MIIBpzCCAU6gAwIBAgIUB1Qw3V4mCiApegKj3R0/rvRPAfwwCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVbGVld2FyZCB0ZXN0IGRhdGFiYXNlMCAXDTI2MTEyMjA0NDY1
N1oYDzIxMjYxMDI5MDQ0NjU3WjAgMR4wHAYDVQQDDBVsZWV3YXJkIHRlc3QgZGF0
YWJhc2UwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARN2b400ELGWSrWijg7hFTV
IznUMAn7GtppLZDJUMRq16aGHSpjckg/0LFW3J9rozcWhQKmGkeCyjV2ez5XoC84
o2QwYjAdBgNVHQ4EFgQUIvuTkrxwcat00DYPnkTgx48s8bkwHwYDVR0jBBgwFoAU
IvuTkrxwcat00DYPnkTgx48s8bkwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAG
hwR/AAABMAoGCCqGSM49BAMCA0cAMEQCIC5F9PN7QP+Y2C47J3lVsiluzd32nsbQ
CHeIqSApADQnAiBNdYl0ul+kZZUoaY9HdgmhDv1QcRcTDDB+ZWYydyARQQ==
-----END CERTIFICATE-----
`,
	key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnOg+dDQsACDNOEBc
+xYlu1OS3JWb/o9MC+CtUdt50jOhRANCAARN2b400ELGWSrWijg7hFTVIznUMAn7
GtppLZDJUMRq16aGHSpjckg/0LFW3J9rozcWhQKmGkeCyjV2ez5XoC84
-----END PRIVATE KEY-----
`,
};
