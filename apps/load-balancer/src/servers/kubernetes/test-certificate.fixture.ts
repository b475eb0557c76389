/**
 * A certificate of nobody for 127.0.0.1, signed by itself; worthless outside of tests. Made by
 * `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -addext subjectAltName=IP:127.0.0.1`.
 */
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBpjCCAUygAwIBAgIUBbXB0pfBVWRCaf5W1Lh69yZKGBgwCgYIKoZIzj0EAwIw
HzEdMBsGA1UEAwwUa3ViZXJuZXRlcyBvZiBhIHRlc3QwIBcNMjYxMTIyMDE0MjA2
WhgPMjEyNjEwMjkwMTQyMDZaMB8xHTAbBgNVBAMMFGt1YmVybmV0ZXMgb2YgYSB0
ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEFWa54Nujdnvb5Ggtk1ex+hYg
vdYRJRLLT/hKEUwNsEh+k1M5jdClDYEhbku/2q6H4tyds6xCtoDRS/sfBewpEqNk
MGIwHQYDVR0OBBYEFEsqZ4tuQ8zdzkSZl+GzOuY4O9voMB8GA1UdIwQYMBaAFEsq
Z4tuQ8zdzkSZl+GzOuY4O9voMA8GA1UdEwEB/wQFMAMBAf8wDwYDVR0RBAgwBocE
fwAAATAKBggqhkjOPQQDAgNIADBFAiEAymSArrNi8DUzP8aTwuBYXz7/Qx+lM5X5
m5pQC1F8jrECIFVImkrkuN4gbAH1tr60CFaDiSe9bCaB1SKOcrLTFxwB
-----END CERTIFICATE-----
`;
export const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyBGqMejTHXgZjWL7
Nc8rVbvTktX+otSjz8fndt6a3h6hRANCAAQVZrng26N2e9vkaC2TV7H6FiC91hEl
EstP+EoRTA2wSH6TUzmN0KUNgSFuS7/arofi3J2zrEK2gNFL+x8F7CkS
-----END PRIVATE KEY-----
`;
