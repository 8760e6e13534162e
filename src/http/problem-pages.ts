import { AppError } from '../errors.ts';
import { PROBLEMS, type ProblemCode } from '../problems.ts';
import { namedObject, text, Type } from '../schema.ts';
import { serializerOf } from '../rows/serializers.ts';
import { quote } from '../input/query.ts';
import { json } from './reply.ts';
import { jsonAnswer, type Route } from './route.ts';

const PROBLEM_PAGE = namedObject('ProblemPage', 'the explanation of a problem', {
  code: text('the stable code of the problem'),
  status: Type.Integer({ description: 'the HTTP status code of the problem' }),
  title: text('the kind of problem, in a few words'),
  explanation: text('why the problem occurs, and what to do about it'),
});
const serialize = serializerOf(PROBLEM_PAGE);

/** GET /problems/{code}: to which the `type` of a problem document leads. */
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
  answers: {
    200: jsonAnswer('The explanation of the problem', PROBLEM_PAGE, ['Cache-Control']),
  },
  problems: ['not-found', 'invalid-url'],
  handler: ({ parameters: { code = '' } }) => {
    if (!isCode(code)) throw new AppError('not-found', `No problem has the code ${quote(code)}.`);
    return json(200, serialize({ code, ...PROBLEMS[code] }), { 'cache-control': 'public, max-age=3600' });
  },
};

function isCode(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}
