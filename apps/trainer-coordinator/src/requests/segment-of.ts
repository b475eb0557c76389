import { invalidField, type FailRequest, type JobId, type PoolName, type RequestId } from '@broomwagon/contracts';
import type { PayloadStore, SegmentArgs } from '@broomwagon/state';

/**
 * The arguments of a transition that replace the field `segment` of a message.
 * @param field names the segment in an error
 * @throws BroomwagonError VALIDATION_FAILED when the segment names another attempt, or a payload of no store;
 *   PAYLOAD_FOREIGN when it names a payload of another pool, job or request
 */
export function toSegmentArgs(
  payloads: PayloadStore,
  pool: PoolName,
  { requestId, attempt, segment }: Pick<FailRequest, 'requestId' | 'attempt' | 'segment'>,
  field = 'segment',
): SegmentArgs & { segment: string | undefined } {
  if (segment === undefined) return { segment, tokens: 0 };
  if (segment.attempt !== attempt) {
    throw invalidField(`${field}.attempt`, 'must be the attempt of the message');
  }
  payloads.requireRef(segment.ref, { pool, job: toJobId(requestId), owner: requestId }, `${field}.ref`);
  return { segment: JSON.stringify(segment), tokens: segment.tokenCount };
}

/** The job of a request. */
export function toJobId(requestId: RequestId): JobId {
  return requestId.slice(0, requestId.indexOf('/'));
}
