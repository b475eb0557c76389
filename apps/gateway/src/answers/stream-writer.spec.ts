import { expect, it } from 'vitest';
import { useGateway } from '../../../../test/system/gateway-bench';
import { askEngine, ZOO_DOORS } from '../../../../test/system/zoo-doors';
import { readReply } from '../../../../test/system/zoo-replies';

const TOKENS = 12;
const doors = ZOO_DOORS.filter(({ name, dialects }) => dialects.includes('vllm') && name !== 'tokens');
const system = useGateway(doors.length, {
  dialect: 'vllm',
  tokens: TOKENS,
  // The engine sends each token alone.
  speed: 1,
  engine: { streamMs: 0 },
  gateway: { incrementalStreams: true },
});

it.each(doors)('a stream of $name goes on after tokens whose text is held back', async (door) => {
  const { text } = await askEngine(system.second.url, 'vllm', door, 1);
  // The texts of some tokens may begin the stop text, until the text of a later token does not continue it.
  const stop = `${text!.slice(6, 40)}#`;
  const reply = await system.gateway.post(door.path, door.body({ dialect: 'vllm', prompt: 1, stream: true, stop }));
  const found = readReply(reply.body as string);
  expect([found.text, found.usage.completion]).toEqual([text, TOKENS]);
});
