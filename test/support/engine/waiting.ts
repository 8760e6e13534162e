import type { Serve } from '../../../src/engine/edge.ts';
import type { Sink } from '../../../src/pipeline/sink.ts';

/** Longer than a stream keeps its batch for a reader that takes nothing (1 s). Milliseconds. */
const QUIET_MS = 1_300;

const ignore = () => undefined;

/**
 * Observes streams that wait for their readers. `tap` stands between the engine and the application and sees
 * each write.
 */
export class Waiting {
  /** The number of streams whose socket takes no more at present. */
  streams = 0;
  #ended = 0;
  /** Checks whether nothing moves. */
  #changed: () => void = ignore;

  readonly tap = (serve: Serve): Serve => {
    return async (request) => {
      const reply = await serve(request);
      const { body } = reply;
      if (body.kind !== 'stream') return reply;
      return { ...reply, body: { ...body, run: (sink) => this.#run(body.run, sink) } };
    };
  };

  /** Resolves when `streams` streams, counted from now on, wait or have ended, and nothing moves. */
  async until(streams: number): Promise<void> {
    this.#ended = 0;
    await new Promise<void>((resolve) => {
      let quiet: NodeJS.Timeout | undefined;
      this.#changed = () => {
        clearTimeout(quiet);
        if (this.streams + this.#ended === streams) quiet = setTimeout(resolve, QUIET_MS);
      };
    });
    this.#changed = ignore;
  }

  async #run(run: (sink: Sink) => Promise<void>, sink: Sink): Promise<void> {
    const counted = (blocked: void | Promise<void>) => blocked && wait(blocked);
    const wait = async (blocked: Promise<void>) => {
      this.streams++;
      this.#changed();
      try {
        await blocked;
      } finally {
        this.streams--;
        this.#changed();
      }
    };
    await run({
      ...{ chunkBytes: sink.chunkBytes, signal: sink.signal },
      write: (chunk) => counted(sink.write(chunk)),
      flush: () => counted(sink.flush()),
      end: () => sink.end(),
      fail: (error) => sink.fail(error),
    });
    this.#ended++;
    this.#changed();
  }
}
