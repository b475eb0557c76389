import '@mantine/core/styles.css';
import './console.css';
import { MantineProvider } from '@mantine/core';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { SignIn } from './session/sign-in';
import { SessionProvider } from './session/session';
import { Shell } from './shell/shell';
import { theme } from './theme';

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <SessionProvider signIn={<SignIn />}>
        <Shell />
      </SessionProvider>
    </MantineProvider>
  </StrictMode>,
);
