/**
 * node bench/fetch-client.ts URL [CODING]
 *
 * Reads a stream with Node's own fetch and its default headers, or with CODING as Accept-Encoding. Prints one line of JSON: the duration, the number of
 * rows and the number of chunks.
 */
const LF = 0x0a;

const started = performance.now();
const [, , url = '', asked] = process.argv;
const response = await fetch(url, asked === undefined ? {} : { headers: { 'accept-encoding': asked } });
if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
let rows = 0;
let chunks = 0;
for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
  chunks++;
  for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) rows++;
}
const seconds = (performance.now() - started) / 1000;
const coding = response.headers.get('content-encoding') ?? '';
process.stdout.write(`${JSON.stringify({ seconds, rows, chunks, coding })}\n`);
