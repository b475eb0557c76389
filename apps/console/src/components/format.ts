const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });

export const count = (value: number): string => whole.format(value);
export const compact = (value: number): string => short.format(value);
export const percent = (share: number, digits = 0): string => `${(share * 100).toFixed(digits)} %`;
/** Time of day of milliseconds since 1970. */
export const clock = (ms: number): string => time.format(ms);

/** A duration in its two largest units. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.round((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.round((seconds % 86_400) / 3_600)} h`;
}
