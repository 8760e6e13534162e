import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/**
 * Asks a question on a terminal. Resolves with whether the answer is y or yes. The end of the input is no. Rejects with
 * the signal's reason when it is aborted.
 */
export async function askYesNo(
  question: string,
  input: Readable,
  output: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  // Without raw mode, so that Ctrl-C still reaches the process as a signal.
  const lines = createInterface({ input, terminal: false });
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(''));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      output.write(question);
    });
    return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}
