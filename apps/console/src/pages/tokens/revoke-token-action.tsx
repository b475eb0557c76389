import { readData, type Schemas } from '@broomwagon/admin-client';
import { ActionButton } from '../../actions/action-button';
import { plainId } from '../../components/format';
import { useSession } from '../../session/session';

export function RevokeTokenAction({ token, onDone }: { token: Schemas['TokenStatus']; onDone(): void }) {
  const { client } = useSession();
  const { tokenId, name, role } = token;
  return (
    <ActionButton
      label="Revoke"
      title={`Revoke ${plainId(name)}?`}
      about={`Every request with this token of the role ${role} is refused within five seconds. This cannot be undone.`}
      role="admin"
      isDangerous
      run={async (key) => {
        const params = { path: { tokenId }, header: { 'Idempotency-Key': key } };
        const { revoked } = await readData(client.DELETE('/api/v1/tokens/{tokenId}', { params }));
        return revoked ? `The token ${name} is revoked.` : `The token ${name} was revoked before.`;
      }}
      onDone={onDone}
    />
  );
}
