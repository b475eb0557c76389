/** How TLS to NATS or Redis is spoken, as `node:tls` takes it. Texts in PEM. */
export interface TlsSettings {
  /**
   * Certificates of the authorities that may have signed the certificate of the server; default: all that Node trusts.
   */
  ca?: string;
  /** Certificate and key of this client, for a server that wants one. */
  cert?: string;
  key?: string;
  /** Name that the server's certificate must hold, and that it is asked for (SNI); default: the host of the address. */
  servername?: string;
}

export const NO_TLS_ADVICE = 'it does not support TLS, but the address requires it';

/** Codes of Node that refuse a certificate: its chain, its dates. */
const CHAIN = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CA_|INVALID_CA|PATH_LENGTH_|CRL_|ERROR_IN_CERT)/;

/**
 * Why TLS did not come about, and which setting helps; undefined for an error that is none of TLS. Trying again does
 * not help.
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
