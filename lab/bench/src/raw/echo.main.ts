import { connect } from 'nats';
import { answerParent } from '../child';

/** The least that NATS and nats.js cost: a subscription that answers what it gets. */
answerParent<{ natsUrl: string; subject: string }, void>(async ({ natsUrl, subject }) => {
  const nats = await connect({ servers: natsUrl });
  nats.subscribe(subject, { queue: 'echo', callback: (_, message) => message.respond(message.data) });
  await nats.flush();
});
