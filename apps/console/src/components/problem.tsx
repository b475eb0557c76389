import type { AdminApiError } from '@broomwagon/admin-client';
import { Alert, Code, Text } from '@mantine/core';

export function Problem({ error }: { error?: AdminApiError }) {
  if (error === undefined) return null;
  const { code, reason, field, requestId } = error;
  return (
    <Alert color="red" title={code} role="alert">
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

function formatAdvice({ code, retryable, field }: AdminApiError): string {
  if (code === 'UNAUTHENTICATED') return 'Sign out and sign in with a valid token.';
  if (code === 'FORBIDDEN') return 'Sign in with a token of a higher role or for this pool.';
  if (code === 'OUTCOME_UNKNOWN') return 'Read the state before you try again: the change may have been made.';
  if (retryable) return 'Nothing is wrong with the request: try again in a moment.';
  if (field !== undefined) return 'Change this field: the same request will fail again.';
  return 'Nothing was changed. The same request will fail again until the state of the system is another.';
}
