import { AppError } from '../base/errors.ts';
import { PROBLEMS, type ProblemCode } from '../base/problems.ts';
import { namedObject, text, Type, type Static } from '../base/schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import { quote } from '../input/query.ts';
import { bytes, json } from './reply.ts';
import { JSON_TYPE, type Route } from './route.ts';

const PROBLEM_PAGE = namedObject('ProblemPage', 'the explanation of a problem', {
  code: text('the stable code of the problem'),
  status: Type.Integer({ description: 'the HTTP status code of the problem' }),
  title: text('the kind of problem, in a few words'),
  explanation: text('why the problem occurs, and what to do about it'),
});
const serialize = serializerOf(PROBLEM_PAGE);

const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
};

/** GET /problems/{code}: the page to which the `type` of a problem document leads. */
export const getProblem: Route = {
  method: 'GET',
  path: '/problems/{code}',
  access: 'open',
  cost: 'page',
  id: 'getProblem',
  tag: 'Server',
  summary: 'Explain a problem',
  description: 'The `type` of a problem document is the URL of this explanation.',
  parameters: {
    code: {
      type: 'string',
      enum: Object.keys(PROBLEMS),
      description: 'the `code` of a problem document',
    },
  },
  produces: ['text/html', JSON_TYPE],
  answers: {
    200: {
      description: 'The explanation of the problem',
      headers: ['Cache-Control'],
      content: {
        'text/html': { schema: { type: 'string' } },
        [JSON_TYPE]: { schema: PROBLEM_PAGE },
      },
    },
  },
  problems: ['not-found', 'invalid-url'],
  handler: ({ type, parameters: { code = '' } }) => {
    if (!isCode(code)) throw new AppError('not-found', `No problem has the code ${quote(code)}.`);
    const page = { code, ...PROBLEMS[code] };
    const headers = { 'cache-control': 'public, max-age=3600' };
    if (type === JSON_TYPE) return json(200, serialize(page), headers);
    return bytes(200, Buffer.from(html(page)), { ...headers, ...HTML_HEADERS });
  },
};

function isCode(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}

/** The texts are from the source code, so nothing needs escaping. The page has no script and no external style. */
function html({ code, status, title, explanation }: Static<typeof PROBLEM_PAGE>): string {
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
