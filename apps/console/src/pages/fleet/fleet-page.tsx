import { Text } from '@mantine/core';
import { useScope } from '../../shell/scope';

export default function FleetPage() {
  const { status } = useScope();
  return <Text>{status.value?.perServer.map(({ serverId }) => serverId).join(', ')}</Text>;
}
