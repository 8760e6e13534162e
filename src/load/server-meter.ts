import type { ServerSide } from './figures.ts';
import { Connection } from './http/connection.ts';
import { answerOver } from './http/get.ts';
import { readMetrics, serverSide, type Reading } from './server-side.ts';
import type { MetricsPlace } from './target.ts';

/** Reads /metrics again and again, over one connection. */
export class ServerMeter {
  readonly #connection: Connection;
  readonly #request: string;
  #last: Reading | null = null;
  #isReading = false;

  constructor({ requests, path }: MetricsPlace) {
    this.#connection = new Connection(requests.origin);
    this.#request = requests.get(path, { accept: '*/*', coding: 'identity' });
  }

  /** What the server did since the reading before. null for the first reading, and when it does not answer. */
  async read(): Promise<ServerSide | null> {
    if (this.#isReading) return null;
    this.#isReading = true;
    try {
      const { head, body } = await answerOver(this.#connection, this.#request);
      if (head.status !== 200) return null;
      const before = this.#last;
      this.#last = readMetrics(body.toString(), performance.now());
      return before && serverSide(before, this.#last);
    } catch {
      return null; // the load shows that the server is gone, and counts it
    } finally {
      this.#isReading = false;
    }
  }

  close(): void {
    this.#connection.close();
  }
}
