import { invalid } from '../../input/parameter.ts';
import type { AfterForm, Named } from '../row/source.ts';
import { kindOf } from './kind-table.ts';
import { readShown } from './kinds.ts';

/**
 * A row of a resource is named by the value of the sort and its id: as `VALUE,id`, or as the JSON array `["VALUE","id"]`,
 * in which the value may have commas.
 */
export const RESOURCE_AFTER: AfterForm = {
  expected:
    'the value of the sort and the id of a row as its JSON shows them: separated by a comma, or as a JSON array of two strings',
  split: (given) => (given.startsWith('[') ? arrayOf(given) : pairOf(given)),
  isShown: (shown, value) => shown === value || shown === JSON.stringify(value),
  parse: (value, like) => {
    const kind = kindOf(like);
    return kind === undefined ? undefined : readShown(kind, value);
  },
};

function pairOf(given: string): Named | null {
  const comma = given.indexOf(',');
  if (comma < 0) return null;
  return named(given.slice(0, comma), given.slice(comma + 1));
}

function arrayOf(given: string): Named | null {
  let read: unknown;
  try {
    read = JSON.parse(given);
  } catch (error) {
    if (error instanceof SyntaxError) return pairOf(given);
    throw error;
  }
  const [value, id, more] = read as unknown[];
  if (more !== undefined) return null;
  const [valueText, idText] = [value, id].map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  if (valueText === undefined || idText === undefined) return null;
  // JavaScript's numbers lose digits. A number is taken only if it is written as JavaScript writes it.
  if (typeof value === 'number' && !given.replace(/\s/g, '').startsWith(`[${valueText},`)) return null;
  return named(valueText, idText, value === 'null');
}

/** AppError `invalid-parameter` for a value that shows as null: it may be null, missing, NaN or infinite. */
function named(value: string, id: string, isText = false): Named {
  if (value === 'null' && !isText)
    throw invalid(
      'after',
      'after cannot name a row whose sort value shows as null, which stands for several values. Use a cursor.',
    );
  return { value, id };
}
