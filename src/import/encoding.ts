import { UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import { BrokenSource } from './row.ts';

/** The name of an encoding, as TextDecoder has it. Throws UsageError for one that it does not know. */
export function encodingOf(label: string): string {
  try {
    return new TextDecoder(label).encoding;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(
      `--encoding takes an encoding of the WHATWG, such as windows-1252, iso-8859-15 or utf-16le; got ${quoted(label)}`,
    );
  }
}

/** A content in UTF-8. Rejects with BrokenSource when it has bytes that the encoding has no characters for. */
export async function* inUtf8(
  source: AsyncIterable<Buffer>,
  encoding: string,
): AsyncGenerator<Buffer, void, undefined> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let bytes = 0;
  const decoded = (chunk?: Buffer): string => {
    try {
      // Node 20 reads windows-1252 as Latin-1 unless it is asked for a stream.
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new BrokenSource(
        `the file is not ${encoding}: bytes ${bytes} or later are none of its characters`,
      );
    }
  };
  for await (const chunk of source) {
    const text = decoded(chunk);
    bytes += chunk.length;
    if (text !== '') yield Buffer.from(text);
  }
  const rest = decoded();
  if (rest !== '') yield Buffer.from(rest);
}
