import '@mantine/core/styles.css';
import './console.css';
import { MantineProvider, createTheme } from '@mantine/core';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { SignIn } from './session/sign-in';
import { SessionProvider } from './session/session';
import { Shell } from './shell/shell';

/** Colors and sizes of the console, in both color schemes. */
const theme = createTheme({
  primaryColor: 'cyan',
  // White text on this shade has a contrast of 5.5.
  primaryShade: 9,
  autoContrast: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  defaultRadius: 'sm',
  headings: { fontWeight: '600' },
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <SessionProvider signIn={<SignIn />}>
        <Shell />
      </SessionProvider>
    </MantineProvider>
  </StrictMode>,
);
