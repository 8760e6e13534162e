import type { Sink } from './sink.ts';

/**
 * Writes a message for the reader before its stream is cut. The reader may be gone, and the message is then lost. Never
 * rejects.
 */
export async function lastWords(sink: Sink, text: string): Promise<void> {
  try {
    await sink.write(Buffer.from(text));
    await sink.flush();
    await sink.flush(); // the first flush may only start the sink's work, this one waits for it
  } catch {
    // The caller reports what broke the stream. That the reader cannot be told is not worth a report.
  }
}
