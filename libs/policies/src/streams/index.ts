export { estimateUnsent, type StreamPace } from './estimate-unsent';
export { allowedSilenceMs, hasStalled } from './silent-stream';
