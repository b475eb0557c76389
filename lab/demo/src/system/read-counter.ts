/** Sum of a counter of a service over all its series with a label, such as `outcome="sent"`. */
export async function readCounter(port: number, name: string, label: string): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = page.split('\n').filter((line) => line.startsWith(`broomwagon_${name}{`) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
