import type { Sink } from './sink.ts';

/**
 * Writes what a reader is to know before its stream is cut. As far as possible: the reader may be gone, and then nobody
 * is left to be told. Never rejects.
 */
export async function lastWords(sink: Sink, text: string): Promise<void> {
  try {
    await sink.write(Buffer.from(text));
    await sink.flush();
    await sink.flush(); // a sink that works on what it flushes is through with it
  } catch {
    // What broke the stream is told by whoever calls; that it cannot be told to the reader is no news.
  }
}
