import { connect } from 'nats';
import { answerParent } from '../child';

/** A subscription that answers with the received data: the least cost of NATS and nats.js. */
answerParent<{ natsUrl: string; subject: string }, void>(async ({ natsUrl, subject }) => {
  const nats = await connect({ servers: natsUrl });
  nats.subscribe(subject, { queue: 'echo', callback: (_, message) => message.respond(message.data) });
  await nats.flush();
});
