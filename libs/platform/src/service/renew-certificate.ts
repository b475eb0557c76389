import type { Server } from 'node:http';
import { Server as TlsServer, type SecureContextOptions } from 'node:tls';
import { Logger } from '@nestjs/common';

const CHECK_EVERY_MS = 60_000;
const logger = new Logger('Certificate');

/**
 * Sets the certificate of an HTTPS server again when the certificate files have changed, as by cert-manager. If the new
 * files cannot be used, the server keeps the previous certificate, and the log has an error.
 * @param read reads certificate and key from their files
 */
export function renewCertificate(
  server: Server,
  read: () => SecureContextOptions | undefined,
  checkEveryMs = CHECK_EVERY_MS,
): void {
  if (!(server instanceof TlsServer)) return;
  let used = JSON.stringify(read());
  const timer = setInterval(() => {
    try {
      const settings = read();
      const text = JSON.stringify(settings);
      if (settings === undefined || text === used) return;
      server.setSecureContext(settings);
      used = text;
      logger.log('New connections use the renewed certificate');
    } catch (error) {
      logger.error({ err: error }, 'The files of the certificate cannot be used; the certificate before stays');
    }
  }, checkEveryMs).unref();
  server.once('close', () => clearInterval(timer));
}
