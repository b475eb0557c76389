import type { AdminApiError } from '@broomwagon/admin-client';
import { Alert, Code, Text } from '@mantine/core';
import { isGone } from '../live/live-state';

interface ProblemProps {
  error?: AdminApiError;
  /** Sentences above the reason, for example about the part that is down. */
  about?: string;
}

export function Problem({ error, about }: ProblemProps) {
  if (error === undefined) return null;
  const { code, reason, field, requestId } = error;
  return (
    <Alert color="red" title={isGone(error) ? `Gone: ${code}` : code} role="alert">
      {about !== undefined && <Text size="sm">{about}</Text>}
      <Text size="sm">{reason}</Text>
      {field !== undefined && (
        <Text size="sm">
          Field: <Code>{field}</Code>
        </Text>
      )}
      <Text size="sm" mt={4}>
        {formatAdvice(error)}
      </Text>
      {requestId !== undefined && (
        <Text size="xs" c="dimmed">
          Request {requestId}: the logs and the audit log have this id.
        </Text>
      )}
    </Alert>
  );
}

/** Names the part that does not answer, as one sentence. */
export function formatPart(error: AdminApiError): string {
  const { code, status } = error;
  if (isGone(error)) return 'The services do not know what this address names.';
  if (code === 'UNREACHABLE') return 'admin-api does not answer: it is down, or the network to it is.';
  if (code === 'TIMED_OUT') return 'admin-api has not answered in time: it hangs, or the network does.';
  if (code === 'UNEXPECTED_REPLY') return `Another program answers in the place of admin-api (status ${status}).`;
  if (code === 'TIMEOUT') return 'admin-api answers, but a service behind it has not answered in time.';
  if (status !== undefined && status >= 500) return 'admin-api answers, but a part behind it does not.';
  return 'admin-api answers, and refuses the request.';
}

function formatAdvice(error: AdminApiError): string {
  const { code, retryable, field } = error;
  if (isGone(error)) return 'It was deleted or has ended, or the address is wrong. Choose another one above.';
  if (code === 'UNAUTHENTICATED') return 'Sign out and sign in with a valid token.';
  if (code === 'FORBIDDEN') return 'Sign in with a token of a higher role or for this pool.';
  if (code === 'OUTCOME_UNKNOWN') return 'Read the state before you try again: the change may have been made.';
  if (retryable) return 'Nothing is wrong with the request: try again in a moment.';
  if (field !== undefined) return 'Change this field: the same request will fail again.';
  return 'Nothing was changed. The same request will fail again until the state of the system is another.';
}
