import { useEffect, useState } from 'react';
import { nowMs } from '../live/server-clock';

/** Returns the time of the server, milliseconds since 1970, and renders again each second. */
export function useNow(): number {
  const [now, setNow] = useState(nowMs);
  useEffect(() => {
    const timer = setInterval(() => setNow(nowMs()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
