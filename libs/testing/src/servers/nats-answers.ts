import { connect } from 'node:net';

/** Fields that we read of the INFO line with which a NATS server greets every connection. */
export interface NatsGreeting {
  server_name?: string;
  jetstream?: boolean;
  version?: string;
}

/** Connects, reads the greeting and leaves. Rejects when there is none within two seconds. */
export function natsAnswers(host: string, port: number): Promise<NatsGreeting> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect({ host, port });
    socket.setTimeout(2_000, () => socket.destroy(new Error('no greeting')));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      const line = /^INFO (\{.*\})\s*\r\n/.exec(text);
      if (line?.[1] === undefined) return;
      socket.destroy();
      try {
        resolve(JSON.parse(line[1]) as NatsGreeting);
      } catch (error) {
        reject(error as Error);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed without a greeting')));
  });
}
