import { Injectable } from '@nestjs/common';
import { isBroomwagonError, RoundResultsRequest, type RoundResultsReply } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { fieldsOfQuery, validate } from '@broomwagon/messaging';
import { writePart } from '@broomwagon/platform';
import type { Exchange } from '../http/route';
import { CALL_TIMEOUT_MS, parseQuery, REPEAT_MS } from './calls';

const DEFAULT_WAIT_MS = 15_000;
/** Minimum wait: without a wait, the coordinator would be called continuously while a round is open. */
const MIN_WAIT_MS = 100;

/** `round.results` as a stream of JSON lines, from a cursor until the round is completed. */
@Injectable()
export class ResultsStream {
  constructor(private readonly controlPlane: ControlPlane) {}

  /**
   * Writes each group as a line. A line with the other fields of the reply (the cursor that continues the stream, and
   * `complete`) follows the groups of a page, and each wait of `waitMs` without a group. An error is the last line.
   * @throws BroomwagonError of `round.results`, if nothing was sent
   */
  async answer({ request, response }: Exchange): Promise<void> {
    const given = validate(RoundResultsRequest, fieldsOfQuery(RoundResultsRequest, parseQuery(request)));
    const asked = { ...given, waitMs: Math.max(MIN_WAIT_MS, given.waitMs ?? DEFAULT_WAIT_MS) };
    let page = await this.controlPlane.call('round.results', { ...asked, waitMs: 0 }, { timeoutMs: CALL_TIMEOUT_MS });
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    try {
      while ((await writePart(response, formatLines(page))) && !page.complete) {
        const { cursor, stamp } = page;
        page = await this.next({ ...asked, cursor, stamp });
      }
    } catch (error) {
      if (!isBroomwagonError(error)) throw error;
      response.write(`${JSON.stringify({ error: error.toWire() })}\n`);
    }
    response.end();
  }

  private next(body: RoundResultsRequest & { waitMs: number }): Promise<RoundResultsReply> {
    const attemptTimeoutMs = CALL_TIMEOUT_MS + body.waitMs;
    const deadlineMs = REPEAT_MS + attemptTimeoutMs;
    return this.controlPlane.callWithRetry('round.results', body, { attemptTimeoutMs, deadlineMs });
  }
}

function formatLines({ groups, ...rest }: RoundResultsReply): string {
  return [...groups, rest].map((line) => `${JSON.stringify(line)}\n`).join('');
}
