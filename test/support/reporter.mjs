import { relative } from 'node:path';
import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';

/**
 * Node's spec reporter, with the skipped tests and their reasons right before its closing summary, which stays the last thing
 * said. With TEST_SUMMARY=1 passed tests are not listed. JavaScript, because Node 20 loads reporters without tsx.
 *
 * @param {AsyncIterable<import('node:test/reporters').TestEvent>} source
 */
export default async function* reporter(source) {
  for await (const text of Readable.from(withSkipped(source)).pipe(new spec())) yield String(text);
}

/** @param {AsyncIterable<import('node:test/reporters').TestEvent>} source */
async function* withSkipped(source) {
  /** @type {Map<string, string[]>} tests by the reason why they were skipped */
  const skipped = new Map();
  /** @type {Map<string, number>} milliseconds that the tests of a file took one after another */
  const took = new Map();
  for await (const event of source) {
    if (event.type === 'test:pass' && event.data.skip) {
      const reason = event.data.skip === true ? 'no reason given' : event.data.skip;
      const name = `${relative(process.cwd(), event.data.file ?? '')}: ${event.data.name}`;
      skipped.set(reason, [...(skipped.get(reason) ?? []), name]);
    }
    if ((event.type === 'test:pass' || event.type === 'test:fail') && event.data.nesting === 0) {
      const file = relative(process.cwd(), event.data.file ?? '');
      took.set(file, (took.get(file) ?? 0) + event.data.details.duration_ms);
    }
    if (
      event.type === 'test:diagnostic' &&
      event.data.nesting === 0 &&
      /^tests \d/.test(event.data.message)
    ) {
      for (const [reason, names] of skipped) {
        const message = `skipped, ${reason}:\n    ${names.join('\n    ')}`;
        yield { ...event, data: { ...event.data, message } };
      }
      yield { ...event, data: { ...event.data, message: `slowest files: ${slowest(took)}` } };
    }
    // Starts and ends go together: the reporter counts one by the other.
    if (process.env.TEST_SUMMARY && ['test:start', 'test:pass'].includes(event.type)) continue;
    yield event;
  }
}

/** @param {Map<string, number>} took */
function slowest(took) {
  const files = [...took].sort(([, a], [, b]) => b - a).slice(0, Number(process.env.TEST_SLOWEST ?? 10));
  return files.map(([file, ms]) => `${file} ${Math.round(ms / 1000)} s`).join(', ');
}
