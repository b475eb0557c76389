import type { TokenIncrement } from '@broomwagon/engines';
import { TokenBuffer } from '@broomwagon/generation';
import type { MessageLog } from './message-log';
import type { TokenNames } from './token-names';

/** The tokens of a response, over all its calls. */
export class TokenLog extends TokenBuffer {
  /**
   * @param stops stop texts; engines search them in the text of one call only
   * @param keepsStop the text contains the stop text that ended it
   * @param message parts of the text of a chat
   * @param names names of the tokens, if the client reads them
   */
  constructor(
    stops: readonly string[],
    keepsStop: boolean,
    readonly message?: MessageLog,
    readonly names?: TokenNames,
  ) {
    super(stops, keepsStop);
  }

  override clear(): void {
    this.message?.clear();
    this.names?.clear();
    super.clear();
  }

  protected override append(increment: TokenIncrement): void {
    this.message?.take(increment);
    this.names?.take(increment);
    super.append(increment);
  }

  protected override onRemoved(text: string): void {
    this.message?.removeEnd(text);
  }

  protected override onOpen(length: number): void {
    this.message?.holdEnd(length);
  }
}
