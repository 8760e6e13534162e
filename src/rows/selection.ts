import { View } from './view.ts';

/** What a selection is made of. Each list has paths: names of fields separated by dots, such as `customer.country`. */
export interface SelectionPaths {
  /** What a client asked for. undefined: every field. */
  readonly fields?: readonly string[] | undefined;
  /** What never leaves the server. Excludes `show`. */
  readonly hide?: readonly string[] | undefined;
  /** The only fields that may leave the server. Excludes `hide`. */
  readonly show?: readonly string[] | undefined;
}

/** The part of a selection that the operator of a resource sets, not the client. */
interface Policy {
  readonly kind: 'hide' | 'show';
  readonly paths: readonly string[];
}

/**
 * The members of rows that are written, in every format. It is compiled once: for a resource at start, and by `pick`
 * for a query. It can be used by any number of encoders.
 *
 * - A path selects or hides the whole value at its end, and the parents of a selected value stay, as objects, in
 *   stored order: `fields=customer.country` gives `{"customer":{"country":"NL"}}`.
 * - A path goes through arrays, also arrays in arrays. Of each element that is an object, only the selected members
 *   are written (perhaps none: `{}`). Other elements are left out of a selected path and kept by a hidden one. A value
 *   that is neither object nor array has no members, so a path below it selects nothing. MongoDB's projection does the
 *   same. As there, a number in a path is a name, never the place of an element.
 * - A path also stands for fields with dots in their own names: `a.b` is the member `b` of `a`, and a field `a.b`. A
 *   hidden path also hides fields whose name begins with it and a dot.
 * - A path below another path of its list adds nothing to it.
 * - The key `_id` is always written whole. `_id` and the paths below it select nothing else. `id` is the row's own field
 *   of that name.
 * - `fields` applies to what `hide` or `show` leaves, so a hidden field is as good as missing.
 */
export class Selection {
  /** The paths asked for, in the given order, without those below another one. undefined: all. */
  readonly fields: readonly string[] | undefined;
  readonly policy: Policy | undefined;
  /** Whether it selects whole top-level fields only, by name. */
  readonly isFlat: boolean;
  /** What the policy alone leaves of a row, for rows that are sampled. */
  readonly policyView: View;

  /** Throws RangeError for a path that `pathFault` or `policyFault` refuses, and when both `hide` and `show` are given. */
  constructor({ fields, hide, show }: SelectionPaths) {
    if (hide && show) throw new RangeError('hide and show exclude each other');
    this.fields = fields && uncovered(fields);
    this.policy = hide?.length ? { kind: 'hide', paths: uncovered(hide) } : undefined;
    if (show) this.policy = { kind: 'show', paths: uncovered(show) };
    for (const path of this.fields ?? []) refuse(path, pathFault(path));
    for (const path of this.policy?.paths ?? []) refuse(path, policyFault(path, this.policy?.kind));
    this.isFlat = !this.policy && !this.fields?.some((path) => path.includes('.'));
    this.policyView = View.of({ fields: undefined, policy: this.policy });
  }

  /** The selection of a query for these fields of the same resource. undefined: all of its fields. */
  pick(fields: readonly string[] | undefined): Selection {
    if (!fields) return this;
    const { kind, paths } = this.policy ?? {};
    return new Selection({ fields, ...(kind && { [kind]: paths }) });
  }

  /** The same without these paths. Throws RangeError as the constructor does, and where a value would be shown in part. */
  hiding(paths: readonly string[]): Selection {
    if (paths.length === 0) return this;
    const { policy, fields } = this;
    if (policy?.kind !== 'show') return new Selection({ fields, hide: [...(policy?.paths ?? []), ...paths] });
    for (const path of paths) refuse(path, policyFault(path));
    const inside = paths.find((path) => policy.paths.some((one) => path !== one && isAtOrBelow(path, one)));
    if (inside !== undefined) refuse(inside, 'is below a path that `show` names whole');
    return new Selection({
      fields,
      show: policy.paths.filter((one) => !paths.some((path) => isAtOrBelow(one, path))),
    });
  }

  /**
   * Whether rows may have something at a path, or below or above it. Where `show` names their fields, they have no others
   * but the key. It says nothing of hidden fields that it does not say of missing ones.
   */
  mayHave(path: string): boolean {
    if (this.policy?.kind !== 'show' || isAtOrBelow(path, 'id') || isAtOrBelow(path, '_id')) return true;
    return this.policy.paths.some((shown) => isAtOrBelow(path, shown) || isAtOrBelow(shown, path));
  }

  /** Whether nothing at a path or below it is left. */
  hides(path: string): boolean {
    if (!this.policy) return false;
    const { kind, paths } = this.policy;
    return kind === 'show' ? !this.mayHave(path) : paths.some((other) => isAtOrBelow(path, other));
  }

  /** Whether a path is left whole: filters, sorts and indexes depend on everything in a value. */
  leavesWhole(path: string): boolean {
    if (!this.policy || path === 'id' || path === '_id') return true;
    const { kind, paths } = this.policy;
    const isCovered = paths.some((other) => isAtOrBelow(path, other));
    return kind === 'show' ? isCovered : !isCovered && !paths.some((other) => isAtOrBelow(other, path));
  }
}

export const EVERYTHING = new Selection({});

export const KEY_ALONE = new Selection({ fields: [] });

/** Why a text is not the path of a field, as the end of a sentence. undefined when it is one. */
export function pathFault(path: string): string | undefined {
  if (path.includes('\0')) return 'contains a NUL, which no name of a field can contain';
  return path.split('.').includes('') ? 'has an empty name at a dot or at an end' : undefined;
}

/** As `pathFault`, for a path of `hide` (or `show`). The key cannot be hidden. */
export function policyFault(path: string, kind: Policy['kind'] = 'hide'): string | undefined {
  const isKey = isAtOrBelow(path, 'id') || isAtOrBelow(path, '_id');
  if (isKey && kind === 'hide') return 'belongs to the key, which cannot be hidden';
  const isPattern = path.split('.').some((name, n) => name === '*' || (n > 0 && /^\d+$/.test(name)));
  return isPattern
    ? 'has * or a place in an array, which no path has here: the path of a field means it in each row and element'
    : pathFault(path);
}

/** The paths in their order, each once and without those below another one. */
export function uncovered(paths: readonly string[]): readonly string[] {
  const all = new Set(paths);
  return [...all].filter((path) => !parentsOf(path).some((parent) => all.has(parent)));
}

/** Whether a path is the other one, or lies below it. */
function isAtOrBelow(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}.`);
}

/** `a` and `a.b` for `a.b.c`. */
function parentsOf(path: string): readonly string[] {
  return Array.from(path.matchAll(/\./g), ({ index }) => path.slice(0, index));
}

function refuse(path: string, fault: string | undefined): void {
  if (fault !== undefined) throw new RangeError(`${JSON.stringify(path)} ${fault}`);
}
