import { answerParent } from '../child';
import { bursts, closedLoop, openLoop, type RunningLoad } from './loads';
import type { Job, JobResult } from './jobs';
import { listLoad } from './list-load';
import { NatsSocket } from './nats-socket';
import { scriptLoad } from './script-load';

/** The load generator: one job at a time. The first question is `{ natsUrl }`. */
let socket: NatsSocket;
let running: RunningLoad | undefined;

function load(job: Exclude<Job, { kind: 'script' }>): RunningLoad {
  if (job.kind === 'open') return openLoop(socket, job);
  if (job.kind === 'many') return bursts(socket, job);
  if (job.kind === 'list') return listLoad(socket, job);
  return closedLoop(socket, job);
}

answerParent<Job | { natsUrl: string }, JobResult | undefined>(async (question) => {
  if ('natsUrl' in question) {
    socket = await NatsSocket.connect(question.natsUrl, (token, body, hasHeaders) => {
      // Only errors have headers; the numbers of a benchmark with refused requests mean nothing.
      if (hasHeaders) throw new Error(`Refused: ${body || 'no service handles the subject'}`);
      running!.reply(token, body);
    });
    return undefined;
  }
  if (question.kind === 'script') return scriptLoad(question);
  running = load(question);
  return running.done;
});
