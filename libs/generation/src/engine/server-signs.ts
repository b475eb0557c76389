import { Injectable } from '@nestjs/common';
import { LIMITS, type Epoch, type ServerId, type ServerSigns as Signs } from '@broomwagon/contracts';
import type { Lease } from '../leases/lease-calls';

/** A server without calls is forgotten after this time, milliseconds. */
const FORGOTTEN_AFTER_MS = 600_000;

interface Stream {
  contextTokens: number;
  /** Number of events with tokens, and the times of the first and the last of them. */
  events: number;
  firstAtMs: number;
  lastAtMs: number;
}

interface SeenServer {
  serverId: ServerId;
  epoch: Epoch;
  streams: Set<Stream>;
  /** Time between two events of the last stream that has ended. */
  gapMs: number;
  /** Tokens since the last report. */
  tokens: number;
  /** Tokens of an event of the last stream since the last report that tells; see {@link CallSigns.noteInterval}. */
  observedInterval?: number;
  /** Time in which streams have run since the last token, until `countedAtMs`. */
  silentMs: number;
  countedAtMs: number;
}

/** Signs of life that one call reports of its server. */
export interface CallSigns {
  /** Tokens, or parts of an answer, have arrived. */
  receive(count: number): void;
  /** @param tokens mean tokens of an event, if they are not as the engine was asked; 0: they are */
  noteInterval(tokens: number): void;
  /** The stream has ended. */
  end(): void;
}

/**
 * Counts the signs of life of each server in the calls of this process, for the heartbeat. Silence is counted only
 * while a stream runs, beyond the time that streams of the server usually need for an event of several tokens. A stream
 * without tokens does not end the silence: callers of a hung engine may give up one after the other.
 */
@Injectable()
export class ServerSigns {
  private readonly servers = new Map<string, SeenServer>();

  /** @param contextTokens tokens of the prompt; undefined: the answer is no stream, and silence is not counted */
  begin({ serverId, epoch }: Pick<Lease, 'serverId' | 'epoch'>, contextTokens: number | undefined): CallSigns {
    const name = `${serverId} ${epoch}`;
    const server = this.servers.get(name) ?? {
      serverId,
      epoch,
      streams: new Set(),
      gapMs: 0,
      tokens: 0,
      silentMs: 0,
      countedAtMs: 0,
    };
    this.servers.set(name, server);
    const stream: Stream = { contextTokens: contextTokens ?? 0, events: 0, firstAtMs: 0, lastAtMs: 0 };
    countSilence(server);
    if (contextTokens !== undefined) server.streams.add(stream);
    return {
      receive: (count) => {
        stream.lastAtMs = performance.now();
        if (stream.events === 0) stream.firstAtMs = stream.lastAtMs;
        stream.events += 1;
        server.tokens += count;
      },
      noteInterval: (tokens) => {
        server.observedInterval = tokens;
      },
      end: () => {
        countSilence(server);
        server.streams.delete(stream);
        server.gapMs = findGapMs(stream) ?? server.gapMs;
      },
    };
  }

  /** Reports at most {@link LIMITS.page} servers that have streams or have sent tokens since the last report. */
  report(): Signs[] {
    const reports: Signs[] = [];
    const known = [...this.servers];
    for (const [name, server] of known) {
      if (reports.length === LIMITS.page) break;
      const { serverId, epoch, streams, tokens, observedInterval } = server;
      const isIdle = streams.size === 0 && tokens === 0;
      if (isIdle && performance.now() - server.countedAtMs < FORGOTTEN_AFTER_MS) continue;
      this.servers.delete(name);
      if (isIdle) continue;
      // The reported server goes behind the others, which come first in the next report.
      this.servers.set(name, server);
      countSilence(server);
      if (tokens > 0) server.silentMs = 0;
      server.tokens = 0;
      server.observedInterval = undefined;
      const waiting = [...streams].filter(({ events }) => events === 0);
      const gapMs = Math.max(0, ...[...streams].map((stream) => findGapMs(stream) ?? server.gapMs));
      const contextTokens = Math.max(0, ...waiting.map((stream) => stream.contextTokens));
      reports.push({
        serverId,
        epoch,
        tokens,
        silentMs: Math.max(0, Math.round(server.silentMs - gapMs)),
        ...(contextTokens > 0 && { contextTokens }),
        ...(observedInterval !== undefined && { observedStreamInterval: observedInterval }),
      });
    }
    return reports;
  }
}

/** Mean time between two events of a stream; undefined before the second event. */
function findGapMs({ events, firstAtMs, lastAtMs }: Stream): number | undefined {
  return events < 2 ? undefined : (lastAtMs - firstAtMs) / (events - 1);
}

function countSilence(server: SeenServer): void {
  const nowMs = performance.now();
  if (server.streams.size > 0) server.silentMs += nowMs - server.countedAtMs;
  server.countedAtMs = nowMs;
}
