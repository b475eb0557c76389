import { BroomwagonError, type Segment } from '@broomwagon/contracts';
import type { SegmentArgs } from '@broomwagon/state';

/**
 * The segment of a message as the scripts take it.
 * @param where names the message in an error, when there are several
 * @throws BroomwagonError VALIDATION_FAILED when the segment names another attempt
 */
export function segmentOf(body: { attempt: number; segment?: Segment }, where?: string): SegmentArgs {
  const { segment } = body;
  if (segment == null) return { tokens: 0 };
  if (segment.attempt !== body.attempt) {
    const of = where === undefined ? '' : ` (${where})`;
    throw new BroomwagonError('VALIDATION_FAILED', `segment.attempt must be the attempt of the message${of}`, {
      field: 'segment.attempt',
    });
  }
  return { segment: JSON.stringify(segment), tokens: segment.tokenCount };
}
