import assert from 'node:assert/strict';

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
