import { documented, parameter, type Parameter } from '../../input/parameter.ts';
import type { Askable } from './not-indexed.ts';
import { isField } from './read-plan.ts';

const RANGE = { gte: 'at least', gt: 'above', lte: 'at most', lt: 'below' } as const;

/** The parameters that ask for indexed fields, as /openapi.json describes them. The plan reads them itself. */
export function fieldParameters(
  forms: readonly Askable[],
  kinds: readonly { readonly field: string; readonly kinds: readonly string[] }[] = [],
): {
  readonly all: readonly Parameter<unknown>[];
  readonly ranges: readonly string[];
} {
  const filters = new Set(forms.flatMap((form) => form.filters));
  const sorts = new Set(forms.flatMap(({ sort }) => (sort === null ? [] : [sort])));
  const kindOf = (path: string) => kinds.find(({ field }) => field === path)?.kinds ?? [];
  const equalities = [...filters].map((path) =>
    described(
      isField(path) && !OPERATOR.test(path) ? path : `${path}.eq`,
      `Return only rows with this value of ${path}.`,
      kindOf(path),
    ),
  );
  const ranges = [...sorts].flatMap((path) =>
    Object.entries(RANGE).map(([operator, words]) =>
      described(
        `${path}.${operator}`,
        `Return only rows whose value of ${path} is ${words} this one, in its order.`,
        kindOf(path),
      ),
    ),
  );
  return { all: [...equalities, ...ranges], ranges: ranges.map(({ name }) => name) };
}

/** A path whose last name reads as an operator is asked for with `.eq`. */
const OPERATOR = /.\.(eq|gte|gt|lte|lt)$/;

function described(name: string, description: string, kinds: readonly string[]): Parameter<string> {
  const schema = { type: 'string' };
  return documented(
    parameter(name, 'a value', schema, (text) => text),
    `${description}${kinds.length > 0 ? ` Its kind is ${kinds.join(' or ')}.` : ''} ${PREFIXES}`,
  );
}

const PREFIXES =
  'A prefix such as `str:`, `int:`, `oid:` or `date:` fixes the type of the value; `null:` also finds rows without it.';
