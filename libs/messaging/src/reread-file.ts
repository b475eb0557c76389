import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';

/**
 * A file with credentials, which is read again for each connection, because operators, cert-manager or the Vault agent
 * replace such files while a service runs. While the file cannot be read, its last content is used, with a warning.
 */
export class RereadFile {
  private readonly logger = new Logger('Credentials');
  private content: string;

  /** @throws Error of Node if the file cannot be read */
  constructor(private readonly path: string) {
    this.content = readFileSync(path, 'utf8');
  }

  /** Returns the present content of the file. Never throws. */
  read(): string {
    try {
      this.content = readFileSync(this.path, 'utf8');
    } catch (error) {
      this.logger.warn({ path: this.path, err: error }, 'The file cannot be read; its last content is used');
    }
    return this.content;
  }
}
