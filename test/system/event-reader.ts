import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 20;

/**
 * Collects the sequence numbers of all events of a pool; continues after the last one on a new connection.
 * @param open `GET /events` with these headers
 */
export async function readEvents(
  open: (headers: Record<string, string>) => Promise<Response>,
  sequences: number[],
  signal: AbortSignal,
): Promise<void> {
  let lastId = '0';
  while (!signal.aborted) {
    try {
      const response = await open({ 'Last-Event-ID': lastId });
      let text = '';
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream(), { signal })) {
        const parts = (text + chunk).split('\n\n');
        text = parts.pop()!;
        for (const part of parts) {
          const [, id, data] = /^id: (\d+)\n.*\ndata: (.*)$/.exec(part) ?? [];
          if (id === undefined) continue;
          lastId = id;
          sequences.push((JSON.parse(data!) as { sequence: number }).sequence);
        }
      }
    } catch {
      await delay(PAUSE_MS);
    }
  }
}
