import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RoundResultsReply, RoundResultsRequest } from '@broomwagon/contracts';
import type { ControlPlane } from '@broomwagon/generation';
import { expect, it } from 'vitest';
import type { Exchange } from '../http/route';
import { ResultsStream } from './results-stream';

const page = (complete: boolean) => ({ groups: [], cursor: 'c', complete }) as unknown as RoundResultsReply;

it('waits between its calls even for a client that asks for no wait', async () => {
  const waits: (number | undefined)[] = [];
  const controlPlane = {
    call: () => Promise.resolve(page(false)),
    callWithRetry: (_: string, { waitMs }: RoundResultsRequest) => {
      waits.push(waitMs);
      return Promise.resolve(page(true));
    },
  } as unknown as ControlPlane;
  const stream = new ResultsStream(controlPlane);
  const server = createServer((request: IncomingMessage, response) => {
    void stream.answer({ request, response } as Exchange);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const query = 'job=j&roundId=r&trainerEpoch=1&waitMs=0';
  const text = await fetch(`http://127.0.0.1:${port}/?${query}`).then((answer) => answer.text());
  expect(text.trim().split('\n')).toHaveLength(2);
  expect(waits).toEqual([100]);
  server.close();
});
