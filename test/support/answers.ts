import assert from 'node:assert/strict';

type Asked = Response | Promise<Response>;

/** A problem document. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly parameter?: string;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** A page of rows. */
export interface Page<Row = Readonly<Record<string, unknown>>> {
  readonly data: readonly Row[];
  readonly page: {
    readonly limit: number;
    readonly hasMore: boolean;
    readonly nextCursor: string | null;
    readonly sort?: string;
    readonly total?: number;
    readonly totalIs?: string;
  };
}

/** The text of an answer, which must be 200. */
export async function textOf(asked: Asked): Promise<string> {
  const answer = await asked;
  const text = await answer.text();
  assert.equal(answer.status, 200, `${answer.url}: ${text.slice(0, 500)}`);
  return text;
}

/** The body of an answer that must be 200, from JSON. */
export async function jsonOf(asked: Asked): Promise<unknown> {
  return JSON.parse(await textOf(asked)) as unknown;
}

/** The lines of an answer that must be 200, each of which must be whole. */
export async function linesOf(asked: Asked): Promise<string[]> {
  const lines = (await textOf(asked)).split('\n');
  assert.equal(lines.pop(), '', 'the last line ends with LF, too');
  return lines;
}

/** The pages of a path with a query, each from the cursor of the one before, with their texts. */
export async function* pagesOf<Row>(
  server: { readonly get: (path: string) => Promise<Response> },
  path: string,
): AsyncGenerator<Page<Row> & { readonly text: string }, void, undefined> {
  for (let cursor = ''; ;) {
    const text = await textOf(server.get(path + cursor));
    const page = JSON.parse(text) as Page<Row>;
    yield { ...page, text };
    if (!page.page.hasMore) return;
    cursor = `&cursor=${page.page.nextCursor ?? assert.fail()}`;
  }
}

/** The ids in the lines of rows. */
export function idsIn(lines: readonly string[]): (string | number)[] {
  return lines.map((line) => (JSON.parse(line) as { id: string | number }).id);
}

/** The problem that a request is refused with. */
export async function problemOf(asked: Asked): Promise<Problem> {
  const answer = await asked;
  const problem = (await answer.json()) as Problem;
  assert.ok(answer.status >= 400, `${answer.url} was answered: ${JSON.stringify(problem).slice(0, 300)}`);
  assert.equal(problem.status, answer.status);
  return problem;
}

/**
 * Reads the beginning of an answer. The function reads the rest, and resolves with the number of its bytes. It rejects where
 * the answer is cut.
 */
export async function begun(asked: Asked): Promise<() => Promise<number>> {
  const { status, body, url } = await asked;
  assert.equal(status, 200, url);
  const reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  assert.ok(reader);
  await reader.read();
  return async () => {
    for (let bytes = 0; ;) {
      const { done, value } = await reader.read();
      if (done) return bytes;
      bytes += value.length;
    }
  };
}
