import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

/** The samples of /metrics: `name{label="value"}` -> number. */
export async function samples(
  url: string | URL,
  headers: Readonly<Record<string, string>> = {},
): Promise<Map<string, number>> {
  const response = await fetch(new URL('/metrics', url), { headers: { connection: 'close', ...headers } });
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Resolves with the number of open streams, once all of them have released their batches and wait for their readers. */
export async function stalledStreams(url: string, isEnough: (streams: number) => boolean): Promise<number> {
  for (;;) {
    const gauges = await samples(url);
    const [open, stalled] = ['open', 'stalled'].map((state) => gauges.get(`sluice_streams_${state}`) ?? NaN);
    if (open !== undefined && open === stalled && isEnough(open)) return open;
    await pause(50);
  }
}
