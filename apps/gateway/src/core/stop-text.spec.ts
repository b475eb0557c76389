import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { useGateway } from '../../../../test/system/gateway-bench';

/** Words of the responses. Token id 100 + n is the n-th word. */
const WORDS = [
  'The',
  ' quick',
  ' brown',
  ' fox',
  ' jumps',
  ' over',
  ' the',
  ' lazy',
  ' dog',
  '</ans',
  'wer>',
  ' again',
];
const PROMPT = [1, 2, 3];
const STOP = '</answer>';

const system = useGateway(60, { dialect: 'vllm', registered: 'none' });
let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/**
 * A vLLM that withholds `longest stop text - 1` characters of text, as vLLM does unless the output includes stop texts.
 * It breaks the first call of each response.
 */
async function startEngine(breaksAfter: number): Promise<void> {
  server = createServer((request, response) => {
    let json = '';
    request.on('data', (chunk: Buffer) => (json += chunk.toString()));
    request.on('end', () => {
      if (!request.url!.endsWith('completions')) return void response.writeHead(404).end();
      const body = JSON.parse(json) as { prompt?: number[]; stop: string[]; include_stop_str_in_output?: boolean };
      const isChat = body.prompt === undefined;
      const promptIds = Array.isArray(body.prompt) ? body.prompt : PROMPT;
      const withheld = body.include_stop_str_in_output ? 0 : STOP.length - 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let [text, sent] = ['', 0];
      const first = promptIds.filter((one) => one >= 100).length;
      for (let index = first; index < WORDS.length; index++) {
        text += WORDS[index]!;
        const at = text.indexOf(STOP);
        const isLast = at >= 0 || index === WORDS.length - 1;
        if (at >= 0) text = text.slice(0, at + (withheld === 0 ? STOP.length : 0));
        const to = isLast ? text.length : Math.max(sent, text.length - withheld);
        const piece = text.slice(sent, to);
        sent = to;
        const choice = {
          index: 0,
          ...(isChat ? { delta: { content: piece } } : { text: piece }),
          token_ids: [100 + index],
          finish_reason: isLast ? 'stop' : null,
          stop_reason: at >= 0 ? STOP : null,
        };
        const event = `data: ${JSON.stringify({ choices: [choice], prompt_token_ids: promptIds })}\n\n`;
        if (first === 0 && index + 1 === breaksAfter) return void response.write(event, () => response.destroy());
        response.write(event);
        if (isLast) break;
      }
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The server answers only completions, so a probe would not accept it as an engine.
  const engine = { endpoint, dialect: 'vllm' as const, model: 'simulated', probe: false };
  await system.bench.register({ serverId: 's9', instanceId: 'i9', ...engine });
}

const SHARED = { model: 'simulated', max_tokens: 50, stop: [STOP], return_token_ids: true };
const CASES: [string, object][] = [
  ['/v1/completions', { ...SHARED, prompt: PROMPT }],
  ['/v1/completions', { ...SHARED, prompt: 'hi' }],
  ['/v1/chat/completions', { ...SHARED, messages: [{ role: 'user', content: 'hi' }] }],
  ['/generate', { input_ids: PROMPT, sampling_params: { max_new_tokens: 50, stop: [STOP] } }],
];

/** Text and ids of an answer, or of all chunks of a stream. */
function read(text: string): { text: string; ids: number[]; pieces: string[] } {
  const events = text.startsWith('data:')
    ? text.split('\n\n').flatMap((event) => (event.startsWith('data: {') ? [JSON.parse(event.slice(6))] : []))
    : [JSON.parse(text)];
  const parts = events.map((event) => event.choices?.[0] ?? event);
  const texts: string[] = parts.map((part) => part.text ?? (part.message ?? part.delta)?.content ?? '');
  // Chunks of `/generate` repeat all text.
  const isWhole = parts[0].meta_info !== undefined;
  const ids = parts.map((part) => part.token_ids ?? part.output_ids ?? []);
  return {
    text: isWhole ? texts.at(-1)! : texts.join(''),
    ids: isWhole ? ids.at(-1) : ids.flat(),
    pieces: texts,
  };
}

it.each([4, 9, 10])(
  'a response that is cut after %s tokens has the text of all its ids, without the stop text',
  async (cut) => {
    await startEngine(cut);
    for (const [path, body] of CASES) {
      for (const stream of [false, true]) {
        const response = await fetch(`${system.gateway.url}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, stream }),
        });
        expect(response.status).toBe(200);
        const answer = read(await response.text());
        expect([path, stream, answer.text]).toEqual([path, stream, 'The quick brown fox jumps over the lazy dog']);
        expect(answer.ids).toEqual(Array.from({ length: 11 }, (_, index) => 100 + index));
        expect(answer.pieces.some((piece) => piece.includes('<'))).toBe(false);
      }
    }
  },
);
