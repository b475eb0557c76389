/** Options of `node:tls` for connections to NATS or Redis. Texts are PEM. */
export interface TlsSettings {
  /** Certificates of the authorities that may sign the certificate of the server; default: the authorities of Node. */
  ca?: string;
  /** Client certificate, with `key`. */
  cert?: string;
  key?: string;
  /** Name in the certificate of the server, also sent as SNI; default: the host of the address. */
  servername?: string;
}

export const NO_TLS_ADVICE = 'it does not support TLS, but the address requires it';

/** Error codes of Node for a certificate with a wrong chain or date. */
const CHAIN = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CA_|INVALID_CA|PATH_LENGTH_|CRL_|ERROR_IN_CERT)/;

/**
 * Returns why a TLS handshake failed, and which setting to change; undefined for other errors. A repeat of the
 * handshake does not help.
 * @param settings first part of the names of the settings, e.g. `NATS_TLS`
 */
export function tlsAdvice(error: unknown, settings: string): string | undefined {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `its certificate is for another name (${message}); set ${settings}_SERVER_NAME`;
  }
  if (CHAIN.test(code)) {
    return `its certificate is not accepted (${message}); set ${settings}_CA to the file of the CA that signed it`;
  }
  if (/certificate required|bad certificate|unknown ca|handshake failure/i.test(message)) {
    return `it requires a valid client certificate; set ${settings}_CERT and ${settings}_KEY`;
  }
  if (/wrong version number|packet length too long|no TLS handshake|before secure TLS connection/i.test(message)) {
    return NO_TLS_ADVICE;
  }
  return undefined;
}
