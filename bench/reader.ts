import { createHash } from 'node:crypto';
import { request } from 'node:http';

/** What a stream gave. Two candidates gave the same when `md5` and `rows` are equal. */
export interface StreamReading {
  readonly rows: number;
  readonly bytes: number;
  /** Of the body as it came, content coding included; so it is compared for identity only. */
  readonly md5: string;
  readonly seconds: number;
  readonly firstByteSeconds: number;
}

const LF = 10;

/**
 * Reads a stream as fast as it comes and proves what came: rows (line ends), bytes, checksum. Rejects on any status but
 * 200 and on a cut. `verify: false` only counts bytes, for timing: hashing costs the client more than reading.
 */
export async function readStream(
  url: string,
  options: { verify: boolean; encoding?: string },
): Promise<StreamReading> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { headers: { 'accept-encoding': options.encoding ?? 'identity' }, agent: false },
      (response) => {
        if (response.statusCode !== 200) {
          reject(new Error(`${url} answered ${String(response.statusCode)}`));
          response.destroy();
          return;
        }
        const hash = createHash('md5');
        let rows = 0;
        let bytes = 0;
        let firstByteSeconds = 0;
        response.on('data', (chunk: Buffer) => {
          firstByteSeconds ||= (performance.now() - started) / 1000;
          bytes += chunk.length;
          if (!options.verify) return;
          hash.update(chunk);
          for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) rows++;
        });
        response.on('end', () => {
          const seconds = (performance.now() - started) / 1000;
          resolve({ rows, bytes, md5: hash.digest('hex'), seconds, firstByteSeconds });
        });
        response.on('error', reject);
      },
    );
    asked.on('error', reject);
    asked.end();
  });
}
