import type { GetContent, RequestOptions } from './http.ts';
import type { LineReader, RowBytes } from './lines.ts';
import { readAnswer, type Proof, type ProvedPlace } from './proof.ts';
import type { Backoff } from './retry.ts';

/**
 * The rows and proofs of one answer, which begins at `from`. The time until each chunk arrives counts as waiting.
 * `lines` says which lines are rows. Rejects as readAnswer and getContent do.
 */
export async function* answerOf(
  url: URL,
  from: ProvedPlace,
  backoff: Backoff,
  { getContent, ...options }: RequestOptions & { readonly getContent: GetContent },
  lines?: LineReader,
): AsyncGenerator<RowBytes | Proof, void, undefined> {
  const signal = backoff.begin();
  const request = () => getContent(url, 'application/x-ndjson', { ...options, signal });
  yield* readAnswer(waitedFor(await backoff.wait(request), backoff), from, lines);
}

async function* waitedFor(
  content: AsyncIterable<Buffer>,
  backoff: Backoff,
): AsyncGenerator<Buffer, void, undefined> {
  const chunks = content[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await backoff.wait(() => chunks.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}
