import { AppError, PROBLEMS, type ProblemCode } from '../errors.ts';
import { PROBLEM_PAGE } from '../serialize/schemas.ts';
import { serializers } from '../serialize/serializers.ts';
import { mediaTypeNegotiator } from './negotiate.ts';
import { parseQuery, quote } from './query.ts';
import { bytes, json } from './reply.ts';
import type { Route } from './router.ts';

/** What a client author is to know of each problem: why it came, and what to do about it. */
const EXPLANATIONS: Readonly<Record<ProblemCode, string>> = {
  'invalid-parameter':
    'A query parameter has a value that is not of its form. The detail says which form is expected; nothing is rounded, cut or ignored.',
  'unknown-parameter':
    'The resource has no parameter of this name. Names are case-sensitive. A parameter that is ignored would be a filter that does not filter, so it is refused.',
  'duplicate-parameter': 'A parameter was given twice. It would be a guess which one was meant.',
  'conflicting-parameters':
    'Parameters exclude each other: at most one of offset, page and cursor; min_price and max_price only with a price sort.',
  'offset-too-deep':
    'Counting to a row costs more the deeper it is. Take the nextCursor of any page and continue with cursor: every page then costs the same.',
  'invalid-cursor':
    'The cursor is not one that this server gave, or it was changed on the way. Use the nextCursor of a page unchanged.',
  'cursor-mismatch':
    'A cursor continues one order of one set of rows. Repeat the sort, category and price range of the page it came from. The cursor of a snapshot goes on at its own point in time, and in a stream only.',
  'snapshot-unsupported':
    'consistency=snapshot and at read all rows as they were at one point in time. That takes a MongoDB replica set; the embedded store and a single mongod have only the present.',
  'invalid-url': 'The path of the URL is not percent-encoded UTF-8.',
  'invalid-header':
    'A request header has a value that its RFC does not allow. The detail names the header. It is not ignored, because it may be the condition that keeps a write from doing harm.',
  'malformed-json':
    'The request body is empty, not UTF-8 or not JSON. The detail says at which line and column reading ended.',
  unauthorized:
    'The server asks for an API key. Send it as "Authorization: Bearer KEY"; it must be one that the operator entered.',
  'not-found': 'Nothing has this address: the path is no resource, or the item or user does not exist.',
  'method-not-allowed':
    'The resource exists, but does not take this method. Allow names those that it takes.',
  'not-acceptable':
    'The resource has no form that Accept or Accept-Encoding allows. The detail names the forms there are.',
  'export-not-complete':
    'An export has a file when its state is complete. While it is queued or running, ask for the export again; one that failed says why, and has to be ordered anew.',
  'snapshot-expired':
    'MongoDB keeps past states for some minutes only (minSnapshotHistoryWindowInSeconds, 5 minutes by default), and not beyond a change of the indexes. Begin anew with consistency=snapshot, or have the operator set a longer window.',
  'collection-replaced':
    'The collection was dropped, renamed or replaced by another one of the same name since this cursor or part was given. Rows of two collections together are the whole of neither, so a stream does not go on: drop what came before, and begin anew. A page goes on with such a cursor.',
  'precondition-failed':
    'If-Match names a state that the resource no longer has, or If-None-Match one that it has. Nothing was changed. Get the resource, decide again, and send its ETag.',
  'body-too-large': 'The request body is larger than this server takes.',
  'uri-too-long': 'The URL is longer than this server takes.',
  'unsupported-media-type':
    'The request body has a Content-Type or Content-Encoding that this operation does not take. Accept, Accept-Post, Accept-Patch or Accept-Encoding of the answer name those that it takes.',
  'range-not-satisfiable':
    'Range asks for bytes behind the end of the file. Content-Range says how long it is.',
  'invalid-body':
    'The request body is JSON, but not what this operation takes. errors lists all that is wrong: a JSON Pointer to the place, what was expected and what came.',
  'rate-limited':
    'This client made more requests than RATE_LIMIT allows. Wait as many seconds as Retry-After says; RateLimit tells what is left.',
  'too-many-streams':
    'This client has as many streams open as STREAM_LIMIT allows. Finish or close one before opening the next.',
  'too-many-exports':
    'This client has as many exports as EXPORT_LIMIT allows, those that are finished included. DELETE one that is not needed any more, or wait until one expires.',
  internal:
    'The server made a mistake, which it has logged. Quote the requestId to its operator. Repeating a GET does no harm.',
  overloaded: 'The server has as much to do as it can do well. Wait as many seconds as Retry-After says.',
  'store-unavailable':
    'The database behind the server does not answer. The server tries by itself; wait as many seconds as Retry-After says.',
  'store-unfit':
    'The database answers, but its rows would not come exactly once: the collection is gone or holds something else, an index is missing, partial or spoilt by an array, or the database does not let this server read it. The log and /readyz tell its operator what to mend; the server then goes on by itself.',
  'insufficient-storage': 'The disk under the store is full. Nothing of the request was kept.',
};

const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
};

/** GET /problems/{code}: what the `type` of a problem document leads to. */
export function problemRoutes(): readonly Route[] {
  const acceptable = mediaTypeNegotiator(['text/html', 'application/json']);
  return [
    {
      method: 'GET',
      path: '/problems/{code}',
      doc: {
        id: 'getProblem',
        tag: 'Server',
        open: true,
        summary: 'What a problem means',
        description: 'Where the `type` of a problem document leads to.',
        path: {
          code: {
            type: 'string',
            enum: Object.keys(PROBLEMS),
            description: 'the `code` of a problem document',
          },
        },
        answers: {
          200: {
            description: 'Its explanation',
            headers: ['Cache-Control'],
            content: {
              'text/html': { schema: { type: 'string' } },
              'application/json': { schema: PROBLEM_PAGE },
            },
          },
        },
        problems: ['not-found', 'invalid-url'],
      },
      handler: (request, { code = '' }) => {
        const type = acceptable(request);
        parseQuery(request.query, []);
        if (!isCode(code)) throw new AppError('not-found', `No problem has the code ${quote(code)}.`);
        const page = { code, ...PROBLEMS[code], explanation: EXPLANATIONS[code] };
        const headers = { 'cache-control': 'public, max-age=3600' };
        if (type === 'application/json') return json(200, serializers.problemPage(page), headers);
        return bytes(200, Buffer.from(html(page)), { ...headers, ...HTML_HEADERS });
      },
    },
  ];
}

function isCode(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}

/** The texts are this file's own, so nothing needs escaping; no script, no style from elsewhere. */
function html({
  code,
  status,
  title,
  explanation,
}: {
  code: string;
  status: number;
  title: string;
  explanation: string;
}): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status} ${title}</title>
<h1>${title}</h1>
<p>${explanation}</p>
<p>Status ${status}, code <code>${code}</code></p>
</html>
`;
}
