import { Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useSignIn } from './session';

export function SignIn() {
  const { signIn, problem } = useSignIn();
  const [token, setToken] = useState('');
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={420}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (token.trim() !== '') signIn(token.trim());
          }}
        >
          <Stack>
            <Title order={1} size="h3">
              Broomwagon
            </Title>
            <PasswordInput
              label="Token"
              description="It is kept until this tab is closed."
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              error={problem && `${problem.code}: ${problem.message}`}
              autoComplete="off"
              autoFocus
            />
            <Button type="submit">Sign in</Button>
            <Text size="sm" c="dimmed">
              <Code>npm start</Code> prints an address with a token. <Code>npx broomwagon tokens create</Code> makes
              tokens.
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}
